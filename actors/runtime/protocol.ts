/**
 * Every message that crosses threads: arrays of flat objects, posted once per destination and event-loop turn. Cloned
 * by the hundred, an object of one shape costs less than half a microsecond more than a tuple
 * (docs/decisions/0007-messages-between-threads.md). Bodies travel as JSON text and are parsed once, by their owner.
 */

import type { ErrorData } from '../../src/base/errors.js';
import type { UnixMs } from '../../src/base/time.js';
import type { StepTry } from '../../src/core/progress.js';
import type { SecretText } from '../../src/core/secret-texts.js';
import type { ShardRequest } from '../../src/http/shards.js';

/** Secrets that the parameters of a call refer to. */
export type NamedSecrets = { readonly tenant: string; readonly texts: readonly SecretText[] };

export interface Request extends ShardRequest<string> {
  readonly id: number;
}

export interface RequestPost {
  readonly requests: readonly Request[];
  /** Requests whose clients disconnected: a parked poll is dropped, a claim is withdrawn. */
  readonly aborted: readonly number[];
}

/** A claim of a task, valid until its epoch changes. */
export type TaskClaim = { readonly task: string; readonly epoch: number };

/** @property record the wire record as JSON text */
export interface FoundTask extends TaskClaim {
  readonly record: string;
}

/** The front thread may cache the record of an instance while it is current (`versions.ts`). */
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
  /** The tasks that a poll claimed; withdrawn if its client has disconnected. */
  readonly claims?: readonly TaskClaim[];
  /** Hint for the front thread: a stored event fires triggers. */
  readonly fires?: true;
  /** Added while the reply waits for its commit. */
  known?: KnownRecord | undefined;
  /** The reply may wait (`actors/instance/answers.ts`). */
  readonly parking?: Parking;
  /** For the front thread: the reply only says how things stand, and another one follows. */
  readonly parks?: true;
}

/** What a request waits for: the end of the instance, or with `signal` a step that takes it. */
export interface Parking {
  readonly instance: string;
  /** '': all tenants. */
  readonly tenant: string;
  readonly until: UnixMs;
  readonly deduplicated: boolean;
  readonly signal?: { readonly id: string; readonly seq: number };
  /** The request is parked, and its instance has been asked. */
  readonly isAsked?: true;
}

export type Reply = SuccessReply | { readonly request: number; readonly error: ErrorData };

/** A message of an instance to its parent or a child. */
export interface FamilyMessage {
  readonly to: string;
  readonly from: string;
  /** The id of the message: the same instance may send a later one. */
  readonly id: string;
  /**
   * A command to the child, or its end for the parent. `clean_up`: like `retry` if it has something to
   * clean up; otherwise it reports its end again. `gone`: it was cancelled or removed before its retry.
   */
  readonly word:
    | ('cancel' | 'pause' | 'resume' | 'retry' | 'clean_up')
    | ('completed' | 'failed' | 'cancelled' | 'gone');
}

/** A union of objects, one for each kind, with its members. */
export type OneOf<Members> = {
  [Kind in keyof Members]: { readonly kind: Kind } & Readonly<Members[Kind]>;
}[keyof Members];

