/**
 * Every message that crosses a thread, and nothing else: arrays of flat objects, posted once per
 * destination and event-loop turn. Cloned by the hundred, an object of one shape costs less than half
 * a microsecond more than a tuple (docs/decisions/0007-messages-between-threads.md). Bodies travel
 * as JSON text and are parsed once, by their owner.
 */

import type { ErrorData } from '../../src/base/errors.js';
import type { UnixMs } from '../../src/base/time.js';
import type { StepTry } from '../../src/core/progress.js';
import type { SecretText } from '../../src/core/secret-texts.js';

/** Secrets that the parameters of a call name, and whose they are. */
export interface NamedSecrets {
  readonly tenant: string;
  readonly texts: readonly SecretText[];
}

// ---------------------------------------------------------------- front → shard

export interface Request {
  /** Numbers the request at the front; its reply names it. */
  readonly id: number;
  /** Its row in the table of operations (`shard/operations.ts`). */
  readonly operation: string;
  /** '' when the caller named none, which only an optional tenant header allows. */
  readonly tenant: string;
  /** The parameters of the path, lower case, with slashes between them; '' when it has none. */
  readonly target: string;
  /** JSON text as received; '' when the request has none. */
  readonly body: string;
  /** Of a route with one, checked; absent for every other. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  /** What the work belongs to, when its caller is traced; well formed. */
  readonly traceparent?: string | undefined;
  /** The key of the caller says that a worker with it is given the secrets of its tasks. */
  readonly maySeeSecrets?: true | undefined;
  /** The name of the key, of a route that brings signals. */
  readonly by?: string | undefined;
}

export interface RequestPost {
  readonly kind: 'requests';
  readonly requests: readonly Request[];
  /** Requests whose clients went away: a parked poll is forgotten, a claim is taken back. */
  readonly aborted: readonly number[];
}

export type ReadyHint = Extract<PeerMessage, { kind: 'task.ready' }>;

// ---------------------------------------------------------------- shard → front

/** A task that is claimed, until its epoch changes. */
export interface TaskClaim {
  readonly task: string;
  readonly epoch: number;
}

/** A claimed task, with its wire record as JSON text. */
export interface FoundTask extends TaskClaim {
  readonly record: string;
}

/** What a reader of an instance is shown, which the front thread may keep while it holds (`versions.ts`). */
export interface KnownRecord {
  readonly instance: string;
  readonly stamp: number;
  /** Absent: the body of the reply is the record. */
  readonly text?: string;
}

export type Reply =
  | {
      readonly request: number;
      readonly status: number;
      readonly body: string;
      /** The tasks that a poll claimed, to be taken back if its client is gone. */
      readonly claims?: readonly TaskClaim[];
      /** An event was stored that fires triggers: a hint for the front thread. */
      readonly fires?: true;
      readonly known?: KnownRecord;
    }
  | { readonly request: number; readonly error: ErrorData };

export interface ReplyPost {
  readonly kind: 'replies';
  readonly replies: readonly Reply[];
}

// ---------------------------------------------------------------- shard → shard

/** What an instance tells another one that it started, or that started it. */
export interface FamilyMessage {
  readonly to: string;
  readonly from: string;
  /** Of the note: there may be a later one from the same instance. */
  readonly id: string;
  /** To the child what it has to do, to the parent how the child has ended. */
  readonly word:
    | 'cancel'
    | 'pause'
    | 'resume'
    | 'retry'
    /** As `retry`, where it has something to clean up; else it tells its end once more. */
    | 'clean_up'
    | 'completed'
    | 'failed'
    | 'cancelled'
    /** It was to be retried, and had been cancelled or removed before. */
    | 'gone';
}

