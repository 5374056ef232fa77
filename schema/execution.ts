/**
 * The stored progress of a running instance: its open and finished nodes and the remaining work. Written with every
 * commit, hence one-letter names, no entry for a pending node, and an array of numbers for a finished one. Plain JSON:
 * a copy through text continues exactly as the original.
 */

import type { JsonObject, JsonValue } from '../src/base/json.js';
import type { HookList } from './blocks.js';
import type { Failure } from './failure.js';

/** How a node finished. */
export const COMPLETED = 0;
export const FAILED = 1;
export const CANCELLED = 2;
export const SKIPPED = 3;
export type DoneCode = typeof COMPLETED | typeof FAILED | typeof CANCELLED | typeof SKIPPED;

/**
 * The phase of an open step.
 * - `ready`: queued for its next attempt.
 * - `delay`, `limited`, `backoff`: deferred until `w`.
 * - `asking`: has requested a rate limit grant.
 * - `sleep`: a durable timer until `w`.
 * - `run`: in a handler of this process. `task`: with an external worker.
 * - `event`: waits for an event or a signal, as in `v`.
 * - `gate`: waits for an approval.
 * - `child`: waits for a child instance.
 */
export type StepPhase = 'ready' | Deferral | 'asking' | 'sleep' | 'run' | 'task' | OuterWait;
type Deferral = 'delay' | 'limited' | 'backoff';
type OuterWait = 'event' | 'gate' | 'child';

/** The record of every open node; kinds of blocks extend it. */
export interface OpenBase {
  /** Start, in ms after `Execution.t`. */
  b: number;
  /** Being cancelled: nothing new starts inside; it finishes after protected work. */
  x?: 1;
  /** Unix ms: timeout of the block; for a leaf, of its current phase. */
  d?: number;
  /** A composite has timed out: after its cleanup it fails because of `y`. */
  o?: 1;
  /** Why the block will fail, or its first branch failed. */
  y?: Failure;
  /** Its own or its child's cleanup failed, and a retry repeats it. */
  z?: 1;
  /** The result of a composite whose cleanup is unfinished. */
  j?: DoneCode;
}

/**
 * The request of an attempt with external effects in this process; with its result it becomes the receipt
 * (docs/migration.md). Immutable.
 */
