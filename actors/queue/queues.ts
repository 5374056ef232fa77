/**
 * The queues of one shard, one actor per handler name, and the registry of polling workers. Queues and windows are
 * created by the first poll; a hint for a missing one is dropped, because the queue reads its table when created.
 * Callers choose the names, so memory is bounded: the least recently polled windows are evicted.
 */

import { routeOf, routeOfName, shardOf } from '../../src/base/ids.js';
import type { JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import { FairSlots } from '../../src/base/quota/fair-slots.js';
import { lastUsed } from '../../src/base/quota/last-used.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Secrets } from '../credential/secrets.js';
import type { Kernel } from '../runtime/kernel.js';
import type { NamedSecrets, PeerMessage, ReadyHint } from '../runtime/protocol.js';
import type { Messages, Room } from '../runtime/room.js';
import { Service, type ServiceDeps } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { OpenPolls } from './core/statistics.js';
import type { OpenTaskRow, PollScope, QueueLoads, TaskPlace } from './loads.js';
import { newPoll, type Place, type Poll, type PollRequest } from './poll.js';
import { QueueActor } from './queue.js';
import type { ReadyTask, TaskCount } from './ready-tasks.js';
import { WORKER } from './tables.js';
import type { Read, Window } from './window.js';

export interface QueuesDeps
  extends ServiceDeps,
    Pick<Kernel<QueueLoads>, 'shard' | 'shards' | 'loader' | 'clock' | 'now' | 'schedule'> {
  /** Runs `expire(request)` at that time. */
  readonly expireAt: (request: number, at: UnixMs) => void;
  readonly secrets: Pick<Secrets, 'fill'>;
}

type ClaimAnswer = Extract<PeerMessage, { kind: 'claimed' }>;

export interface WorkerSeen {
  readonly tenant: string;
  readonly worker: string;
  readonly handler: string;
  /** '' when the poll names none. */
  readonly queue: string;
  readonly version: string | null;
}

/** Workers whose last poll is remembered; rows of others are written again. */
const WORKERS_REMEMBERED = 10_000;

export class Queues implements Room {
  readonly #service: Service;
  readonly #deps: QueuesDeps;
  readonly #queues = new Map<string, QueueActor>();
  /** Windows and their handlers, least recently polled first. */
  readonly #windows = new Map<Window, string>();
  readonly #count: TaskCount = { tasks: 0 };
  /** By request: parked and claiming polls. */
  readonly #polls = new Map<number, Poll>();
  #pollCount = 0;
  /** Interned names, shared by waiting tasks. */
  readonly #names = new Map<string, string>();
  /** Slots of waiting polls. */
  readonly #waits = new FairSlots([
    { activeMax: LIMITS.parkedPollsMax },
    { activeMax: LIMITS.parkedPollsPerTenantMax },
  ]);
  #isDraining = false;
  /** When the registry row of a worker was last written. */
  readonly #seen = lastUsed<string, UnixMs>(WORKERS_REMEMBERED);

  readonly messages = {
    'task.ready': (message) => this.ready(message),
    'task.gone': ({ handler, task, tenant, queue }) => this.gone(handler, task, tenant, queue),
    claimed: (message) => this.claimed(message),
  } satisfies Messages;

  constructor(deps: QueuesDeps) {
    this.#deps = deps;
    this.#service = new Service('queues', deps);
  }

  /** A repeated message is served once. */
  poll(asked: PollRequest): void {
    if (this.#polls.has(asked.request)) return;
    if (asked.limit === 0) {
      asked.answer([]);
      return;
    }
    const poll = newPoll(asked);
    if (this.#isDraining) poll.until = 0;
    this.#polls.set(poll.request, poll);
    this.#begin(poll);
    this.#letGo();
  }

  #begin(poll: Poll): void {
    const { tenant, handlers, queues } = poll;
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

  abort(request: number): void {
    const poll = this.#polls.get(request);
    this.#polls.delete(request);
    if (poll !== undefined) queueOf(poll).abort(poll);
  }

  expire(request: number): void {
    const poll = this.#polls.get(request);
    if (poll !== undefined) queueOf(poll).expire(poll, this.#deps.now());
  }

  /** Ends the wait: the response is sent as soon as claims are settled. */
  endWait(request: number): void {
    const poll = this.#polls.get(request);
    if (poll === undefined) return;
    poll.until = 0;
    queueOf(poll).expire(poll, this.#deps.now());
  }

  /** Ends parked polls, and parks none from now on. */
  drain(): void {
    this.#isDraining = true;
    this.answerParked();
  }

  answerParked(): void {
    for (const queue of this.#queues.values()) queue.answerParked();
  }

  /** The waiting polls of this tenant and of all tenants; '' is all. A poll counts at each of its places. */
  openPolls(tenant: string): OpenPolls[] {
    const found = new Map<string, { handler: string; queue: string; polls: number }>();
    for (const poll of this.#polls.values()) {
      const isAsked = tenant === '' || poll.tenant === '' || poll.tenant === tenant;
      if (poll.leave === undefined || !isAsked) continue;
      // A poll for every queue is not counted again at the queues it names.
      const queues = poll.queues.includes('') ? [''] : poll.queues;
      for (const handler of poll.handlers) {
        for (const queue of queues) {
          const key = JSON.stringify([handler, queue]);
          const known = found.get(key);
          if (known === undefined) found.set(key, { handler, queue, polls: 1 });
          else known.polls += 1;
        }
      }
    }
    return [...found.values()];
  }

  tenantSuspended(tenant: string): void {
    this.endWaitsOf(tenant);
    this.tenantBack();
  }

  /** Rows may have changed without hints: windows are read again. */
  tenantBack(): void {
    for (const queue of this.#queues.values()) queue.dropClaims(() => false);
  }

  clockSet(jumpMs: number): void {
    if (jumpMs !== 0) this.answerParked();
  }

  /** Ends the waits of the tenant, or of one of its workers. */
  endWaitsOf(tenant: string, worker?: string): void {
    for (const poll of [...this.#polls.values()]) {
      if (poll.tenant !== tenant || (worker !== undefined && poll.worker !== worker)) continue;
      this.endWait(poll.request);
    }
  }

  ready({ handler, task: id, instance, tenant, queue, rank, createdAt }: ReadyHint): void {
    const actor = this.#queues.get(handler);
    if (actor === undefined || this.#deps.commits.suspended.has(tenant)) return;
    const names = { tenant: this.#name(tenant), queue: this.#name(queue) };
    actor.ready({ id, instance, ...names, rank, createdAt });
    this.#letGo();
  }

  /** A hint before the commit: only for waiting polls, because another one follows the commit. */
  decided(task: ReadyHint): void {
    if (this.#queues.get(task.handler)?.isAwaited === true) this.ready(task);
  }

  gone(handler: string, task: string, tenant: string, queue: string): void {
    this.#queues.get(handler)?.gone(task, tenant, queue);
  }

  claimed(message: ClaimAnswer): void {
    // A failed claim has no record to fill.
    const secrets = message.epoch > 0 ? message.secrets : undefined;
    if (secrets === undefined) this.#claimed(message, message.record);
    else this.#fill(message, secrets);
  }

  #claimed({ handler, poll, task, epoch }: ClaimAnswer, record: string): void {
    const queue = this.#queues.get(handler);
    if (queue !== undefined) queue.claimed(poll, task, epoch, record);
    else if (epoch > 0) this.#unclaim(task, epoch);
    if (queue?.isIdle) this.#queues.delete(handler);
  }

  /** Fills secrets into the parameters of a claimed task; a task with a missing secret is given up. */
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
          this.#unclaim(task, epoch);
          giveUp();
        }),
    );
  }

  /** Claims requested from the restarted shard, and polls that it sent, are void. */
  peerBack(shard: number): void {
    const isOfShard = (instance: string) => shardOf(routeOf(instance), this.#deps.shards) === shard;
    for (const queue of this.#queues.values()) queue.dropClaims(isOfShard);
    for (const { asker, request } of this.#polls.values()) if (asker === shard) this.abort(request);
  }

  /** Writes the worker's registry row unless that was done lately, so that a poll costs no commit. */
  seen(worker: WorkerSeen): void {
    const now = this.#deps.now();
    const key = JSON.stringify([worker.tenant, worker.worker, worker.handler, worker.queue]);
    if (now - (this.#seen.get(key) ?? 0) < LIMITS.workerSeenEveryMs) return;
    this.#seen.set(key, now);
    const turn = new Turn();
    turn.put(WORKER.seen, key, {
      tenant_id: worker.tenant,
      worker_id: worker.worker,
      handler_name: worker.handler,
      queue_name: worker.queue,
      version: worker.version,
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
        unclaim: (task, epoch) => this.#unclaim(task, epoch),
        answer: (poll) => {
          this.#polls.delete(poll.request);
          poll.answer(poll.claimed);
        },
        again: (poll) => this.#begin(poll),
        read: (window, read) => this.#read(handler, window, read),
        expireLater: ({ request, until }) => this.#deps.expireAt(request, until),
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

  /** Evicts windows beyond the bounds. */
  #letGo(): void {
    for (let left = this.#windows.size; left > 0; left--) {
      const isFull = this.#count.tasks > LIMITS.readyTasksMax;
      if (!isFull && this.#windows.size <= LIMITS.pollWindowsMax) return;
      const [window, handler] = this.#windows.entries().next().value as [Window, string];
      const queue = this.#queues.get(handler) as QueueActor;
      this.#windows.delete(window);
      if (!queue.evict(window)) this.#windows.set(window, handler);
      else if (queue.isIdle) this.#queues.delete(handler);
    }
  }

  #claim(handler: string, { number: poll, worker, maySeeSecrets }: Poll, task: ReadyTask): void {
    const { shard, shards } = this.#deps;
    const { id, instance } = task;
    const message: PeerMessage = {
      kind: 'claim',
      handler,
      poll,
      task: id,
      instance,
      worker,
      maySeeSecrets,
      queueShard: shard,
    };
    this.#deps.release([{ kind: 'peer', shard: shardOf(routeOf(instance), shards), message }]);
  }

  #unclaim(task: string, epoch: number): void {
    const shard = shardOf(routeOf(task), this.#deps.shards);
    this.#deps.release([{ kind: 'peer', shard, message: { kind: 'unclaim', task, epoch } }]);
  }

  #read(handler: string, window: Window, read: Read): void {
    const { log, clock, now, schedule } = this.#deps;
    const queue = this.#queue(handler);
    const { tenant, queue: name } = window;
    this.#readyTasks({ handler, tenant, queue: name }, read.after, read.limit).then(
      (rows) =>
        schedule(() => {
          const tasks = rows.map((row) => this.#taskOf(row));
          queue.loaded(window, read, tasks, now());
          this.#letGo();
        }),
      (error: unknown) => {
        log.warn({ handler, err: error }, 'waiting tasks could not be read; trying again');
        clock.setTimeout(() => schedule(() => queue.loadFailed(window, read, now())), RELOAD_MS);
      },
    );
  }

  /** Skips tasks of suspended tenants, and reads on. */
  async #readyTasks(scope: PollScope, from: TaskPlace, limit: number): Promise<OpenTaskRow[]> {
    const { loader, commits } = this.#deps;
    const found: OpenTaskRow[] = [];
    for (let after = from; ; ) {
      const rows = await loader.readyTasks(scope, after, limit);
      for (const row of rows) if (!commits.suspended.has(row.tenant_id)) found.push(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < limit || found.length >= limit) {
        return found.slice(0, limit);
      }
      after = { rank: last.rank, createdAt: Date.parse(last.created_at), id: last.task_id };
    }
  }

  #taskOf(row: OpenTaskRow): ReadyTask {
    return {
      id: row.task_id,
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

/** Any queue of the poll can act for all of its places. */
function queueOf({ places }: Poll): QueueActor {
  return (places[0] as Place).queue;
}

const NAMES_MAX = 10_000;
/** Retry interval after a failed read. */
const RELOAD_MS = 1_000;

/** The shard that owns the queue of a handler. */
export function queueShard(handler: string, shards: number): number {
  return shardOf(routeOfName(handler), shards);
}
