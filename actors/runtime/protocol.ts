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

/** Secrets of a tenant that the parameters of a call name. */
export interface NamedSecrets {
  readonly tenant: string;
  readonly texts: readonly SecretText[];
}

// ---------------------------------------------------------------- front → shard

export interface Request {
  /** Its number at the front. */
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
  /** Of a traced caller; well formed. */
  readonly traceparent?: string | undefined;
  /** With the key of the caller a worker receives the secrets of its tasks. */
  readonly maySeeSecrets?: true | undefined;
  /** The name of the key, of a route that brings signals. */
  readonly by?: string | undefined;
}

export interface RequestPost {
  readonly requests: readonly Request[];
  /** Requests whose clients disconnected: a parked poll is dropped, a claim is withdrawn. */
  readonly aborted: readonly number[];
}

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

/** The record of an instance, which the front thread may cache while it is current (`versions.ts`). */
export interface KnownRecord {
  readonly instance: string;
  readonly stamp: number;
  /** Absent: the body of the reply is the record. */
  readonly text?: string;
}

export interface SuccessReply {
  readonly request: number;
  readonly status: number;
  readonly body: string;
  /** The tasks that a poll claimed, which are withdrawn if its client has disconnected. */
  readonly claims?: readonly TaskClaim[];
  /** An event was stored that fires triggers: a hint for the front thread. */
  readonly fires?: true;
  /** Added while the reply waits for its commit. */
  known?: KnownRecord | undefined;
}

export type Reply = SuccessReply | { readonly request: number; readonly error: ErrorData };

// ---------------------------------------------------------------- shard → shard

/** A message of an instance to its parent or to one of its children. */
export interface FamilyMessage {
  readonly to: string;
  readonly from: string;
  /** Of the message: there may be a later one from the same instance. */
  readonly id: string;
  /**
   * A command to the child, or how it ended for the parent. `clean_up`: as `retry`, if it has something to
   * clean up; else it reports its end again. `gone`: it had been cancelled or removed before its retry.
   */
  readonly word:
    | ('cancel' | 'pause' | 'resume' | 'retry' | 'clean_up')
    | ('completed' | 'failed' | 'cancelled' | 'gone');
}

/** An object of every kind, with its members. */
export type OneOf<Members> = {
  [Kind in keyof Members]: { readonly kind: Kind } & Readonly<Members[Kind]>;
}[keyof Members];

