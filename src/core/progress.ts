/** The input and output of the evaluator as plain data. The progress of one event is stored in one commit. */

import type { Execution, OpenEffect } from '../../schema/execution.js';
import type { Failure, FailureCode } from '../../schema/failure.js';
import type { InstanceState, Words } from '../../schema/states.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import type { MapLike } from '../base/lazy-map.js';
import type { UnixMs } from '../base/time.js';
import type { GateAnswer } from './blocks/gate.js';
import type { LogLevel, StepOutcome } from './builtin.js';
import type { EffectOutcome } from './effects.js';
import type { ItemOutputs } from './loop-items.js';
import type { SecretText } from './secret-texts.js';

/** Owned by the instance's actor and changed in place; rebuilt from rows if a commit is refused. */
export interface Snapshot {
  readonly id: string;
  /** IANA name. */
  readonly timezone: string;
  state: InstanceState;
  nextFireAt: UnixMs | null;
  /** The time limit, counted from the first step; absent or null: none. */
  readonly timeoutMs?: number | null;
  /** Sections of the context, which are replaced and never changed in place. */
  data: JsonObject;
  config: JsonObject;
  /** The section of the engine, which is changed in place. */
  runtime: JsonObject;
  execution: Execution;
  /** The latest output of each block in `plan.outputRefs`, `__error__` rows included. */
  outputs: MapLike<string, KeptOutput>;
  /** The items of for_each blocks, by the keys of `Progress.snapshots`. */
  snapshots: MapLike<string, JsonValue[]>;
  /** The outputs of those items, by the same keys. */
  items?: Record<string, ItemOutputs>;
  /** Signals that no wait has taken, oldest first. */
  signals?: KeptSignal[];
  /** For hooks: `data._error` outside of all blocks. */
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
  /** Without the prefix `custom:`. */
  readonly name: string;
  readonly payload: JsonValue;
  /** The length of its payload as text. */
  readonly characters: number;
  /** The name of the API key that sent it. */
  readonly by?: string;
  /** The groups for which its sender may answer approvals. Absent: all. */
  readonly groups?: readonly string[];
}

/** A consumed signal. `refused`: the payload violates the schema of the wait, which continues. */
export interface TakenSignal {
  readonly seq: number;
  readonly blockId: string;
  readonly status: 'taken' | 'refused';
  /** The rendered `reply` of the step; absent if it has none. */
  reply?: JsonValue;
}

/** One try of one step. `iteration` is the path of loop counters, '' outside of loops. */
export interface StepTry {
  /** The index in the plan; below 0 it names a deadline handler (`deadline-handlers.ts`). */
  readonly node: number;
  readonly iteration: string;
  readonly attempt: number;
}

/** About one try of one block, whose kind handles it. */
export type TryEvent = StepTry &
  /** From a worker (`external`) or from a handler of this process. */
  (
    | { readonly kind: 'step.outcome'; readonly outcome: StepOutcome; readonly external: boolean }
    /** The answer has been validated. */
    | { readonly kind: 'gate.answered'; readonly answer: GateAnswer }
    /** Postgres refused the output: the step fails for good. */
    | { readonly kind: 'step.refused'; readonly message: string }
    /** A worker has claimed the task: the timeout counts from now. */
    | { readonly kind: 'step.claimed' }
    /** The claim is over, and the task waits for a worker again. */
    | { readonly kind: 'step.returned' }
    | { readonly kind: 'rate.granted' }
    /** The limit is reached: the step repeats its request at `until`. */
    | { readonly kind: 'rate.deferred'; readonly until: UnixMs }
    /** The limit was changed: deferred tries repeat their request. */
    | { readonly kind: 'rate.changed' }
    | { readonly kind: 'child.made'; readonly child: string }
    /** The child of this block has ended, or could not be created. */
    | { readonly kind: 'child.ended'; readonly end: ChildEnd }
    /** The awaited event; without `event`, a kept signal. */
    | {
        readonly kind: 'event.arrived';
        readonly event?: { readonly id: string; readonly payload: JsonValue };
      }
  );

