/**
 * The nodes of a compiled plan. They are immutable and stored in pre-order: the subtree of a node is the range from its
 * index to `end`. Each kind adds its own members (`blocks/`).
 */

import type { HookList, KindName } from '../../schema/blocks.js';
import type { Execution } from '../../schema/execution.js';
import type { JsonValue } from '../base/json.js';
import type { BlockKind } from './blocks/kind.js';
import type { PlanNode } from './blocks/kinds.js';
import type { CancelRule } from './cancel-on.js';
import type { Condition } from './condition.js';
import type { FlowPlan } from './flow-limits.js';
import type { Parsed } from './parsed.js';
import type { SearchPaths } from './search-terms.js';

export type { PlanNode } from './blocks/kinds.js';
export type { StepNode } from './blocks/step-plan.js';
export type { SubSequenceNode } from './blocks/sub-sequence.js';
export type { TryCatchNode } from './blocks/try-catch.js';
/** The problem of a value; undefined when it conforms. */
export type SchemaCheck = (value: JsonValue) => string | undefined;

export interface NodePlace {
  readonly index: number;
  /** The index of the first node of the block: a block in a concurrent loop has one node per slot. */
  readonly first: number;
  readonly type: KindName;
  readonly id: string;
  readonly kind: BlockKind;
  /** -1 in the root list. */
  readonly parent: number;
  /** The list of the parent that contains the node, and the position in it. */
  readonly branch: number;
  readonly position: number;
  /** One past the last descendant. */
  readonly end: number;
  /** The lists of children, in the order that the kind defines. */
  readonly lists: readonly (readonly number[])[];
  /** The loops and sagas around the node, outermost first. */
  readonly loops: readonly number[];
  /** For each of `loops`, the list that contains the node. */
  readonly slots: readonly number[];
  /** Those of `loops` that are concurrent for_each blocks. */
  readonly concurrentLoops: readonly number[];
  /** Those of `loops` whose output may contain that of the block. */
  readonly collectors: readonly number[];
  /** The innermost for_each around the node; -1: none. */
  readonly items: number;
  /** The block whose error the node sees as `data._error`; -1: none. */
  readonly caught: number;
  /** Evaluated when the block is reached; undefined: the block always runs. */
  readonly when: Parsed<Condition> | undefined;
  /** In ms; for a leaf, of one try. */
  readonly timeoutMs: number | null;
  /** Whether something in the plan may read the outputs of the block. */
  readonly isRead: boolean;
}

export interface PlannedExecution {
  readonly plan: Plan;
  readonly execution: Execution;
}

/** The members that a kind adds. */
export type Details<N extends NodePlace> = Omit<N, keyof NodePlace>;

export interface Plan {
  readonly sequenceId: string;
  /** Null: the definition is not that of a stored sequence. */
  readonly name: string | null;
  readonly version: number | null;
  readonly nodes: readonly PlanNode[];
  readonly roots: readonly number[];
  readonly concurrentLoops: readonly number[];
  /** The first node of each block, by block id. */
  readonly indexOf: ReadonlyMap<string, number>;
  /** The blocks whose outputs an expression can read; other outputs need not be kept. */
  readonly outputRefs: 'all' | ReadonlySet<string>;
  /** What runs after an instance has failed or was cancelled. */
  readonly hooks?: { readonly [List in HookList]?: Plan };
  /** Limits of its instances by keys; absent: none. */
  readonly flow?: FlowPlan;
  /** The events that cancel an instance; undefined: none. */
  readonly cancelOn?: readonly CancelRule[];
  /** The members of `context.data` by which instances are found; absent: none. */
  readonly searchable?: SearchPaths;
  readonly isStepOnly: boolean;
  readonly hasGates: boolean;
}
