/**
 * The nodes of a compiled plan: what the evaluator reads of a definition. Immutable and flat: a node
 * is named by its index, which is its place in pre-order, so the subtree of a node is the range from
 * its index to `end`. What a node has beside its place is the matter of its kind (`blocks/`).
 */

import type { HookList, KindName } from '../../schema/blocks.js';
import type { JsonValue } from '../base/json.js';
import type { BlockKind } from './blocks/kind.js';
import type { PlanNode } from './blocks/kinds.js';
import type { Condition, Parsed } from './condition.js';

export type { PlanNode } from './blocks/kinds.js';
export type { StepNode } from './blocks/step-plan.js';
export type { SubSequenceNode } from './blocks/sub-sequence.js';
export type { TryCatchNode } from './blocks/try-catch.js';

/** What is wrong with a value; undefined when it conforms. */
export type SchemaCheck = (value: JsonValue) => string | undefined;

/** What every node has, whatever its kind: that kind, and its place in the tree. */
export interface NodePlace {
  readonly index: number;
  /** Index of the first node of the same block: a block in bodies that run side by side has several. */
  readonly first: number;
  readonly type: KindName;
  /** The id of the block. */
  readonly id: string;
  readonly kind: BlockKind;
  /** Index of the parent; -1 for blocks of the root list. */
  readonly parent: number;
  /** Which list of the parent the node is in, and where in it. */
  readonly branch: number;
  readonly position: number;
  /** 1 for blocks of the root list. */
  readonly depth: number;
  /** One past the last descendant. */
  readonly end: number;
  /** The lists of children, in the order that each kind of block defines. */
  readonly lists: readonly (readonly number[])[];
  /** The blocks around the node that run it again and again, outermost first. */
  readonly loops: readonly number[];
  /** Which of the lists of each of them the node is in. */
  readonly slots: readonly number[];
  /** Those of `loops` that run items side by side. */
  readonly lanes: readonly number[];
  /** Those of `loops` to whose output the block may contribute. */
  readonly collectors: readonly number[];
  /** The innermost of them whose passes have an item; -1 for none. */
  readonly items: number;
  /** The block around the node whose error is its `data._error`; -1 for none. */
  readonly caught: number;
  /** What has to hold for the block to run, asked when it is reached; undefined: it always runs. */
  readonly when: Parsed<Condition> | undefined;
  /** How long the block may take, in ms; of a leaf, one try of it. */
  readonly timeoutMs: number | null;
  /** Something in the plan may read the outputs of this block. */
  readonly isRead: boolean;
}

/** What a kind of block adds to that. */
export type Details<N extends NodePlace> = Omit<N, keyof NodePlace>;

export interface Plan {
  readonly sequenceId: string;
  /** Of the sequence; null where the definition stands for itself. */
  readonly name: string | null;
  readonly version: number | null;
  readonly nodes: readonly PlanNode[];
  readonly roots: readonly number[];
  /** The for_each blocks that run items side by side. */
  readonly lanes: readonly number[];
  /** From the id of a block to its first node. */
  readonly indexOf: ReadonlyMap<string, number>;
  /** The blocks whose outputs an expression can read; the others need not be kept. */
  readonly outputRefs: 'all' | ReadonlySet<string>;
  /** What runs when an instance has failed or was cancelled; absent: nothing does. */
  readonly hooks?: { readonly [List in HookList]?: Plan };
  /** No composite blocks. */
  readonly isStepOnly: boolean;
  /** Some step is not pure: instances do more than one commit. */
  readonly hasEffects: boolean;
  /** Some step waits for the answer of a person. */
  readonly hasGates: boolean;
}