export type EngineEvent =
  | TryEvent
  /** Created, resumed, due, or with more to do. `recovered`: tries whose process has ended are dispatched again. */
  | { readonly kind: 'wake'; readonly recovered?: boolean }
  /** The instance has received its slot; from now on `Env.holdsPermit` is true. */
  | { readonly kind: 'admitted' }
  /** The throttle of the sequence lets it start now: `Env.mayStart` is true. */
  | { readonly kind: 'start.granted' }
  /** The signal: everything but protected work is cut off. */
  | { readonly kind: 'cancel' }
  /** The hard stop: nothing more runs. */
  | {
      readonly kind: 'stop';
      readonly state: 'completed' | 'failed' | 'cancelled';
      /** For `failed`; absent: failed by request. */
      readonly failure?: Pick<Failure, 'code' | 'message'>;
    }
  /** The rest of the running hooks cannot be run. */
  | { readonly kind: 'hooks.dropped'; readonly message: string }
  | { readonly kind: 'pause'; readonly byParent?: true }
  /** A paused instance is scheduled for when it would continue; the `wake` that follows starts it. */
  | { readonly kind: 'resume' }
  /** Waits by request: nothing new starts until an outcome or a reschedule. */
  | { readonly kind: 'park' }
  /** Nothing new starts before `at` (null: now); open work continues. */
  | { readonly kind: 'reschedule'; readonly at: UnixMs | null }
  /** A failed instance is scheduled now; completed blocks do not run again. */
  | { readonly kind: 'retry' }
  /** In any state: scheduled now, as if this root and all later ones had not been reached. */
  | { readonly kind: 'rewind'; readonly node: number };

export interface Env {
  readonly now: UnixMs;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** What follows a retryable failure of an external step without a retry policy (docs/reference/steps.md). */
  readonly unpoliciedRetry: 'redispatch' | 'fail';
  /** Whether the context may be as large as with this data. Absent: always. */
  readonly fitsContext?: (data: JsonObject) => boolean;
  /** Blocks started and iterations in one turn, which bounds its time. */
  readonly stepBudget: number;
  /** Characters of outputs, parameters and snapshots in one turn; the last one may exceed it. */
  readonly outputBytesBudget: number;
  /** Whether the turn has used up its time, which the budgets do not bound. Checked between blocks. Absent: never. */
  readonly isOver?: () => boolean;
  /** False: the instance waits for a slot of its concurrency key (`Execution.w`). Absent: it needs none. */
  readonly holdsPermit?: boolean;
  /** False: an instance that has not started waits for its throttle (`Execution.i`). Absent: it has none. */
  readonly mayStart?: boolean;
  readonly isRateLimited?: (key: string) => boolean;
  /** The extended time limit of a task: for its claim or, with `queueTimeoutMs`, for its wait in the queue. */
  readonly extendedUntil?: (
    step: { readonly blockId: string; readonly iteration: string },
    queueTimeoutMs: number | null,
  ) => UnixMs | undefined;
}

/** Marks the row of an answer at a gate, which is an output, but not that of the step's handler. */
export const GATE_REF = 'human_input';
/** Between the iteration and the id of such a row. */
export const NOTE_MARK = '!';

export interface OutputRow {
  readonly blockId: string;
  /** '' outside of loops; '2' in the third iteration of a loop; '2.0' in a loop inside it. */
  readonly iteration: string;
  readonly tryNumber: number;
  /** As shown to callers: the try, or inside loops the number of the block's row (docs/reference/instances.md). */
  readonly attempt: number;
  readonly output: JsonValue;
  readonly outputRef: '__error__' | typeof GATE_REF | null;
}

export interface Dispatch extends StepTry {
  readonly blockId: string;
  readonly handler: string;
  readonly external: boolean;
  readonly queueName: string | null;
  readonly params: JsonValue;
  readonly timeoutMs: number | null;
  /** What the step sees over context.data, such as the items of the for_each blocks around it. */
  readonly overlay: JsonObject | null;
  /** How often the step began again in its iteration: a part of its idempotency key. */
  readonly runs: number;
  readonly secrets?: readonly SecretText[] | undefined;
}

/** Work that must stop: a task to be withdrawn, or a handler to be aborted. */
export interface Withdrawal extends StepTry {
  readonly blockId: string;
  readonly external: boolean;
  /** `unclaimed`: no worker has claimed it in time; `deadline`: the deadline of the step has passed. */
  readonly reason: 'cancelled' | 'timed_out' | 'unclaimed' | 'deadline';
}

/** A try with an effect has ended, with its outcome or cut off. */
export interface EndedEffect extends StepTry {
  readonly effect: OpenEffect;
  readonly outcome: EffectOutcome;
}

/** A gate that was answered or has timed out. Without an id it was never published. */
export type EndedGate = { readonly id: string; readonly at: UnixMs } & (
  | { readonly end: 'timed_out' | 'escalated' }
  | ({ readonly end: 'answered' } & Pick<GateAnswer, 'value' | 'comment' | 'by' | 'answerId'>)
);

