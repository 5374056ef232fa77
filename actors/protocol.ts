/**
 * Every message that crosses a thread, and nothing else. The data plane is arrays of tuples, posted
 * once per destination and event-loop turn: a tuple of strings and numbers costs a fraction of an
 * object to clone. Bodies travel as JSON text and are parsed once, by their owner.
 */

import type { UnitGate } from '../src/core/unit.js';
import type { ErrorData } from '../src/errors.js';
import type { UnitCounts } from '../src/metrics/ledger.js';

// ---------------------------------------------------------------- shard → writer

/**
 * One commit unit. `seq` counts the units of one shard incarnation upwards. `actor` and
 * `incarnation` name who made it: when a unit is refused, all later units of the same incarnation
 * of that actor are refused with it. `mutations` is flat: index into MUTATION_KINDS, key, row, …
 * `counts`: what is counted if it is committed, unless its gate finds that nothing of it happens.
 */
export type UnitEnvelope = readonly [
  seq: number,
  actor: string,
  incarnation: number,
  gate: UnitGate,
  mutations: readonly (string | number)[],
  counts?: UnitCounts,
];

export interface UnitPost {
  readonly kind: 'units';
  readonly units: readonly UnitEnvelope[];
}

// ---------------------------------------------------------------- writer → shard

/** Outcomes, in the order of `seq` per actor. `suffix`: refused only because an earlier one was. */
export type Ack =
  | readonly [seq: number, outcome: 'committed']
  | readonly [seq: number, outcome: 'exists']
  | readonly [seq: number, outcome: 'born', ids: readonly string[]]
  | readonly [seq: number, outcome: 'refused', sqlState: string, message: string]
  | readonly [seq: number, outcome: 'suffix'];

export interface AckPost {
  readonly kind: 'acks';
  readonly acks: readonly Ack[];
}

// ---------------------------------------------------------------- front → shard

/** What a request asks of an actor: the ids of the operations that shards own. */
export type ShardOperation =
  | 'sequences.create'
  | 'sequences.deprecate'
  | 'sequences.delete'
  | 'instances.create'
  | 'instances.createBatch'
  | 'instances.get'
  | 'instances.tree'
  | 'instances.patchState'
  | 'instances.patchContext'
  | 'instances.signal'
  | 'instances.retry'
  | 'instances.saveCheckpoint'
  | 'instances.pruneCheckpoints'
  | 'instances.changeMany'
  | 'instances.watch'
  | 'instances.unwatch'
  | 'workers.poll'
  | 'workers.pollQueue'
  | 'workers.complete'
  | 'workers.fail'
  | 'workers.heartbeat'
  | 'workers.unclaim'
  | 'instances.injectBlocks'
  | 'instances.resumeFrom'
  | 'instances.fork'
  | 'sequences.migrateInstance'
  | 'rateLimits.put'
  | 'rateLimits.delete'
  | 'cron.create'
  | 'cron.update'
  | 'cron.delete'
  | 'apiKeys.mint'
  | 'apiKeys.revoke'
  | 'apiKeys.used'
  | 'webhooks.redeliver'
  | 'webhooks.discard'
  | 'changes.watermark'
  | 'changes.watch'
  | 'changes.unwatch'
  | 'instances.purge'
  | 'releases.create'
  | 'releases.beginValidation'
  | 'releases.endValidation'
  | 'releases.canary'
  | 'releases.evaluate'
  | 'releases.promote'
  | 'releases.pause'
  | 'releases.rollback'
  | 'continuity.create'
  | 'continuity.claim'
  | 'continuity.appendProvenance'
  | 'continuity.place'
  | 'continuity.preview'
  | 'continuity.resolveEffect'
  | 'migrations.plan'
  | 'migrations.apply'
  | 'migrations.rollback'
  | 'runtimes.register'
  | 'handoffs.create'
  | 'handoffs.export'
  | 'handoffs.attach'
  | 'handoffs.accept'
  | 'handoffs.resume'
  | 'handoffs.reject'
  | 'handoffs.revoke'
  | 'capsules.import';

/**
 * @property id numbers the request at the front; its reply carries the same number
 * @property tenant '' when the caller named none, which only an optional tenant header allows
 * @property target the id in the path, lower case; '' when the path has none
 * @property body JSON text as received; '' when the request has none; of a watch, the version that
 *   its caller has seen
 * @property traceparent of what begins or moves an instance, when its caller is traced; well formed
 */
export type Request = readonly [
  id: number,
  operation: ShardOperation,
  tenant: string,
  target: string,
  body: string,
  traceparent?: string,
];

export interface RequestPost {
  readonly kind: 'requests';
  readonly requests: readonly Request[];
  /** Requests whose clients went away: a parked poll is forgotten, a claim is taken back. */
  readonly aborted: readonly number[];
}

// ---------------------------------------------------------------- shard → front

/** The tasks that a poll claimed, to be taken back if its client is gone: (task, epoch) pairs. */
export type ClaimList = readonly (readonly [taskId: string, epoch: number])[];

