/**
 * What goes into the evaluator and what comes out of it: plain data. The caller stores the progress
 * of one event in one commit and performs dispatches and withdrawals after it.
 */

import type { Execution, OpenEffect } from '../../schema/execution.js';
import type { Failure, FailureCode } from '../../schema/failure.js';
import type { InstanceState } from '../../schema/states.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import type { UnixMs } from '../base/time.js';
import type { GateAnswer } from './blocks/gate.js';
import type { LogLevel, StepOutcome } from './builtin.js';
import type { EffectOutcome } from './effects.js';
import type { ItemOutputs } from './item-outputs.js';
import type { SecretText } from './secret-texts.js';

/** Owned by the caller's actor and changed in place; rebuilt from rows if a commit is refused. */
export interface Snapshot {
  readonly id: string;
  /** IANA name. */
  readonly timezone: string;
  state: InstanceState;
  nextFireAt: UnixMs | null;
  /** How long it may take from its first step on; absent or null: for ever. */
  readonly timeoutMs?: number | null;
  /** Sections of the context, which are replaced and never changed inside. */
  data: JsonObject;
  config: JsonObject;
  /** The section of the engine, which is changed in place. */
  runtime: JsonObject;
  execution: Execution;
  /** The latest output of each block that `plan.outputRefs` names, `__error__` rows included. */
  outputs: Map<string, KeptOutput>;
  /** The items of for_each blocks, by the keys of `Progress.snapshots`. */
  snapshots: Map<string, JsonValue[]>;
  /** What those items have given so far, by the same keys. */
  items?: Record<string, ItemOutputs>;
  /** Signals that no wait has taken, oldest first; absent: none. */
  signals?: KeptSignal[];
  /** Of hooks: what `data._error` is outside of all blocks. */
  readonly error?: JsonObject;
}

export interface KeptOutput {
  /** The path of loop counters, '' outside of loops. */
  readonly iteration: string;
  readonly output: JsonValue;
}

/** A `custom:` signal that is kept for a wait. */
export interface KeptSignal {
  readonly id: string;
  /** Its number among the signals of the instance. */
  readonly seq: number;
  /** What stands behind `custom:`. */
  readonly name: string;
  readonly payload: JsonValue;
  /** Of the text of its payload. */
  readonly characters: number;
  /** The name of the key that sent it; absent: nobody knows. */
  readonly by?: string;
}

/** A signal that a wait took; `refused`: its payload was none for that wait, which goes on. */
export interface TakenSignal {
  readonly seq: number;
  readonly blockId: string;
  readonly status: 'taken' | 'refused';
}

/** One try of one step. `iteration` is the path of loop counters, '' outside of loops. */
export interface StepTry {
  /** Its index in the plan; below 0 it names a hook, see `hooks.ts`. */
  readonly node: number;
  readonly iteration: string;
  readonly attempt: number;
}

export type EngineEvent =
  /**
   * Created, resumed, a timer is due, or there was more to do. `recovered`: steps that ran inside a
   * process that is gone are dispatched again, with the same try.
   */
  | { readonly kind: 'wake'; readonly recovered?: boolean }
  /** From a worker (`external`) or from a handler of this process. */
  | ({
      readonly kind: 'step.outcome';
      readonly outcome: StepOutcome;
      readonly external: boolean;
    } & StepTry)
  /** A person has answered at a gate; the value is one of its choices. */
  | ({ readonly kind: 'gate.answered'; readonly answer: GateAnswer } & StepTry)
  /** The database refused what this step gave: the step fails for good. */
  | ({ readonly kind: 'step.refused'; readonly message: string } & StepTry)
  /** A worker has claimed the task of the try: its time counts from now on. */
  | ({ readonly kind: 'step.claimed' } & StepTry)
  /** The claim is over, and the task waits for a worker again. */
  | ({ readonly kind: 'step.returned' } & StepTry)
  | ({ readonly kind: 'rate.granted' } & StepTry)
  /** The limit is reached: the try is put off, and asks again at `until`. */
  | ({ readonly kind: 'rate.deferred'; readonly until: UnixMs } & StepTry)
  /** The limit was changed: a try that was put off may ask again. */
  | ({ readonly kind: 'rate.changed' } & StepTry)
  /** The child that the block has asked for is there from this unit on. */
  | ({ readonly kind: 'child.made'; readonly child: string } & StepTry)
  /** The child of this block has ended, or was never made. */
  | ({ readonly kind: 'child.ended'; readonly end: ChildEnd } & StepTry)
  /** What the step waits for has come: this event, or else a signal that is kept. */
  | ({
      readonly kind: 'event.arrived';
      readonly event?: { readonly id: string; readonly payload: JsonValue };
    } & StepTry)
  /** The slot that the instance waits for is its own; `Env.holdsPermit` says so from now on. */
  | { readonly kind: 'admitted' }
  /** The signal: protected work goes on, everything else is cut off. */
  | { readonly kind: 'cancel' }
  /** By request, hard: nothing more runs. */
  | {
      readonly kind: 'stop';
      readonly state: 'completed' | 'failed' | 'cancelled';
      /** Of `failed`; absent: somebody asked for it. */
      readonly failure?: Pick<Failure, 'code' | 'message'>;
    }
  /** What is left of the hooks at work cannot be run. */
  | { readonly kind: 'hooks.dropped'; readonly message: string }
  | { readonly kind: 'pause'; readonly byParent?: true }
  /** A paused instance is scheduled, for when it would go on; the `wake` that follows starts things. */
  | { readonly kind: 'resume' }
  /** Waiting by request: nothing new starts until an outcome or a reschedule. */
  | { readonly kind: 'park' }
  /** Scheduled by request: nothing new starts before `at` (null: now), open work goes on. */
  | { readonly kind: 'reschedule'; readonly at: UnixMs | null }
  /** A failed instance is scheduled again, now: blocks that completed are not run again. */
  | { readonly kind: 'retry' }
  /** In any state: scheduled again, now, as if this root and all behind it had not been reached. */
  | { readonly kind: 'rewind'; readonly node: number };