/** A block that has completed or failed; `ms`: since it began, with its waits and retries. */
export interface EndedBlock {
  readonly id: string;
  readonly isFailed: boolean;
  readonly ms: number;
}

export interface RateRequest extends StepTry {
  readonly blockId: string;
  readonly key: string;
}

export interface ChildStart extends StepTry {
  readonly kind: 'start';
  readonly blockId: string;
  readonly child: string;
  readonly sequence: string;
  readonly version: number | null;
  readonly input: JsonObject;
}

export type ChildOrder =
  | ChildStart
  /** The parent no longer waits for the child, which is not created if it does not exist yet. */
  | ({ readonly kind: 'cancel'; readonly child: string | undefined } & StepTry)
  /** Requests the end of a child again, since its event may be lost. */
  | ({ readonly kind: 'look'; readonly child: string } & StepTry)
  /** The failed child of a failed parent is retried; with `clean_up` only if it has something to clean up. */
  | ({ readonly kind: 'retry' | 'clean_up'; readonly child: string } & StepTry);

export type ChildEnd =
  | { readonly kind: 'completed'; readonly output: JsonValue }
  | {
      readonly kind: 'failed';
      readonly code: FailureCode;
      readonly message: string;
      readonly details?: JsonObject;
      /** For a child that can be retried: identifies repeated reports of the same failure. */
      readonly note?: string;
      /** A retry of the child has something to clean up. Older engines do not set this. */
      readonly owes?: true;
      /** The child could not be retried, since it had been cancelled or removed. */
      readonly isGone?: true;
    };

export interface LogLine {
  readonly blockId: string;
  readonly level: LogLevel;
  readonly message: JsonValue;
}

export interface AuditEvent {
  readonly eventType: Words<
    | 'state_transition step_failed step_retried gate_answered gate_refused gate_timed_out'
    | 'gate_escalated block_failed hook_failed saga_compensated output_truncated deadline_breached'
    | 'deadline_handler_failed resumed_from data_changed blocks_injected cancelling migrated forked'
    | 'batch_action event_taken event_refused key_full cancelled_by_event'
  >;
  readonly fromState?: InstanceState;
  readonly toState?: InstanceState;
  readonly blockId?: string;
  readonly details?: JsonObject;
  /** For the transition to `failed`. */
  readonly failure?: Failure;
}

export interface Progress {
  readonly outputs: OutputRow[];
  readonly dispatches: Dispatch[];
  readonly withdrawals: Withdrawal[];
  readonly rateRequests: RateRequest[];
  effects?: EndedEffect[];
  children?: ChildOrder[];
  takenSignals?: TakenSignal[];
  /** The reply of a gate that an answer from outside has passed. */
  reply?: JsonValue;
  /** A step has begun to wait for an event. */
  opensEventWait?: true;
  gates?: EndedGate[];
  /** For statistics; without hooks. */
  ended?: EndedBlock[];
  readonly snapshots: { readonly key: string; readonly items: JsonValue[] }[];
  /** To be deleted before `snapshots` are stored. */
  readonly droppedSnapshots: string[];
  /** Blocks that run again, whose rows are deleted before `outputs` are stored. */
  readonly droppedOutputs: string[];
  readonly logs: LogLine[];
  readonly audit: AuditEvent[];
  /** More work is due: send `wake` after the commit. */
  more: boolean;
  /** Delete rows with `__error__` before `outputs` are stored. */
  dropErrorRows: boolean;
  /** When to send `wake` at the latest; null: not by time. */
  wakeAt: UnixMs | null;
  readonly counts: {
    /** Tries begun, including tries repeated because their process has ended. */
    stepsExecuted: number;
    stepsInPlace: number;
    /** Failed tries, retried or not. */
    stepsFailed: number;
    stepsRetried: number;
    /** Time limits that passed. */
    timeouts: number;
    /** Missed deadlines of steps. */
    breaches: number;
  };
  /** The event was about a try that is not open: nothing happened. */
  stale?: true;
}

export function noProgress(): Progress {
  return {
    outputs: [],
    dispatches: [],
    withdrawals: [],
    rateRequests: [],
    snapshots: [],
    droppedSnapshots: [],
    droppedOutputs: [],
    logs: [],
    audit: [],
    more: false,
    dropErrorRows: false,
    wakeAt: null,
    counts: {
      stepsExecuted: 0,
      stepsInPlace: 0,
      stepsFailed: 0,
      stepsRetried: 0,
      timeouts: 0,
      breaches: 0,
    },
  };
}
