/**
 * What is stored of a running instance beside its context: the nodes that are open or done, and what
 * is left to do. Compact, because it is written with every commit: field names are one letter, a
 * node that is pending has no entry, and a node that is done is an array of numbers.
 *
 * Plain JSON: `JSON.parse(JSON.stringify(execution))` at any point goes on exactly as the original.
 */

import type { JsonObject, JsonValue } from '../src/base/json.js';
import type { HookList } from './blocks.js';
import type { Failure } from './failure.js';

/** How a node ended. */
export const COMPLETED = 0;
export const FAILED = 1;
export const CANCELLED = 2;
export const SKIPPED = 3;
export type DoneCode = typeof COMPLETED | typeof FAILED | typeof CANCELLED | typeof SKIPPED;

/**
 * What an open step is doing.
 * - `ready`: in the queue, to be attempted next.
 * - `delay`, `limited`, `backoff`: deferred until `w`.
 * - `asking`: a grant of its rate limit was asked for.
 * - `sleep`: a durable timer, over at `w`.
 * - `run`: in a handler of this process. `task`: with an external worker.
 * - `event`: waits for an event or a signal, as `v` says.
 * - `gate`: a person has to answer first.
 * - `child`: a child instance runs for it.
 */
export type StepPhase =
  | 'ready'
  | 'delay'
  | 'limited'
  | 'backoff'
  | 'asking'
  | 'sleep'
  | 'run'
  | 'task'
  | 'event'
  | 'gate'
  | 'child';

/** What the record of every open node has; further kinds of blocks add to it what they need. */
export interface OpenBase {
  /** Began, in ms after `Execution.t`. */
  b: number;
  /** Being cut off: nothing new starts below, and the end of what is protected there ends it. */
  x?: 1;
  /** Unix ms: when the block times out; of a leaf, what it is at. */
  d?: number;
  /** A composite has timed out: once it has cleaned up it ends as failed, because of `y`. */
  o?: 1;
  /** Why the block will fail, or its first branch has. */
  y?: Failure;
  /** What it has to clean up, or its child has, has failed, and is to be done by a retry. */
  z?: 1;
  /** A composite would have ended so, but for what is yet to be cleaned up inside. */
  j?: DoneCode;
}

/**
 * What is kept of the request of a try that acts outside from within the process: with how it ended
 * that is its receipt (docs/migration.md). Never changed inside.
 */
export interface OpenEffect {
  /** Of the receipt, and of the output's row. */
  readonly id: string;
  readonly block_id: string;
  readonly handler_name: string;
  /** The ownership epoch of its dispatch. */
  readonly epoch: number;
  readonly request_sha256: string;
  readonly destination_fingerprint: string;
  readonly idempotency_key: string | null;
  readonly created_at: string;
}

/** What a step waits for. Never changed inside. */
export interface EventWait {
  /** Of the event, and of the `custom:` signals that are taken for it. */
  readonly n: string;
  /** The correlation key; absent: that of events without one. */
  readonly k?: string;
  /** Of the row that says so: the caller notes it when it makes the row. */
  readonly i?: string;
}

export interface StepRecord extends OpenBase {
  p: StepPhase;
  /** The try, counted from 0 in each iteration. */
  a: number;
  /** Unix ms: end of a deferral or of a sleep. */
  w?: number;
  /** `d` is the end of the time in which a worker has to claim the task. */
  q?: 1;
  /** Unix ms: the deadline of the step, over all of its tries and waits. */
  h?: number;
  /**
   * The duration that a sleep was asked for, or after which a wait for an event times out, in ms; of a gate:
   * when it was reached, in ms after `Execution.t`.
   */
  m?: number;
  /** The rate limit of this try has been granted. */
  g?: 1;
  /** The child instance; the caller notes it when that is made, and until then there is none. */
  c?: string;
  /**
   * Of a child that is to be retried: when it has failed. Of a step:
   * the gate was reached: its id, which the caller notes where this is ''. It stays with the step, so
   * that nobody is asked twice.
   */
  k?: string;
  /** The caller notes it at the dispatch; it stays for as long as the try does, over restarts too. */
  u?: OpenEffect;
  v?: EventWait;
}

export interface BranchesRecord extends OpenBase {
  /** Branches that are not finished. */
  l: number;
  /** A branch has failed, the first one because of `y`. */
  f?: 1;
  /** A race that is decided: its result, once the losers have cleaned up. */
  r?: DoneCode;
  /** The branch that has won it. */
  w?: number;
}

export interface RouterRecord extends OpenBase {
  /** The chosen list; decided once. */
  r: number;
}

export const TRY_LIST = 0;
export const CATCH_LIST = 1;
export const FINALLY_LIST = 2;

/** A block that hands an error to some of its lists, which is their `data._error`. */
export interface CatchingRecord extends OpenBase {
  /** Absent: none was caught. */
  m?: JsonObject;
}

export interface TryCatchRecord extends CatchingRecord {
  /** The list that runs. */
  p: typeof TRY_LIST | typeof CATCH_LIST | typeof FINALLY_LIST;
  /** The result so far, which a failure of the finally list overrides; `y` says why it failed. */
  f: DoneCode;
}

export interface LoopRecord extends OpenBase {
  /** The iteration that runs, counted from 0. */
  i: number;
  /** That iteration has yet to begin: the one before it has ended. */
  e?: 1;
}