/** By kind. A hint may be lost: the row that it names says the same. */
interface PeerMessages {
  /** A parsed and validated creation (JSON) that belongs to the actor of its idempotency key. */
  create: { request: number; creation: string };
  /** A request that came to another shard than the one that its body leads to. */
  request: { request: Request };
  /** Hint: look at this instance at that time (row: its timer). */
  wake: { instance: string; at: UnixMs; rank: number; tenant: string };
  /** Hint: this task waits for a worker (row: open_tasks). */
  'task.ready': {
    handler: string;
    task: string;
    instance: string;
    tenant: string;
    queue: string;
    rank: number;
    createdAt: UnixMs;
  };
  /** Hint: this task is not offered any more (row: open_tasks is gone). */
  'task.gone': { handler: string; task: string; tenant: string; queue: string };
  /** A queue picked this task for a poll. */
  claim: {
    handler: string;
    poll: number;
    task: string;
    instance: string;
    worker: string;
    maySeeSecrets?: true | undefined;
    queueShard: number;
  };
  /**
   * The outcome of a claim. Epoch above 0: committed, with the task's wire record as JSON text.
   * 0: the task is gone. -1: not known, the queue offers it again.
   */
  claimed: {
    handler: string;
    poll: number;
    task: string;
    epoch: number;
    record: string;
    /** Put into the parameters before the worker receives the task. */
    secrets?: NamedSecrets | undefined;
  };
  /** Results of an exchange (JSON) whose tasks belong there; answered by `exchange.outcomes`. */
  'exchange.results': {
    request: number;
    desk: number;
    tenant: string;
    worker: string;
    results: string;
  };
  /** Their outcomes, in their order: JSON texts; and whether any was refused. */
  'exchange.outcomes': {
    request: number;
    shard: number;
    isRefused: boolean;
    outcomes: readonly string[];
  };
  /** The part of an exchange's poll that queues there can serve; answered by `poll.answer`. */
  'poll.ask': {
    request: number;
    desk: number;
    tenant: string;
    worker: string;
    version: string | null;
    handlers: readonly string[];
    queues: readonly string[];
    limit: number;
    until: UnixMs;
    maySeeSecrets: true | undefined;
  };
  /** That part does not wait any longer. */
  'poll.end': { request: number };
  /** The worker stops: none of its polls waits any longer. */
  'polls.end': { tenant: string; worker: string };
  'poll.answer': { request: number; shard: number; found: readonly FoundTask[] };
  /** A claimed task names a secret that is not there: its step fails for good. */
  'secret.missing': { reason: string } & TaskClaim;
  /** The poller is gone: the claim at this epoch is taken back. */
  unclaim: TaskClaim;
  /** Hint: the instance waits for a slot of its concurrency key (row: permit_requests). */
  'permit.wanted': {
    key: string;
    instance: string;
    tenant: string;
    number: number;
    max: number;
    createdAt: UnixMs;
  };
  /** Hint: it does not want that slot any more, or gives it back (row: permit_requests is gone). */
  'permit.left': { key: string; instance: string; number: number };
  /** Hint: the slot is the instance's (row: permits). */
  'permit.granted': { instance: string; number: number };
  /** A try asks its rate limit; it asks again after a while without an answer. */
  'rate.asked': { limit: string; instance: string } & StepTry;
  /** The try may begin until then (row: rate_grants); `grant` is 0 where nothing is counted. */
  'rate.granted': { instance: string; step: StepTry; grant: number; usableUntil: UnixMs };
  /** The limit is reached: the try asks again at that time. */
  'rate.deferred': { instance: string; step: StepTry; until: UnixMs };
  /** The limit was changed: the try may ask again at once. */
  'rate.changed': { instance: string; step: StepTry };
  /** When the grant was used; null when it was not. Without it, the latest time counts. */
  'rate.used': { limit: string; grant: number; at: UnixMs | null };
  /** Hint: a step waits for an event of this key (row: event_waits). */
  'event.wanted': { key: string; wait: string; instance: string };
  /** Hint: that wait has ended (its row is gone). */
  'event.unwanted': { key: string; wait: string };
  /** Hint: the event is for this wait (row: events.targets). Its payload is JSON text. */
  'event.arrived': { key: string; event: string; wait: string; instance: string; payload: string };
  /**
   * Hint: the outcome for that wait. `taken`, `refused`: committed (row: event_takes). `gone`: there is no
   * such wait, or not any more, and the rows say why.
   */
  'event.taken': {
    key: string;
    event: string;
    wait: string;
    outcome: 'taken' | 'refused' | 'gone';
  };
  /** Part of the barrier before a sequence is deleted; answered by `sequence.settled`. */
  'sequence.block': { sequence: string; isBlocked: boolean };
  'sequence.settled': { sequence: string; shard: number };
  /** The releases that route have changed: read them, and answer when what was routed before is durable. */
  'routes.read': { version: number };
  'routes.settled': { version: number; shard: number };
  /** These names may lead elsewhere now; '' stands for all. Answered by `names.settled`. */
  'names.forget': { version: number; names: readonly string[] };
  'names.settled': { version: number; shard: number };
  /** Those of these tenants have changed, '' stands for all; answered by `subscriptions.settled`. */
  'subscriptions.read': { version: number; tenants: readonly string[] };
  'subscriptions.settled': { version: number; shard: number };
  /** Hint: a message of its parent, or of a child, to an instance (row: kin_notes). */
  'family.message': FamilyMessage;
  /** Hint: an instance that the release routed has ended (row: release_outcomes). */
  'release.ended': { release: string };
  /** Of an execution to an instance (JSON: `Order`); answered by `continuity.answer`. */
  'continuity.order': { instance: string; order: string };
  'continuity.answer': { ticket: number; answer: string };
  /** A fenced instance asks its execution whether the fence still stands (rows: execution, handoffs). */
  'continuity.ask': { execution: string; instance: string };
  /** The sequence's rows are gone: forget its plan and its instances. */
  'sequence.evict': { sequence: string };
}

export type PeerMessage = OneOf<PeerMessages>;

export type ReadyHint = Extract<PeerMessage, { kind: 'task.ready' }>;