/** What is about one try of one block, and goes to its kind. */
export type TryEvent = Extract<EngineEvent, StepTry>;

export interface Env {
  readonly now: UnixMs;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** A retryable failure of an external step without a retry policy (docs/reference/steps.md). */
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  /** Whether the context may be as large as with this data. Absent: it may. */
  readonly fitsContext?: (data: JsonObject) => boolean;
  /** Blocks started and loop passes in one turn: what bounds the time it takes. */
  readonly stepBudget: number;
  /** Characters of outputs, parameters and snapshots in one turn; the last one may exceed it. */
  readonly outputBytesBudget: number;
  /**
   * False: the instance needs a slot of its concurrency key before it may be running or waiting, and
   * has none. It stays scheduled then, with `Execution.w`. Absent: it needs none.
   */
  readonly holdsPermit?: boolean;
  /** Whether tries under this key need a grant. Absent: none does. */
  readonly isRateLimited?: (key: string) => boolean;
  /**
   * Until when a limit of time is put off that a task has run into, of its claim or, where there is a
   * `queueTimeoutMs`, of its wait for one; undefined: it is over. Absent: none is put off.
   */
  readonly sparedUntil?: (
    step: { readonly blockId: string; readonly iteration: string },
    queueTimeoutMs: number | null,
  ) => UnixMs | undefined;
}

/** What marks the row of an answer at a gate: an output, but not that of the step's handler. */
export const GATE_REF = 'human_input';
/** Between the iteration and the id of the row, in the place of such a row. */
export const NOTE_MARK = '!';

export interface OutputRow {
  readonly blockId: string;
  /** '' outside of loops; '2' in the third iteration of a loop; '2.0' one loop further in. */
  readonly iteration: string;
  /** Within the iteration, from 0. */
  readonly tryNumber: number;
  /**
   * As shown to callers: the try; inside loops the number of the block's row
   * (docs/reference/instances.md).
   */
  readonly attempt: number;
  readonly output: JsonValue;
  readonly outputRef: '__error__' | typeof GATE_REF | null;
}

export interface Dispatch extends StepTry {
  readonly blockId: string;
  readonly handler: string;
  readonly external: boolean;
  readonly queueName: string | null;
  /** Rendered. */
  readonly params: JsonValue;
  readonly timeoutMs: number | null;
  /** The items of the for_each blocks around the step: they lie over context.data. */
  readonly overlay: JsonObject | null;
  /** How often the step was begun anew in its iteration: a part of its idempotency key. */
  readonly runs: number;
  /** Where `params` name secrets; absent: nowhere. */
  readonly secrets?: readonly SecretText[] | undefined;
}

/** Work in progress that must stop: a task to be withdrawn, or a handler to be aborted. */
export interface Withdrawal extends StepTry {
  readonly blockId: string;
  readonly external: boolean;
  /** `unclaimed`: no worker has taken it in time; `deadline`: that of the step has passed. */
  readonly reason: 'cancelled' | 'timed_out' | 'unclaimed' | 'deadline';
}

/** A try that acted outside is over: by its outcome, or it was cut off and is lost. */
export interface EndedEffect extends StepTry {
  readonly effect: OpenEffect;
  readonly outcome: EffectOutcome;
}

/**
 * A gate that waits no more: by its answer, or since the time for one is over. Without an id nobody has
 * heard of it yet.
 */