export interface OpenEffect {
  /** Id of the receipt and of the output's row. */
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

/** The wait of a step. Immutable. */
export interface EventWait {
  /** Name of the event, and of the `custom:` signals that match. */
  readonly n: string;
  /** Correlation key; absent: matches events without one. */
  readonly k?: string;
  /** Id of the wait's row, set by the caller when it creates the row. */
  readonly i?: string;
}

export interface StepRecord extends OpenBase {
  p: StepPhase;
  /** The attempt, from 0 in each iteration. */
  a: number;
  /** Unix ms: end of a deferral or of a sleep. */
  w?: number;
  /** `d` is the time limit for a claim by a worker. */
  q?: 1;
  /** Unix ms: deadline of the step, with all attempts and waits. */
  h?: number;
  /** Duration of a sleep or timeout of an event wait in ms; for a gate: its start, in ms after `Execution.t`. */
  m?: number;
  /** The rate limit of this attempt has been granted. */
  g?: 1;
  /** The rate limit key for which it waits, if a template gave it. */
  l?: string;
  /** The child instance; set by the caller when it creates the child. */
  c?: string;
  /**
   * For a child to retry: when it failed. For a step: the id of its reached gate, which the caller sets where it is ''.
   * The step keeps it, so that no approval is requested twice.
   */
  k?: string;
  /** Set by the caller at the dispatch; kept for the attempt, also after restarts. */
  u?: OpenEffect;
  v?: EventWait;
}

export interface BranchesRecord extends OpenBase {
  /** Unfinished branches. */
  l: number;
  /** A branch has failed, the first one because of `y`. */
  f?: 1;
  /** Result of a decided race, while the losers clean up. */
  r?: DoneCode;
  /** The winning branch. */
  w?: number;
}

export interface RouterRecord extends OpenBase {
  /** The chosen list; decided once. */
  r: number;
}

export const TRY_LIST = 0;
export const CATCH_LIST = 1;
export const FINALLY_LIST = 2;

/** A block that passes an error to some of its lists as `data._error`. */
export interface CatchingRecord extends OpenBase {
  /** Absent: no error was caught. */
  m?: JsonObject;
}

export interface TryCatchRecord extends CatchingRecord {
  /** The running list. */
  p: typeof TRY_LIST | typeof CATCH_LIST | typeof FINALLY_LIST;
  /**
   * The result so far; a failure of the finally list overrides it. `y`: why it failed. In the catch list FAILED if a
   * retry runs the list again although the block is being cut off.
   */
  f: DoneCode;
}

export interface LoopRecord extends OpenBase {
  /** The current iteration, from 0. */
  i: number;
  /** The current iteration has not started: the previous one has finished. */
  e?: 1;
}

export interface ForEachRecord extends LoopRecord {
  /** Number of items; the items are a separate snapshot. */
  n: number;
  /** For concurrent items: the item of each slot, -1 for none. `i` is then the next item to start. */
  s?: number[];
  /** With `s`: finished items by success and failure; after a failure, no further item starts. */
  m?: number;
  f?: number;
  /** With `f`: result of the block after the items in progress, and why. */
  r?: DoneCode;
  y?: Failure;
  /** With `s`: members of context.data of one item, besides merged outputs of its steps. */
  v?: Record<number, JsonObject>;
  /** With `s`: the keys of context.data that items have changed. */
  t?: Record<string, ItemChange>;
}

/** The last item, in item order, that changed the key, and the value that other items see. */
export type ItemChange = readonly [item: number, before: JsonValue];

/** A saga; each run is an iteration with rows and keys of its own. */
export interface SagaRecord extends LoopRecord, CatchingRecord {
  /** The running list: the action of a step, or after the actions its compensation. */
  l: number;
  /** Result of the block once the completed steps, from this one backwards, are compensated. */
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
 * Result code, start in ms after `Execution.t`, duration in ms, and the record that a retry continues from; for a leaf
 * with a child: a record with its id, and when it failed.
 */
export type DoneRecord = [code: DoneCode, began: number, took: number, kept?: OpenRecord];

/** A cleanup failed before the instance, or a part of it, finished. */
export interface CleanupFailure {
  /** The first failure. */
  readonly f: Failure;
  /** Why the instance was failing. */
  readonly y?: Failure;
}

/** Hooks due after one end of the instance (`hooks.ts`). */
export interface HookRun {
  readonly l: HookList;
  /** Number of hook runs of the instance. */
  readonly n: number;
  /** Why the instance had failed. */
  readonly y?: Failure;
  /** The execution of a sequence of these steps. */
  e: Execution;
  /** Failure of the first failed step. */
  f?: Failure;
}

export interface HookState {
  /** Number of runs so far. */
  n: number;
  /** Unfinished runs; the first one is running. */
  r: HookRun[];
  /** A failed run after a cancellation or timeout, kept for a retry. */
  f?: HookRun;
  /** The hooks of the next end already run again. */
  a?: HookList;
}

/** The handler of a passed deadline: durable work beside the nodes, at least once. */
export interface OpenDeadlineHandler {
  /** The block with the deadline. */
  readonly i: string;
  readonly h: string;
  /** Rendered. */
  readonly p: JsonValue;
  /** Iteration of the block, and how often it was restarted there; absent: never. */
  readonly n?: string;
  readonly r?: number;
  /** As for a step. */
  u?: OpenEffect;
}

/** An event that cancels the instance. Immutable. */
export interface CancelEvent {
  /** Name of the event. */
  readonly n: string;
  /** Correlation key; absent: every event with the name. */
  readonly k?: string;
}

export interface Execution {
  /** Unix ms of the first step; null before it. */
  t: number | null;
  /** Open nodes by their index in the plan. */
  o: Record<number, OpenRecord>;
  /** Finished nodes by index. In a loop body: of the current iteration. */
  d: Record<number, DoneRecord>;
  /** Nodes to start or continue, in order. */
  q?: number[];
  /** Result of the root list. */
  e?: DoneCode;
  /** Why the instance failed. */
  y?: Failure;
  /** Unix ms: nothing new starts before this requested time. */
  h?: number;
  /** Parked: nothing new starts until a task, a signal or a request wakes the instance. */
  p?: 1;
  /**
   * Nothing new starts: 1 waits for a slot of its concurrency key until `admitted`, 2 for its start by a throttle until
   * `start.granted`.
   */
  w?: typeof WAITS_FOR_SLOT | typeof WAITS_FOR_START;
  /** The key of the throttle of its sequence, set by the caller until the start. */
  i?: string;
  /** The events that cancel the instance, set at its creation; absent: none. */
  E?: readonly CancelEvent[];
  /** Slot requests so far: the number of the current or last one. */
  n?: number;
  /** Set by the caller: keeps its slot although it is neither running nor waiting. */
  r?: 1;
  /** Cancelled by a signal; only protected work continues. */
  x?: 1;
  /** Cancelled blocks stay open for a retry, which cleans up and then finishes them. */
  a?: CleanupFailure;
  /** Number of restarts within one iteration, by first node of the block. */
  v?: Record<number, number>;
  /** Paused while failed: a resume retries. */
  f?: 1;
  /** Unix ms: paused since then; time limits are suspended. */
  z?: number;
  /** Unix ms: timeout of the instance. */
  u?: number;
  /** Running deadline handlers by number; they may outlive the instance. */
  b?: Record<number, OpenDeadlineHandler>;
  /** The root block of a resume: blocks before it stay unchanged, also in a retry. */
  s?: number;
  /** Output rows of blocks within loops, by node: the number of the next one. */
  c?: Record<number, number>;
  /** The hooks of the sequence; absent: none were ever due. */
  j?: HookState;
  /** After a retry: the records from which restarted blocks continue. */
  k?: Record<number, OpenRecord>;
  /** Children requested so far: the number of the next one. */
  g?: number;
  /** Paused with its parent, and resumed with it. */
  l?: 1;
  /** Failed with a cleanup for a retry; its parent reads this in its row. */
  m?: 1;
}

export const WAITS_FOR_SLOT = 1;
export const WAITS_FOR_START = 2;

/** The execution of an instance that has not started. */
export function emptyExecution(): Execution {
  return { t: null, o: {}, d: {} };
}
