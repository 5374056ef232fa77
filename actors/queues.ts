/**
 * The queues of one shard, one actor per handler name, and the registry of the workers that poll
 * them. Queues come to life with the first poll; a hint to a sleeping queue is moot, because the
 * queue reads its table when it wakes.
 */

import { LIMITS } from '../src/config.js';
import { routeOf, routeOfName, shardOf } from '../src/core/ids.js';
import { isoTime, type UnixMs } from '../src/core/time.js';
import type { Logger } from '../src/log.js';
import type { CommitLog, PendingUnit, Settlement, UnitOwner } from './commit-log.js';
import type { Rows } from './loader.js';
import type { ClaimList, PeerMessage } from './protocol.js';
import { type Place, type Poll, QueueActor } from './queue.js';
import type { ReadyTask } from './ready-tasks.js';
import { type Effect, Turn } from './turn.js';

export interface QueuesDeps {
  readonly shard: number;
  readonly shards: number;
  readonly commits: CommitLog;
  readonly loader: Rows;
  readonly log: Logger;
  readonly now: () => UnixMs;
  readonly release: (effects: readonly Effect[]) => void;
  readonly schedule: (work: () => void) => void;
  /** Runs `expire(handler)` at that time. */
  readonly expireAt: (handler: string, at: UnixMs) => void;
}

export interface WorkerSeen {
  readonly tenant: string;
  readonly worker: string;
  readonly handler: string;
  /** '' when the poll names none. */
  readonly queue: string;
  readonly version: string | null;
}

export class Queues implements UnitOwner {
  readonly key = 'queues';
  incarnation: number;
  readonly #deps: QueuesDeps;
  readonly #queues = new Map<string, QueueActor>();
  /** Which queue a poll that is parked or claiming is in. */
  readonly #handlerOf = new Map<number, string>();
  #isDraining = false;
  /** When the registry row of a worker was last written. */
  readonly #seen = new Map<string, UnixMs>();

  constructor(deps: QueuesDeps) {
    this.#deps = deps;
    this.incarnation = deps.commits.nextIncarnation();
  }

  poll(handler: string, poll: Poll): void {
    this.#handlerOf.set(poll.request, handler);
    const asked = this.#isDraining ? { ...poll, until: 0 } : poll;
    this.#queue(handler).poll(asked, this.#deps.now());
  }

  abort(request: number): void {
    const handler = this.#handlerOf.get(request);
    if (handler === undefined) return;
    this.#handlerOf.delete(request);
    this.#queues.get(handler)?.abort(request);
  }

  expire(handler: string): void {
    this.#queues.get(handler)?.expire(this.#deps.now());
  }

  /** Parked polls are answered, and those that were on their way are not parked any more. */
  drain(): void {
    this.#isDraining = true;
    for (const queue of this.#queues.values()) queue.answerParked();
  }

  ready(handler: string, task: ReadyTask): void {
    this.#queues.get(handler)?.ready(task);
  }

  gone(handler: string, task: string): void {
    this.#queues.get(handler)?.gone(task);
  }

  claimed(handler: string, poll: number, task: string, epoch: number, record: string): void {
    const queue = this.#queues.get(handler);
    if (queue !== undefined) queue.claimed(poll, task, epoch, record, this.#deps.now());
    else if (epoch > 0) this.#unclaim(task, epoch);
  }

  /** The shard died with claims that queues had asked it for. */
  shardDied(shard: number): void {
    const isOfShard = (instance: string) => shardOf(routeOf(instance), this.#deps.shards) === shard;
    for (const queue of this.#queues.values()) queue.dropClaims(isOfShard, this.#deps.now());
  }

  /** Writes the worker's registry row unless that was done lately: a poll costs no commit. */
  seen(worker: WorkerSeen): void {
    const now = this.#deps.now();
    const key = JSON.stringify([worker.tenant, worker.worker, worker.handler, worker.queue]);
    if (now - (this.#seen.get(key) ?? 0) < LIMITS.workerSeenEveryMs) return;
    this.#seen.delete(key);
    this.#seen.set(key, now);
    if (this.#seen.size > WORKERS_REMEMBERED) {
      this.#seen.delete(this.#seen.keys().next().value as string);
    }
    const turn = new Turn();
    turn.put('worker.seen', key, {
      tenant_id: worker.tenant,
      worker_id: worker.worker,
      handler_name: worker.handler,
      queue_name: worker.queue,
      version: worker.version,
      last_seen_at: isoTime(now),
    });
    this.#deps.commits.append(this, turn);
  }

  settled(_unit: PendingUnit, ack: Settlement): void {
    if (ack[1] !== 'refused') return;
    this.incarnation = this.#deps.commits.nextIncarnation();
    this.#deps.log.warn({ sqlState: ack[2] }, 'worker row refused');
  }

  #queue(handler: string): QueueActor {
    let queue = this.#queues.get(handler);
    if (queue !== undefined) return queue;
    this.#letIdleGo();
    queue = new QueueActor({
      claim: (poll, task, worker) => this.#claim(handler, poll, task, worker),
      unclaim: (task, epoch) => this.#unclaim(task, epoch),
      reply: (request, body, claims) => this.#reply(request, body, claims),
      read: (after, limit) => this.#read(handler, after, limit),
      expireAt: (until) => this.#deps.expireAt(handler, until),
    });
    this.#queues.set(handler, queue);
    return queue;
  }

  /** Handler names come from callers: queues that nobody waits on make room for others. */
  #letIdleGo(): void {
    if (this.#queues.size < QUEUES_MAX) return;
    for (const [handler, queue] of this.#queues) {
      if (!queue.isPassive) continue;
      this.#queues.delete(handler);
      if (this.#queues.size < QUEUES_MAX) return;
    }
  }

  #claim(handler: string, poll: number, task: ReadyTask, worker: string): void {
    const { shard, shards } = this.#deps;
    const message: PeerMessage = ['claim', handler, poll, task.id, task.instance, worker, shard];
    this.#deps.release([{ kind: 'peer', shard: shardOf(routeOf(task.instance), shards), message }]);
  }

  #unclaim(task: string, epoch: number): void {
    const shard = shardOf(routeOf(task), this.#deps.shards);
    this.#deps.release([{ kind: 'peer', shard, message: ['unclaim', task, epoch] }]);
  }

  #reply(request: number, body: string, claims: ClaimList): void {
    this.#handlerOf.delete(request);
    this.#deps.release([
      claims.length === 0
        ? { kind: 'reply', request, status: 200, body }
        : { kind: 'reply', request, status: 200, body, claims },
    ]);
  }

  #read(handler: string, after: Place, limit: number): void {
    this.#deps.loader.readyTasks(handler, after, limit).then(
      (rows) =>
        this.#deps.schedule(() => this.#queues.get(handler)?.loaded(rows, this.#deps.now())),
      (error: unknown) => {
        this.#deps.log.warn({ handler, err: error }, 'waiting tasks could not be read');
        this.#deps.schedule(() => this.#queues.get(handler)?.loadFailed(this.#deps.now()));
      },
    );
  }
}

const QUEUES_MAX = 10_000;
const WORKERS_REMEMBERED = 10_000;

/** The shard that a handler's queue lives on. */
export function queueShard(handler: string, shards: number): number {
  return shardOf(routeOfName(handler), shards);
}