export type EndedGate = { readonly id: string; readonly at: UnixMs } & (
  | { readonly end: 'timed_out' | 'escalated' }
  | ({ readonly end: 'answered' } & Pick<GateAnswer, 'value' | 'comment' | 'by' | 'answerId'>)
);

export interface RateRequest extends StepTry {
  readonly blockId: string;
  readonly key: string;
}

/** A child to be made; `number` is counted over all children of the instance. */
export interface ChildStart extends StepTry {
  readonly kind: 'start';
  readonly blockId: string;
  readonly child: string;
  readonly sequence: string;
  readonly version: number | null;
  /** Rendered. */
  readonly input: JsonObject;
}

/** What is asked of others about a child. */
export type ChildOrder =
  | ChildStart
  /** Its parent does not wait for it any more. One that is not made yet never is. */
  | ({ readonly kind: 'cancel'; readonly child: string | undefined } & StepTry)
  /** Whether it has ended meanwhile: the word of that may have been for another past. */
  | ({ readonly kind: 'look'; readonly child: string } & StepTry)
  /**
   * It has failed, and so has its parent, which is retried: the child goes on where it was; with `clean_up` only
   * if it has something to clean up.
   */
  | ({ readonly kind: 'retry' | 'clean_up'; readonly child: string } & StepTry);

export type ChildEnd =
  | { readonly kind: 'completed'; readonly output: JsonValue }
  | {
      readonly kind: 'failed';
      readonly code: FailureCode;
      readonly message: string;
      readonly details?: JsonObject;
      /** When a child failed that can be retried: the same end may be told twice. */
      readonly note?: string;
      /** A retry of the child has something to clean up; absent: it has not, or its engine did not note that. */
      readonly owes?: true;
      /** The child was to be retried, and had been cancelled or removed by then. */
      readonly isGone?: true;
    };

export interface LogLine {
  readonly blockId: string;
  readonly level: LogLevel;
  readonly message: JsonValue;
}

export interface AuditEvent {
  readonly eventType:
    | 'state_transition'
    | 'step_failed'
    | 'step_retried'
    | 'gate_answered'
    | 'gate_refused'
    | 'gate_timed_out'
    | 'gate_escalated'
    | 'block_failed'
    | 'hook_failed'
    | 'saga_compensated'
    | 'output_truncated'
    | 'deadline_breached'
    | 'deadline_handler_failed'
    | 'resumed_from'
    | 'data_changed'
    | 'blocks_injected'
    | 'cancelling'
    | 'migrated'
    | 'forked'
    | 'batch_action'
    | 'event_taken'
    | 'event_refused';
  readonly fromState?: InstanceState;
  readonly toState?: InstanceState;
  readonly blockId?: string;
  readonly details?: JsonObject;
  /** Of the move to `failed`. */
  readonly failure?: Failure;
}

/** What one event led to, in order. */
export interface Progress {
  readonly outputs: readonly OutputRow[];
  readonly dispatches: readonly Dispatch[];
  readonly withdrawals: readonly Withdrawal[];
  readonly rateRequests: readonly RateRequest[];
  /** Absent: none. */
  readonly effects?: readonly EndedEffect[];
  /** Absent: none. */
  readonly children?: readonly ChildOrder[];
  readonly takenSignals?: readonly TakenSignal[];
  /** A step has begun to wait for an event. */
  readonly opensEventWait?: true;
  readonly gates?: readonly EndedGate[];
  readonly snapshots: readonly { readonly key: string; readonly items: JsonValue[] }[];
  /** To be deleted before `snapshots` are stored. */
  readonly droppedSnapshots: readonly string[];
  /** Blocks whose rows are to be deleted before `outputs` are stored, since they run another time. */
  readonly droppedOutputs: readonly string[];
  readonly logs: readonly LogLine[];
  readonly audit: readonly AuditEvent[];
  /** There is work to do at once: send `wake` after the commit. */
  readonly more: boolean;
  /** Rows with `__error__` are to be deleted, before `outputs` are stored. */
  readonly dropErrorRows: boolean;
  /** When to send `wake` at the latest; null: no time of its own. */
  readonly wakeAt: UnixMs | null;
  readonly counts: {
    /** Tries that were begun; one that is begun again, because its process is gone, counts again. */
    readonly stepsExecuted: number;
    /** Those of them that the evaluation itself has run. */
    readonly stepsInPlace: number;
    /** Tries that failed, whether or not another one follows. */
    readonly stepsFailed: number;
    readonly stepsRetried: number;
    /** Limits of time that were passed, of whatever. */
    readonly timeouts: number;
    /** Deadlines of steps. */
    readonly breaches: number;
  };
  /** The event was about a try that is not open: nothing happened. */
  readonly stale?: true;
}