export type Reply =
  | readonly [id: number, status: number, body: string]
  | readonly [id: number, status: number, body: string, claims: ClaimList]
  | readonly [id: number, status: 0, error: ErrorData];

export interface ReplyPost {
  readonly kind: 'replies';
  readonly replies: readonly Reply[];
}

// ---------------------------------------------------------------- shard → shard

/** Operations whose bodies name their owner. */
export type HandedOnOperation =
  | 'workers.poll'
  | 'workers.pollQueue'
  | 'sequences.migrateInstance'
  | 'continuity.create'
  | 'continuity.claim'
  | 'migrations.plan'
  | 'handoffs.create'
  | 'capsules.import';

export type PeerMessage =
  /** A parsed and validated creation that belongs to the actor of its idempotency key. */
  | readonly [kind: 'create', request: number, instance: string]
  /** A request whose owner its body names, on another shard than that: a poll, or a migration. */
  | readonly [
      kind: 'poll',
      request: number,
      tenant: string,
      body: string,
      operation: HandedOnOperation,
    ]
  /** Hint: look at this instance at that time (row: its timer). */
  | readonly [kind: 'wake', instance: string, at: number, rank: number]
  /** Hint: this task waits for a worker (row: open_tasks). */
  | readonly [
      kind: 'task.ready',
      handler: string,
      task: string,
      instance: string,
      tenant: string,
      queue: string,
      rank: number,
      createdAt: number,
    ]
  /** Hint: this task is not offered any more (row: open_tasks is gone). */
  | readonly [kind: 'task.gone', handler: string, task: string]
  /** A queue picked this task for a poll. */
  | readonly [
      kind: 'claim',
      handler: string,
      poll: number,
      task: string,
      instance: string,
      worker: string,
      queueShard: number,
    ]
  /**
   * What became of a claim. Epoch above 0: committed, with the task's wire record as JSON text.
   * 0: the task is gone. -1: not known, the queue offers it again.
   */
  | readonly [
      kind: 'claimed',
      handler: string,
      poll: number,
      task: string,
      epoch: number,
      record: string,
    ]
  /** The poller is gone: the claim at this epoch is taken back. */
  | readonly [kind: 'unclaim', task: string, epoch: number]
  /** Hint: the instance waits for a slot of its concurrency key (row: permit_requests). */
  | readonly [
      kind: 'permit.wanted',
      key: string,
      instance: string,
      number: number,
      max: number,
      createdAt: number,
    ]
  /** Hint: it does not want that slot any more, or gives it back (row: permit_requests is gone). */
  | readonly [kind: 'permit.left', key: string, instance: string, number: number]
  /** Hint: the slot is the instance's (row: permits). */
  | readonly [kind: 'permit.granted', instance: string, number: number]
  /** A try asks its rate limit; it asks again after a while without an answer. */
  | readonly [
      kind: 'rate.asked',
      limit: string,
      instance: string,
      node: number,
      iteration: string,
      attempt: number,
    ]
  /** The try may begin until then (row: rate_grants); `grant` is 0 where nothing is counted. */
  | readonly [
      kind: 'rate.granted',
      instance: string,
      node: number,
      iteration: string,
      attempt: number,
      grant: number,
      usableUntil: number,
    ]
  /** The limit is reached: the try asks again at that time. */
  | readonly [
      kind: 'rate.deferred',
      instance: string,
      node: number,
      iteration: string,
      attempt: number,
      until: number,
    ]
  /** The limit was changed: the try may ask again at once. */
  | readonly [
      kind: 'rate.changed',
      instance: string,
      node: number,
      iteration: string,
      attempt: number,
    ]
  /** When the grant was used; null when it was not. Without it, the latest time counts. */
  | readonly [kind: 'rate.used', limit: string, grant: number, at: number | null]
  /** Part of the barrier before a sequence is deleted; answered by `sequence.settled`. */
  | readonly [kind: 'sequence.block', sequence: string, blocked: boolean]
  | readonly [kind: 'sequence.settled', sequence: string, shard: number]
  /** The releases that route have changed: read them, and answer when what was routed before is durable. */
  | readonly [kind: 'routes.read', version: number]
  | readonly [kind: 'routes.settled', version: number, shard: number]
  /** Hint: an instance that the release routed has ended (row: release_outcomes). */
  | readonly [kind: 'release.ended', release: string]
  /** Of a desk to an instance (JSON: `Order`); answered by `continuity.answer`. */
  | readonly [kind: 'continuity.order', instance: string, order: string]
  | readonly [kind: 'continuity.answer', ticket: number, answer: string]
  /** A fenced instance asks its desk whether the fence still stands (rows: execution, handoffs). */
  | readonly [kind: 'continuity.ask', execution: string, instance: string, tenant: string]
  /** The sequence's rows are gone: forget its plan and its instances. */
  | readonly [kind: 'sequence.evict', sequence: string];

export interface PeerPost {
  readonly kind: 'peer';
  readonly from: number;
  readonly messages: readonly PeerMessage[];
}