export interface ForEachRecord extends LoopRecord {
  /** How many items there are; the items themselves are a snapshot beside the execution. */
  n: number;
  /**
   * Where several items run at once: the item that each slot is at, -1 for none. `i` is then the next
   * item to begin.
   */
  s?: number[];
  /** With `s`: how many items have ended well, and how many not: once there is one, no item begins. */
  m?: number;
  f?: number;
  /** With `f`: how the block ends once the items in flight have, and why. */
  r?: DoneCode;
  y?: Failure;
  /** With `s`: what an item sees of its own in context.data beside outputs that its steps have merged. */
  v?: Record<number, JsonObject>;
  /** With `s`: the keys of context.data that items have changed. */
  t?: Record<string, ItemChange>;
}

/** The last item, in their order, that has changed the key, and what the other items see there. */
export type ItemChange = readonly [item: number, before: JsonValue];

/** A saga; each run of it is a pass, with rows and keys of its own. */
export interface SagaRecord extends LoopRecord, CatchingRecord {
  /** The list that runs: the action of a step, or behind that its compensation. */
  l: number;
  /** What the block comes to when what completed is compensated, from this step on backwards. */
  f?: typeof FAILED | typeof CANCELLED;
  n?: number;
  /** Why, if an action failed. */
  y?: Failure;
}

export type OpenRecord =
  | StepRecord
  | BranchesRecord
  | RouterRecord
  | TryCatchRecord
  | LoopRecord
  | ForEachRecord
  | SagaRecord
  | OpenBase;

/**
 * Code, beginning in ms after `Execution.t`, duration in ms, and what a retry goes on from; of a leaf that
 * had a child, a record that names it, and when that failed.
 */
export type DoneRecord = [code: DoneCode, began: number, took: number, kept?: OpenRecord];

/** Something was to be cleaned up before the instance, or a part of it, ended, and that has failed. */
export interface CleanupFailure {
  /** The first of what has failed. */
  readonly f: Failure;
  /** Why the instance was to fail. */
  readonly y?: Failure;
}

/** Hooks that are due after one end of the instance (`hooks.ts`). */
export interface HookRun {
  readonly l: HookList;
  /** Counts the runs of hooks of the instance. */
  readonly n: number;
  /** Why the instance had failed. */
  readonly y?: Failure;
  /** As that of a sequence of these steps. */
  e: Execution;
  /** Why the first of the steps that failed did so. */
  f?: Failure;
}

export interface HookState {
  /** How many runs there have been. */
  n: number;
  /** Those that have not ended; the first one is at work. */
  r: HookRun[];
  /** One of an instance that was cancelled or timed out, which has failed: until a retry does that again. */
  f?: HookRun;
  /** Those of the end that is next run again already. */
  a?: HookList;
}

/** The handler of a deadline that has passed: durable work beside the nodes, done at least once. */
export interface OpenDeadlineHandler {
  /** The block whose deadline it was. */
  readonly i: string;
  readonly h: string;
  /** Rendered. */
  readonly p: JsonValue;
  /** Of the block: its iteration, and how often it was begun anew in that; absent: never. */
  readonly n?: string;
  readonly r?: number;
  /** As that of a step. */
  u?: OpenEffect;
}

export interface Execution {
  /** Unix ms of the first step; null before it. */
  t: number | null;
  /** Open nodes by their index in the plan. */
  o: Record<number, OpenRecord>;
  /** Nodes that are done, likewise. In a loop body: in the present iteration. */
  d: Record<number, DoneRecord>;
  /** Nodes to be started or continued, in order. */
  q?: number[];
  /** How the list of the root ended. */
  e?: DoneCode;
  /** Why the instance failed. */
  y?: Failure;
  /** Unix ms: nothing new starts before, because a caller asked for that time. */
  h?: number;
  /** Parked: nothing new starts until a task, a signal or a caller wakes the instance. */
  p?: 1;
  /** Waits for a slot of its concurrency key: nothing new starts until `admitted`. */
  w?: 1;
  /** Wishes for a slot so far: the number of the present or the last one. */
  n?: number;
  /** Keeps its slot though it is neither running nor waiting; the caller says so. */
  r?: 1;
  /** Cancelled by a signal; only protected work goes on. */
  x?: 1;
  /** Blocks that are being cut off are open for a retry, which cleans up and then ends them. */
  a?: CleanupFailure;
  /** Blocks that were begun anew in the same iteration, by their first nodes: how often. */
  v?: Record<number, number>;
  /** Paused while failed, so that to resume is to retry. */
  f?: 1;
  /** Unix ms: paused since; time limits stand still from there on. */
  z?: number;
  /** Unix ms: when the instance times out. */
  u?: number;
  /** Handlers of deadlines that are at work, by their numbers; they outlive the end of the instance. */
  b?: Record<number, OpenDeadlineHandler>;
  /** The root that a caller resumed from: those before it are left as they are, by a retry too. */
  s?: number;
  /** Output rows stored by blocks within loops, by node: the number of the next one. */
  c?: Record<number, number>;
  /** The hooks of the sequence; absent: none were ever due. */
  j?: HookState;
  /** After a retry: what blocks that are started again go on from. */
  k?: Record<number, OpenRecord>;
  /** Children asked for so far: the number of the next one. */
  g?: number;
  /** Paused because its parent was, so that it goes on with that. */
  l?: 1;
  /** Failed, and a retry has something to clean up; its parent reads that in its row. */
  m?: 1;
}

/** The execution of an instance that has not started. */
export function emptyExecution(): Execution {
  return { t: null, o: {}, d: {} };
}
