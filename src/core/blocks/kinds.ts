/** The table of block kinds: the only place that knows them all. */

import type { OpenRecord } from '../execution.js';
import type { PlanNode } from '../plan-nodes.js';
import { parallel, race } from './branches.js';
import type { BlockKind } from './kind.js';
import { forEach, loop } from './loops.js';
import { router } from './router.js';
import { step } from './step.js';
import { tryCatch } from './try-catch.js';

const KINDS = {
  step,
  parallel,
  race,
  router,
  try_catch: tryCatch,
  loop,
  for_each: forEach,
} as const satisfies Readonly<Record<PlanNode['type'], object>>;

/** The kind of a node, typed for any node: callers hand it that node and the record of that node. */
export function kindOf(node: PlanNode): BlockKind<PlanNode, OpenRecord> {
  return KINDS[node.type] as unknown as BlockKind<PlanNode, OpenRecord>;
}
