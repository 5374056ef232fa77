/**
 * The nodes of a compiled plan: what the evaluator reads of a definition. Immutable and flat: a node
 * is named by its index, which is its place in pre-order, so the subtree of a node is the range from
 * its index to `end`. Conditions and templates are parsed.
 */

import type { PureHandler } from './builtin.js';
import type { Condition, Parsed } from './condition.js';
import type { JsonValue } from './json.js';
import type { Template } from './template.js';
import type { DelayTimes, RetryTimes } from './timing.js';

/** What is wrong with a value; undefined when it conforms. */
export type SchemaCheck = (value: JsonValue) => string | undefined;

export interface NodePlace {
  readonly index: number;
  /** The id of the block. */
  readonly id: string;
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
  /** The loop and for_each blocks around the node, outermost first. */
  readonly loops: readonly number[];
  /** The innermost for_each around the node; -1 for none. */
  readonly forEach: number;
  /** Some expression of the plan may read the outputs of this block. */
  readonly isRead: boolean;
}

export interface RetryPolicy extends RetryTimes {
  /** Tries in total. */
  readonly maxAttempts: number;
  readonly retryIf: Parsed<Condition> | undefined;
  readonly nonRetryableCodes: ReadonlySet<string>;
}

export interface StepNode extends NodePlace {
  readonly type: 'step';
  readonly handler: string;
  /** `pure` is called in place, `in_process` has an effect, `external` is a worker's. */
  readonly kind: 'pure' | 'sleep' | 'in_process' | 'external';
  readonly pure: PureHandler | undefined;
  readonly params: Template | undefined;
  readonly when: Parsed<Condition> | undefined;
  readonly delay: DelayTimes | undefined;
  readonly retry: RetryPolicy | undefined;
  readonly timeoutMs: number | null;
  readonly rateLimitKey: string | null;
  readonly queueName: string | null;
  /** False: survives the signal `cancel` once it has begun. */
  readonly isCancellable: boolean;
  readonly checkOutput: SchemaCheck | undefined;
}

/** Lists: the branches. */
export interface ParallelNode extends NodePlace {
  readonly type: 'parallel';
}

export interface RaceNode extends NodePlace {
  readonly type: 'race';
  readonly semantics: 'first_to_resolve' | 'first_to_succeed';
}

/** Lists: the routes, then the default. A condition that does not parse is undefined: false. */
export interface RouterNode extends NodePlace {
  readonly type: 'router';
  readonly conditions: readonly (Condition | undefined)[];
}

/** Lists: try, catch, finally. */
export interface TryCatchNode extends NodePlace {
  readonly type: 'try_catch';
}

/** Lists: the body. */
export interface LoopNode extends NodePlace {
  readonly type: 'loop';
  readonly condition: Condition | undefined;
  readonly maxIterations: number;
}

export interface ForEachNode extends NodePlace {
  readonly type: 'for_each';
  /** A path under context.data, or a template. */
  readonly collection: readonly string[] | Template;
  readonly itemVar: string;
  readonly maxIterations: number;
}

export type PlanNode =
  | StepNode
  | ParallelNode
  | RaceNode
  | RouterNode
  | TryCatchNode
  | LoopNode
  | ForEachNode;

export interface Plan {
  readonly sequenceId: string;
  readonly nodes: readonly PlanNode[];
  readonly roots: readonly number[];
  readonly indexOf: ReadonlyMap<string, number>;
  /** The blocks whose outputs an expression can read; the others need not be kept. */
  readonly outputRefs: 'all' | ReadonlySet<string>;
  /** No composite blocks. */
  readonly isStepOnly: boolean;
  /** Some step is not pure: instances do more than one commit. */
  readonly hasEffects: boolean;
  /** What will not work as written, in sentences; never fatal. */
  readonly warnings: readonly string[];
}
