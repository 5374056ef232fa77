/** The table of block kinds. A `Block` of the schema without an entry here does not compile. */

import type { Block, KindName } from '../../../schema/blocks.js';
import type { Evaluation } from '../evaluation.js';
import type { NodePlace } from '../plan-nodes.js';
import { parallel, race } from './branches.js';
import { cancellationScope } from './cancellation-scope.js';
import { abSplit, router } from './choices.js';
import type { BlockKind } from './kind.js';
import { forEach, loop } from './loops.js';
import { saga } from './saga.js';
import { step } from './step.js';
import { subSequence } from './sub-sequence.js';
import { tryCatch } from './try-catch.js';

const KINDS = {
  step,
  parallel,
  race,
  router,
  try_catch: tryCatch,
  loop,
  for_each: forEach,
  sub_sequence: subSequence,
  cancellation_scope: cancellationScope,
  saga,
  ab_split: abSplit,
  a_b_split: abSplit,
} as const satisfies {
  readonly [T in Block['type']]: BlockKind<
    Extract<Block, { type: T }>,
    NodePlace & { type: T extends KindName ? T : KindName }
  >;
};

/** A node of any kind, discriminated by `type`. */
export type PlanNode = NodeOf<(typeof KINDS)[Block['type']]>;
type NodeOf<K> = K extends { enter(run: Evaluation, node: infer N): void } ? N : never;
export const kindOf = (block: Block): BlockKind => KINDS[block.type];
