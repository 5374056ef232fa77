/**
 * The queues of one shard, one per handler name, and the registry of polling workers. The first
 * poll creates a queue, which reads its table, so hints for missing queues are dropped. Callers
 * choose the names, so memory is bounded: the least recently polled windows are evicted.
 */

import { ChurningMap } from '../../src/base/churning-map.js';
import { routeOf, shardOf } from '../../src/base/ids.js';
import type { JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import { lastUsed, valueFor } from '../../src/base/quota/last-used.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Secrets } from '../credential/secrets.js';
import type { Kernel } from '../runtime/kernel.js';
import type { NamedSecrets, PeerMessage, ReadyHint } from '../runtime/protocol.js';
import type { Messages, Room, Timers } from '../runtime/room.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { OpenPolls } from './core/statistics.js';
import type { OpenTaskRow, PollScope, QueueLoads } from './loads.js';
import { newPoll, type Place, type Poll, type PollRequest } from './poll.js';
import { QueueActor } from './queue.js';
import { WORKER } from './tables.js';
import type { Read, ReadyTask, TaskCount, Window } from './window.js';

type Needed = 'shard' | 'shards' | 'loader' | 'clock' | 'timers' | 'now' | 'schedule';

interface QueuesDeps extends ServiceDeps, Pick<Kernel<QueueLoads>, Needed> {
  readonly secrets: Pick<Secrets, 'fill'>;
}

type ClaimAnswer = Extract<PeerMessage, { kind: 'claimed' }>;
const WORKERS_REMEMBERED = 10_000;
const NAMES_MAX = 10_000;
const RELOAD_MS = 1_000;

export class Queues implements Room {
  readonly #service: Service;
  readonly #deps: QueuesDeps;
  readonly #queues = new Map<string, QueueActor>();
  /** Windows with their handlers, least recently polled first. */
  readonly #windows = new Map<Window, string>();
  readonly #count: TaskCount = { tasks: 0 };
  /** Parked and claiming polls, by request. */
  readonly #polls = new ChurningMap<number, Poll>();
  #pollCount = 0;
  /** Interned names, shared by waiting tasks. */
  readonly #names = new Map<string, string>();
  readonly #waits = new FairSlots([
    { activeMax: LIMITS.parkedPollsMax },
    { activeMax: LIMITS.parkedPollsPerTenantMax },
  ]);
  #isDraining = false;
  readonly #seenAt = lastUsed<string, UnixMs>(WORKERS_REMEMBERED);

  readonly messages = {
    'task.ready': (message) => this.#ready(message),
    'task.gone': ({ handler, task, tenant, queue }) =>
      this.#queues.get(handler)?.gone(task, tenant, queue),
    claimed: (message) => {
      // A failed claim has no record.
      const secrets = message.epoch > 0 ? message.secrets : undefined;
      if (secrets === undefined) this.#claimed(message, message.record);
      else this.#fill(message, secrets);
    },
  } satisfies Messages;

  readonly timers = {
    expire: ({ request }) => {
      const poll = this.#polls.get(request);
      if (poll !== undefined) queueOf(poll).expire(poll, this.#deps.now());
    },
  } satisfies Timers;

  constructor(deps: QueuesDeps) {
    this.#deps = deps;
    this.#service = new Service('queues', deps);
  }

  /** A repeated message is served once. */
  poll(requested: PollRequest): void {
    for (const handler of requested.isOwn ? [] : requested.handlers) {
      for (const queue of requested.queues) this.#seen(requested, handler, queue);
    }
    if (this.#polls.has(requested.request)) return;
    if (requested.limit === 0) {
      requested.answer([]);
      return;
    }
    const poll = newPoll(requested);
    if (this.#isDraining) poll.until = 0;
    this.#polls.set(requested.request, poll);
    this.#begin(poll);
    this.#evict();
  }

  #begin(poll: Poll): void {
    const { tenant, handlers, queues } = poll.requested;
    this.#pollCount += 1;
    poll.number = this.#pollCount;
    const places: Place[] = [];
    for (const handler of handlers) {
      const queue = this.#queue(handler);
      for (const name of queues) places.push(queue.place(tenant, name));
    }
    poll.places = places;
    queueOf(poll).poll(poll, this.#deps.now());
  }

  requestAborted(request: number): void {
    const poll = this.#polls.get(request);
    this.#polls.delete(request);
    if (poll !== undefined) queueOf(poll).abort(poll);
  }

  /** The response is sent as soon as claims are settled. */
  endWait(request: number): void {
    const poll = this.#polls.get(request);
    if (poll === undefined) return;
    poll.until = 0;
    queueOf(poll).expire(poll, this.#deps.now());
  }

  /** Ends parked polls, and parks no more. */
  drain(): void {
    this.#isDraining = true;
    this.answerParked();
  }

  answerParked(): void {
    for (const queue of this.#queues.values()) queue.answerParked();
  }

  /** Waiting polls that serve the tenant, or any if ''. A poll counts at each of its places. */
  openPolls(tenant: string): OpenPolls[] {
    const found = new Map<string, { handler: string; queue: string; polls: number }>();
    for (const { requested, leave } of this.#polls.values()) {
      const isSeen = tenant === '' || requested.tenant === '' || requested.tenant === tenant;
      if (leave === undefined || !isSeen) continue;
      // A poll for any queue is counted once per handler.
      const queues = requested.queues.includes('') ? [''] : requested.queues;
      for (const handler of requested.handlers) {
        for (const queue of queues) {
          const none = () => ({ handler, queue, polls: 0 });
          valueFor(found, JSON.stringify([handler, queue]), none).polls += 1;
        }
      }
    }
    return [...found.values()];
  }

  tenantSuspended(tenant: string): void {
    this.endWaitsOf(tenant);
    this.tenantBack();
  }

  /** Rows may have changed without hints, so windows are read again. */
  tenantBack(): void {
    for (const queue of this.#queues.values()) queue.dropClaims(() => false);
  }

  clockSet(jumpMs: number): void {
    if (jumpMs !== 0) this.answerParked();
  }

  /** Ends the waits of the tenant, or of one of its workers. */
  endWaitsOf(tenant: string, worker?: string): void {
    for (const { requested } of [...this.#polls.values()]) {
      const isOfWorker = worker === undefined || requested.worker === worker;
      if (requested.tenant === tenant && isOfWorker) this.endWait(requested.request);
    }
  }

  #ready({ handler, task: id, instance, tenant, queue, rank, createdAt }: ReadyHint): void {
    const actor = this.#queues.get(handler);
    if (actor === undefined || this.#deps.commits.suspended.has(tenant)) return;
    const names = { tenant: this.#name(tenant), queue: this.#name(queue) };
    actor.ready({ id, instance, ...names, rank, createdAt });
    this.#evict();
  }

  /** A hint before the commit serves only waiting polls, because another one follows the commit. */
  taskDecided(task: ReadyHint): void {
    if (this.#queues.get(task.handler)?.isAwaited === true) this.#ready(task);
  }

  #claimed({ handler, poll, task, epoch }: ClaimAnswer, record: string): void {
    const queue = this.#queues.get(handler);
    if (queue !== undefined) queue.claimed(poll, task, epoch, record);
    else if (epoch > 0) this.unclaim(task, epoch);
    if (queue?.isIdle) this.#queues.delete(handler);
  }

  /** Fills secrets into the parameters of a claimed task, or fails the task if one is missing. */
  #fill(message: ClaimAnswer, secrets: NamedSecrets): void {
    const { schedule, log, release, shards } = this.#deps;
    const { task, epoch } = message;
    const record = JSON.parse(message.record) as { params: JsonValue };
    const giveUp = () => this.#claimed({ ...message, epoch: 0 }, '');
    this.#deps.secrets.fill(record.params, secrets).then(
      (filled) =>
        schedule(() => {
          if (filled.ok) {
            record.params = filled.value.params;
            this.#claimed(message, JSON.stringify(record));
            return;
          }
          const shard = shardOf(routeOf(task), shards);
          const missing = { kind: 'secret.missing', task, epoch, reason: filled.message } as const;
          release([{ kind: 'peer', shard, message: missing }]);
          giveUp();
        }),
      (error: unknown) =>
        schedule(() => {
          log.warn({ task, err: error }, 'the secrets of a task could not be read');
          this.unclaim(task, epoch);
          giveUp();
        }),
    );
  }

  /** Claims requested from the restarted shard are void, and so are polls that it sent. */
  peerBack(shard: number): void {
    const isOfShard = (instance: string) => shardOf(routeOf(instance), this.#deps.shards) === shard;
    for (const queue of this.#queues.values()) queue.dropClaims(isOfShard);
    for (const { requested } of this.#polls.values())
      if (requested.asker === shard) this.requestAborted(requested.request);
  }

  /** Writes a row at most every `workerSeenEveryMs`, so that most polls cost no commit. */
  #seen({ tenant, worker, version }: PollRequest, handler: string, queue: string): void {
    const now = this.#deps.now();
    const key = JSON.stringify([tenant, worker, handler, queue]);
    if (now - (this.#seenAt.get(key) ?? 0) < LIMITS.workerSeenEveryMs) return;
    this.#seenAt.set(key, now);
    const turn = new Turn();
    turn.put(WORKER.seen, key, {
      tenant_id: tenant,
      worker_id: worker,
      handler_name: handler,
      queue_name: queue,
      version,
      last_seen_at: isoTime(now),
    });
    this.#service.commitNow(turn, {
      settled: (_error, ack) => {
        if (ack.outcome !== 'refused') return;
        this.#deps.log.warn({ sqlState: ack.sqlState }, 'worker row refused');
      },
    });
  }

  #queue(handler: string): QueueActor {
    let queue = this.#queues.get(handler);
    if (queue !== undefined) return queue;
    queue = new QueueActor(
      {
        claim: (poll, task) => this.#claim(handler, poll, task),
        unclaim: (task, epoch) => this.unclaim(task, epoch),
        answer: (poll) => {
          this.#polls.delete(poll.requested.request);
          poll.requested.answer(poll.claimed);
        },
        again: (poll) => this.#begin(poll),
        read: (window, read) => this.#read(handler, window, read),
        expireLater: ({ requested: { request }, until }) =>
          this.#deps.timers.push(until, { kind: 'expire', request }),
        used: (window) => {
          this.#windows.delete(window);
          this.#windows.set(window, handler);
        },
      },
      this.#count,
      this.#waits,
    );
    this.#queues.set(handler, queue);
    return queue;
  }

  #evict(): void {
    for (let remaining = this.#windows.size; remaining > 0; remaining--) {
      const isFull = this.#count.tasks > LIMITS.readyTasksMax;
      if (!isFull && this.#windows.size <= LIMITS.pollWindowsMax) return;
      const [window, handler] = this.#windows.entries().next().value as [Window, string];
      const queue = this.#queues.get(handler) as QueueActor;
      this.#windows.delete(window);
      if (!queue.evict(window)) this.#windows.set(window, handler);
      else if (queue.isIdle) this.#queues.delete(handler);
    }
  }

  #claim(handler: string, { number: poll, requested }: Poll, task: ReadyTask): void {
    const { shard, shards } = this.#deps;
    const { worker, maySeeSecrets } = requested;
    const { id, instance } = task;
    const names = { handler, poll, task: id, instance, worker };
    const message: PeerMessage = { kind: 'claim', ...names, maySeeSecrets, queueShard: shard };
    this.#deps.release([{ kind: 'peer', shard: shardOf(routeOf(instance), shards), message }]);
  }

  unclaim(task: string, epoch: number): void {
    const shard = shardOf(routeOf(task), this.#deps.shards);
    this.#deps.release([{ kind: 'peer', shard, message: { kind: 'unclaim', task, epoch } }]);
  }

  #read(handler: string, window: Window, read: Read): void {
    const { log, clock, now, schedule } = this.#deps;
    const queue = this.#queue(handler);
    const { tenant, queue: name } = window;
    this.#readyTasks({ handler, tenant, queue: name }, read).then(
      (rows) =>
        schedule(() => {
          const tasks = rows.map((row) => this.#taskOf(row));
          queue.loaded(window, read, tasks, now());
          this.#evict();
        }),
      (error: unknown) => {
        log.warn({ handler, err: error }, 'waiting tasks could not be read; trying again');
        clock.setTimeout(() => schedule(() => queue.loadFailed(window, read, now())), RELOAD_MS);
      },
    );
  }

  /** Skips tasks of suspended tenants, and reads on. */
  async #readyTasks(scope: PollScope, { after: from, limit }: Read): Promise<OpenTaskRow[]> {
    const { loader, commits } = this.#deps;
    const found: OpenTaskRow[] = [];
    for (let after = from; ; ) {
      const rows = await loader.readyTasks(scope, after, limit);
      for (const row of rows) if (!commits.suspended.has(row.tenant_id)) found.push(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < limit || found.length >= limit) {
        return found.slice(0, limit);
      }
      after = { rank: last.rank, createdAt: Date.parse(last.created_at), id: last.id };
    }
  }

  #taskOf(row: OpenTaskRow): ReadyTask {
    return {
      id: row.id,
      instance: row.instance_id,
      tenant: this.#name(row.tenant_id),
      queue: this.#name(row.queue_name ?? ''),
      rank: row.rank,
      createdAt: Date.parse(row.created_at),
    };
  }

  #name(name: string): string {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    if (this.#names.size >= NAMES_MAX) this.#names.clear();
    this.#names.set(name, name);
    return name;
  }
}

/** Any queue of a poll acts for all of its places. */
function queueOf({ places }: Poll): QueueActor {
  return (places[0] as Place).queue;
}