/** By kind. A hint may be lost: its row has the same information. */
interface PeerMessages {
  /** A validated creation (JSON) for the actor of its idempotency key. */
  create: { request: number; creation: string };
  /** A creation (JSON) for a batch of another shard, which may create nothing; answered by `create.answer`. */
  'create.ask': { ticket: number; replyTo: number; creation: string };
  'create.answer': { ticket: number; answer: string };
  /** A creation waits for the end of the instance, which exists. */
  'result.ask': {
    request: number;
    instance: string;
    tenant: string;
    until: UnixMs;
    deduplicated: boolean;
  };
  /** A validated creation (JSON, `instance/collected.ts`) for the actor that collects it. */
  collect: { request: number; creation: string; replyTo?: number };
  /** The answer (JSON) to an internal request of the shard that sent `collect`. */
  'collect.answer': { request: number; answer: string };
  /** A request for the shard that its body determines. */
  request: { request: Request };
  /** Hint: the instance has work at that time (row: its timer). */
  wake: { instance: string; at: UnixMs; rank: number; tenant: string };
  /** Hint: the task waits for a worker (row: worker_tasks). */
  'task.ready': {
    handler: string;
    task: string;
    instance: string;
    tenant: string;
    queue: string;
    rank: number;
    createdAt: UnixMs;
  };
  /** Hint: the task is no longer offered (its row has no rank, or one below those offered). */
  'task.gone': { handler: string; task: string; tenant: string; queue: string };
  /** A queue selected the task for a poll. */
  claim: {
    handler: string;
    poll: number;
    task: string;
    instance: string;
    worker: string;
    maySeeSecrets?: true | undefined;
    queueShard: number;
  };
  /** Epoch above 0: committed, with the wire record (JSON). 0: no such task. -1: unknown, offer it again. */
  claimed: {
    handler: string;
    poll: number;
    task: string;
    epoch: number;
    record: string;
    /** Inserted into the parameters before the worker receives the task. */
    secrets?: NamedSecrets | undefined;
  };
  /** Results of an exchange (JSON) for tasks of the shard; answered by `exchange.outcomes`. */
  'exchange.results': {
    request: number;
    desk: number;
    tenant: string;
    worker: string;
    results: string;
  };
  /** The outcomes as JSON texts, in the order of the results. */
  'exchange.outcomes': {
    request: number;
    shard: number;
    isRefused: boolean;
    outcomes: readonly string[];
  };
  /** The part of an exchange's poll for queues of the shard; answered by `poll.answer`. */
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
    /** Of a worker inside the engine. */
    isOwn?: true | undefined;
  };
  /** The part of the poll ends. */
  'poll.end': { request: number };
  /** The worker stops: all its polls end. */
  'polls.end': { tenant: string; worker: string };
  'poll.answer': { request: number; shard: number; found: readonly FoundTask[] };
  /** A claimed task refers to a missing secret: its step fails permanently. */
  'secret.missing': { reason: string } & TaskClaim;
  /** The client of the poll has disconnected: the claim at this epoch is withdrawn. */
  unclaim: TaskClaim;
  /** Hint: the instance waits for a slot of its concurrency key (row: permit_requests). */
  'permit.wanted': {
    key: string;
    instance: string;
    tenant: string;
    number: number;
    max: number;
    createdAt: UnixMs;
    /** For the first request of an instance; null: it waits. */
    whenFull: 'cancel_oldest' | 'cancel_newest' | null;
  };
  /** Hint: the instance withdraws its request or releases the slot (permit_requests has no row). */
  'permit.left': { key: string; instance: string; number: number };
  /** Hint: the instance has the slot (row: permits). */
  'permit.granted': { instance: string; number: number };
  /** Hint: there is no slot for the instance, or no longer: it is cancelled (rows: those of the key). */
  'permit.denied': { instance: string; number: number; why: 'cancel_oldest' | 'cancel_newest' };
  /** Hint: the instance waits for its start by a throttle (row: start_requests). */
  'start.wanted': {
    key: string;
    instance: string;
    tenant: string;
    createdAt: UnixMs;
    limit: number;
    perMs: number;
    burst: number;
  };
  /** Hint: the instance no longer waits for its start (start_requests has no row). */
  'start.left': { key: string; instance: string };
  /** The instance may start until then (row: start_grants). If it is lost, the key repeats it. */
  'start.granted': { key: string; instance: string; grant: number; usableUntil: UnixMs };
  /** When the grant was used, or null. If the message is lost, the latest time counts. */
  'start.used': { key: string; grant: number; at: UnixMs | null };
  /** A try requests a grant of its rate limit, repeatedly until there is an answer. */
  'rate.asked': { limit: string; tenant: string; name: string; instance: string } & StepTry;
  /** The try may begin until then (row: rate_grants); `grant` is 0 without a limit. */
  'rate.granted': {
    instance: string;
    limit: string;
    step: StepTry;
    grant: number;
    usableUntil: UnixMs;
  };
  /** The limit is reached: the try requests again at that time. */
  'rate.deferred': { instance: string; step: StepTry; until: UnixMs };
  /** The limit was changed: the try may request again now. */
  'rate.changed': { instance: string; step: StepTry };
  /** When the grant was used, or null. If the message is lost, the latest time counts. */
  'rate.used': { limit: string; grant: number; at: UnixMs | null };
  /** Patterns of rate limits have changed: the shard reads those of the tenants (row: rate_limits). */
  'rates.read': { version: number; tenants: readonly string[] };
  /** The shard has applied every change before this version. */
  'rates.settled': { version: number; shard: number };
  /** Hint: a step waits for an event of the key (row: event_waits). */
  'event.wanted': { key: string; wait: string; instance: string };
  /** Hint: the wait has ended (event_waits has no row). */
  'event.unwanted': { key: string; wait: string };
  /** Hint: the event is for the wait (row: events.targets). The payload is JSON text. */
  'event.arrived': { key: string; event: string; wait: string; instance: string; payload: string };
  /** Hint: an event has left orders to cancel (row: event_cancels). */
  'event.cancels': Record<never, never>;
  /** Hint: an event has left orders to take out collected creations (row: collected_cancels). */
  'start.cancels': Record<never, never>;
  /** Hint: the event cancels the instance (row: event_cancels). */
  'event.cancel': { instance: string; event: string; name: string; key: string | null };
  /**
   * Hint: the outcome for the wait. `taken`, `refused`: committed (row: event_takes). `gone`: there is no
   * such wait any more, and the rows have the reason.
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
  /** The routing releases have changed: read them, and answer when earlier routing is durable. */
  'routes.read': { version: number };
  'routes.settled': { version: number; shard: number };
  /** These names may resolve differently now; '' is all names. Answered by `names.settled`. */
  'names.forget': { version: number; names: readonly string[] };
  'names.settled': { version: number; shard: number };
  /** The subscriptions of these tenants ('': all) have changed; answered by `subscriptions.settled`. */
  'subscriptions.read': { version: number; tenants: readonly string[] };
  'subscriptions.settled': { version: number; shard: number };
  /** The worker endpoints of these tenants ('': all) have changed; answered by `endpoints.settled`. */
  'endpoints.read': { version: number; tenants: readonly string[] };
  'endpoints.settled': { version: number; shard: number };
  /** Hint: a message of an instance to its parent or a child (row: kin_notes). */
  'family.message': FamilyMessage;
  /** Hint: an instance routed by the release has ended (row: release_outcomes). */
  'release.ended': { release: string };
  /** An order of an execution to an instance (JSON: `Order`); answered by `continuity.answer`. */
  'continuity.order': { instance: string; order: string };
  'continuity.answer': { ticket: number; answer: string };
  /** A fenced instance asks whether the fence still holds (rows: execution, handoffs). */
  'continuity.ask': { execution: string; instance: string };
  /** The rows of the sequence are deleted: drop its plan and its instances. */
  'sequence.evict': { sequence: string };
}

export type PeerMessage = OneOf<PeerMessages>;

export type ReadyHint = Extract<PeerMessage, { kind: 'task.ready' }>;