export type PeerMessage =
  /** A parsed and validated creation (JSON) that belongs to the actor of its idempotency key. */
  | { readonly kind: 'create'; readonly request: number; readonly creation: string }
  /** A request that came to another shard than the one that its body leads to. */
  | { readonly kind: 'request'; readonly request: Request }
  /** Hint: look at this instance at that time (row: its timer). */
  | {
      readonly kind: 'wake';
      readonly instance: string;
      readonly at: UnixMs;
      readonly rank: number;
      readonly tenant: string;
    }
  /** Hint: this task waits for a worker (row: open_tasks). */
  | {
      readonly kind: 'task.ready';
      readonly handler: string;
      readonly task: string;
      readonly instance: string;
      readonly tenant: string;
      readonly queue: string;
      readonly rank: number;
      readonly createdAt: UnixMs;
    }
  /** Hint: this task is not offered any more (row: open_tasks is gone). */
  | {
      readonly kind: 'task.gone';
      readonly handler: string;
      readonly task: string;
      readonly tenant: string;
      readonly queue: string;
    }
  /** A queue picked this task for a poll. */
  | {
      readonly kind: 'claim';
      readonly handler: string;
      readonly poll: number;
      readonly task: string;
      readonly instance: string;
      readonly worker: string;
      /** Whether the worker is to be given the secrets that its parameters name. */
      readonly maySeeSecrets?: true | undefined;
      readonly queueShard: number;
    }
  /**
   * What became of a claim. Epoch above 0: committed, with the task's wire record as JSON text.
   * 0: the task is gone. -1: not known, the queue offers it again.
   */
  | {
      readonly kind: 'claimed';
      readonly handler: string;
      readonly poll: number;
      readonly task: string;
      readonly epoch: number;
      readonly record: string;
      /** To be put into the parameters before the worker is given the task. */
      readonly secrets?: NamedSecrets | undefined;
    }
  /** Results of an exchange (JSON) whose tasks belong there; answered by `exchange.outcomes`. */
  | {
      readonly kind: 'exchange.results';
      readonly request: number;
      readonly desk: number;
      readonly tenant: string;
      readonly worker: string;
      readonly results: string;
    }
  /** What became of them, in their order: JSON texts; and whether any was refused. */
  | {
      readonly kind: 'exchange.outcomes';
      readonly request: number;
      readonly shard: number;
      readonly isRefused: boolean;
      readonly outcomes: readonly string[];
    }
  /** The part of an exchange's poll that queues there can serve; answered by `poll.answer`. */
  | {
      readonly kind: 'poll.ask';
      readonly request: number;
      readonly desk: number;
      readonly tenant: string;
      readonly worker: string;
      readonly version: string | null;
      readonly handlers: readonly string[];
      readonly queues: readonly string[];
      readonly limit: number;
      readonly until: UnixMs;
      readonly maySeeSecrets: true | undefined;
    }
  /** That part does not wait any longer. */
  | { readonly kind: 'poll.end'; readonly request: number }
  /** The worker stops: none of its polls waits any longer. */
  | { readonly kind: 'polls.end'; readonly tenant: string; readonly worker: string }
  | {
      readonly kind: 'poll.answer';
      readonly request: number;
      readonly shard: number;
      readonly found: readonly FoundTask[];
    }
  /** A claimed task names a secret that is not there: its step fails for good. */
  | ({ readonly kind: 'secret.missing'; readonly reason: string } & TaskClaim)
  /** The poller is gone: the claim at this epoch is taken back. */
  | ({ readonly kind: 'unclaim' } & TaskClaim)
  /** Hint: the instance waits for a slot of its concurrency key (row: permit_requests). */
  | {
      readonly kind: 'permit.wanted';
      readonly key: string;
      readonly instance: string;
      readonly tenant: string;
      readonly number: number;
      readonly max: number;
      readonly createdAt: UnixMs;
    }
  /** Hint: it does not want that slot any more, or gives it back (row: permit_requests is gone). */
  | {
      readonly kind: 'permit.left';
      readonly key: string;
      readonly instance: string;
      readonly number: number;
    }
  /** Hint: the slot is the instance's (row: permits). */
  | { readonly kind: 'permit.granted'; readonly instance: string; readonly number: number }
  /** A try asks its rate limit; it asks again after a while without an answer. */
  | ({ readonly kind: 'rate.asked'; readonly limit: string; readonly instance: string } & StepTry)
  /** The try may begin until then (row: rate_grants); `grant` is 0 where nothing is counted. */
  | {
      readonly kind: 'rate.granted';
      readonly instance: string;
      readonly step: StepTry;
      readonly grant: number;
      readonly usableUntil: UnixMs;
    }
  /** The limit is reached: the try asks again at that time. */
  | {
      readonly kind: 'rate.deferred';
      readonly instance: string;
      readonly step: StepTry;
      readonly until: UnixMs;
    }
  /** The limit was changed: the try may ask again at once. */
  | { readonly kind: 'rate.changed'; readonly instance: string; readonly step: StepTry }
  /** When the grant was used; null when it was not. Without it, the latest time counts. */
  | {
      readonly kind: 'rate.used';
      readonly limit: string;
      readonly grant: number;
      readonly at: UnixMs | null;
    }
  /** Hint: a step waits for an event of this key (row: event_waits). */
  | {
      readonly kind: 'event.wanted';
      readonly key: string;
      readonly wait: string;
      readonly instance: string;
    }
  /** Hint: that wait is over (its row is gone). */
  | { readonly kind: 'event.unwanted'; readonly key: string; readonly wait: string }
  /** Hint: the event is for this wait (row: events.targets). Its payload is JSON text. */
  | {
      readonly kind: 'event.arrived';
      readonly key: string;
      readonly event: string;
      readonly wait: string;
      readonly instance: string;
      readonly payload: string;
    }
  /**
   * Hint: what became of it. `taken`, `refused`: committed (row: event_takes). `gone`: there is no such
   * wait, or not any more, and the rows say why.
   */
  | {
      readonly kind: 'event.taken';
      readonly key: string;
      readonly event: string;
      readonly wait: string;
      readonly outcome: 'taken' | 'refused' | 'gone';
    }
  /** Part of the barrier before a sequence is deleted; answered by `sequence.settled`. */
  | { readonly kind: 'sequence.block'; readonly sequence: string; readonly isBlocked: boolean }
  | { readonly kind: 'sequence.settled'; readonly sequence: string; readonly shard: number }
  /** The releases that route have changed: read them, and answer when what was routed before is durable. */
  | { readonly kind: 'routes.read'; readonly version: number }
  | { readonly kind: 'routes.settled'; readonly version: number; readonly shard: number }
  /** These names may lead elsewhere now; '' stands for all. Answered by `names.settled`. */
  | { readonly kind: 'names.forget'; readonly version: number; readonly names: readonly string[] }
  | { readonly kind: 'names.settled'; readonly version: number; readonly shard: number }
  /** Those of these tenants have changed, '' stands for all; answered by `subscriptions.settled`. */
  | {
      readonly kind: 'subscriptions.read';
      readonly version: number;
      readonly tenants: readonly string[];
    }
  | { readonly kind: 'subscriptions.settled'; readonly version: number; readonly shard: number }
  /** Hint: an instance has to hear this of its parent, or of a child (row: kin_notes). */
  | ({ readonly kind: 'family.message' } & FamilyMessage)
  /** Hint: an instance that the release routed has ended (row: release_outcomes). */
  | { readonly kind: 'release.ended'; readonly release: string }
  /** Of an execution to an instance (JSON: `Order`); answered by `continuity.answer`. */
  | { readonly kind: 'continuity.order'; readonly instance: string; readonly order: string }
  | { readonly kind: 'continuity.answer'; readonly ticket: number; readonly answer: string }
  /** A fenced instance asks its execution whether the fence still stands (rows: execution, handoffs). */
  | { readonly kind: 'continuity.ask'; readonly execution: string; readonly instance: string }
  /** The sequence's rows are gone: forget its plan and its instances. */
  | { readonly kind: 'sequence.evict'; readonly sequence: string };

export interface PeerPost {
  readonly kind: 'peer';
  readonly from: number;
  readonly messages: readonly PeerMessage[];
}
