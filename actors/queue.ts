/**
 * The queue of one handler: which tasks wait, in which order they are offered, and which long polls
 * wait for them. Owns no rows: `open_tasks` states what is open, and the queue reads it when it
 * comes to life and again when its memory runs low. A poll picks tasks here; each becomes the
 * poller's only by a unit of its instance.
 *
 * In memory are all waiting tasks before `#horizon`, a place in the order of the table; behind it
 * they are only in the table, so that a million waiting tasks cost rows, not heap.
 */

import { LIMITS } from '../src/config.js';
import type { UnixMs } from '../src/core/time.js';
import type { OpenTaskRow } from './loader.js';
import type { ClaimList } from './protocol.js';
import { compareTasks, type ReadyTask, ReadyTasks } from './ready-tasks.js';

export interface Poll {
  readonly request: number;
  /** '' serves all tenants. */
  readonly tenant: string;
  readonly worker: string;
  /** undefined takes the tasks of every queue name and of none. */
  readonly queue: string | undefined;
  readonly limit: number;
  /** When a poll that found nothing is answered `[]`; now or earlier: at once. */
  readonly until: UnixMs;
}

/** A poll that picked tasks and waits for their instances to commit the claims. */
interface Claiming {
  readonly poll: Poll;
  open: number;
  aborted: boolean;
  bytes: number;
  /** In the order in which they were committed, which across shards is any order. */
  readonly claimed: Claimed[];
  readonly picked: Map<string, ReadyTask>;
}

interface Claimed {
  readonly task: ReadyTask;
  readonly epoch: number;
  /** The wire record as JSON text. */
  readonly record: string;
}

export type Place = Pick<ReadyTask, 'rank' | 'createdAt' | 'id'>;

/** What a queue makes happen; the shard carries it out at the end of the turn. */
export interface QueueEffects {
  claim(poll: number, task: ReadyTask, worker: string): void;
  unclaim(task: string, epoch: number): void;
  reply(request: number, body: string, claims: ClaimList): void;
  /** Reads the waiting tasks behind a place; the answer comes to `loaded` or `loadFailed`. */
  read(after: Place, limit: number): void;
  /** Calls `expire` at that time. */
  expireAt(until: UnixMs): void;
}

/** Before every task. */
const FIRST_PLACE: Place = { rank: -1, createdAt: 0, id: '00000000-0000-0000-0000-000000000000' };
/** Behind every task: everything that waits is in memory. */
const LAST_PLACE: Place = { rank: 32_767, createdAt: 0, id: '' };

/** Read on when fewer wait in memory, so that polls find something meanwhile. */
const LOW_WATER = LIMITS.readyTasksMax / 4;

export class QueueActor {
  readonly #effects: QueueEffects;
  readonly #ready = new ReadyTasks();
  /** Long polls in order of arrival; a Set keeps it and lets any of them go. */
  readonly #parked = new Set<Poll>();
  readonly #claiming = new Map<number, Claiming>();
  /** Tasks of claims on their way: neither offered nor added again until these are settled. */
  readonly #picked = new Set<string>();
  /** Hints that came during a read, whose snapshot may be older than they are. */
  #hints: ReadyTask[] = [];
  #horizon: Place = FIRST_PLACE;
  #reading = false;
  /** The read under way began before everything was forgotten: its rows are not used. */
  #stale = false;
  #pollCount = 0;

  constructor(effects: QueueEffects) {
    this.#effects = effects;
    this.#readOn();
  }

  /** Nothing waits on it: it may be dropped and comes to life again by reading its table. */
  get isPassive(): boolean {
    return this.#parked.size === 0 && this.#claiming.size === 0 && !this.#reading;
  }

  poll(poll: Poll, now: UnixMs): void {
    if (poll.limit > 0 && this.#serve(poll)) return;
    const mayWait = poll.until > now && this.#parked.size < LIMITS.parkedPollsMax;
    // What the table holds is not known yet: the answer waits for it.
    if (poll.limit > 0 && (mayWait || this.#reading)) {
      this.#parked.add(poll);
      if (mayWait) this.#effects.expireAt(poll.until);
      return;
    }
    this.#effects.reply(poll.request, '[]', []);
  }

  /** The client is gone: a parked poll is forgotten, claims on their way are taken back. */
  abort(request: number): void {
    for (const poll of this.#parked) {
      if (poll.request === request) this.#parked.delete(poll);
    }
    for (const claiming of this.#claiming.values()) {
      if (claiming.poll.request === request) claiming.aborted = true;
    }
  }

  expire(now: UnixMs): void {
    if (this.#reading) return;
    for (const poll of this.#parked) {
      if (poll.until > now) continue;
      this.#parked.delete(poll);
      this.#effects.reply(poll.request, '[]', []);
    }
  }

  /** The engine stops: nobody waits any longer. */
  answerParked(): void {
    for (const poll of this.#parked) this.#effects.reply(poll.request, '[]', []);
    this.#parked.clear();
  }

  /** Hint: a task waits. Behind the horizon its row is enough. */
  ready(task: ReadyTask): void {
    if (this.#reading) this.#hints.push(task);
    if (this.#picked.has(task.id) || compareTasks(task, this.#horizon) > 0) return;
    this.#ready.add(task);
    if (this.#ready.size > LIMITS.readyTasksMax) this.#startOver();
    this.#serveParked();
  }

  /** Hint: a task is not offered any more. */
  gone(task: string): void {
    this.#ready.remove(task);
  }

  // ---------------------------------------------------------------- polls

  #serveParked(): void {
    for (const poll of this.#parked) {
      if (this.#ready.size === 0) return;
      if (this.#serve(poll)) this.#parked.delete(poll);
    }
  }

  /** Picks tasks for a poll and asks their instances to claim them. */
  #serve(poll: Poll): boolean {
    const picked = new Map<string, ReadyTask>();
    while (picked.size < poll.limit) {
      const task = this.#ready.take(poll.tenant, poll.queue);
      if (task === undefined) break;
      picked.set(task.id, task);
      this.#picked.add(task.id);
    }
    if (this.#ready.size < LOW_WATER) this.#readOn();
    if (picked.size === 0) return false;
    this.#pollCount += 1;
    this.#claiming.set(this.#pollCount, {
      poll,
      picked,
      open: picked.size,
      aborted: false,
      bytes: 0,
      claimed: [],
    });
    for (const task of picked.values()) this.#effects.claim(this.#pollCount, task, poll.worker);
    return true;
  }

  /**
   * A claim is settled.
   *
   * @param epoch positive: committed; 0: the task is gone; -1: not known, so it is offered again
   * @param record the claimed task's wire record as JSON text
   */
  claimed(pollNumber: number, task: string, epoch: number, record: string, now: UnixMs): void {
    const claiming = this.#claiming.get(pollNumber);
    const picked = claiming?.picked.get(task);
    if (claiming === undefined || picked === undefined) {
      // The queue was rebuilt meanwhile: nobody waits for this claim.
      if (epoch > 0) this.#effects.unclaim(task, epoch);
      return;
    }
    claiming.open -= 1;
    claiming.picked.delete(task);
    this.#picked.delete(task);
    if (epoch > 0) this.#keepOrGiveBack(claiming, { task: picked, epoch, record });
    else if (epoch < 0) this.#ready.add(picked);
    if (claiming.open > 0) return;
    this.#claiming.delete(pollNumber);
    this.#finish(claiming, now);
  }

  /** A poll's answer stops at the size limit; what does not fit waits again (spec/06 row 51). */
  #keepOrGiveBack(claiming: Claiming, claimed: Claimed): void {
    const { task, epoch, record } = claimed;
    const fits =
      claiming.claimed.length === 0 || claiming.bytes + record.length <= LIMITS.responseBytesMax;
    if (claiming.aborted || !fits) {
      this.#effects.unclaim(task.id, epoch);
      return;
    }
    claiming.bytes += record.length;
    claiming.claimed.push(claimed);
  }

  #finish({ poll, claimed, aborted }: Claiming, now: UnixMs): void {
    if (aborted) {
      for (const { task, epoch } of claimed) this.#effects.unclaim(task.id, epoch);
      return;
    }
    if (claimed.length === 0) {
      // All of its tasks were gone: the poll is as if it came now.
      this.poll(poll, now);
      return;
    }
    claimed.sort((a, b) => compareTasks(a.task, b.task));
    const body = `[${claimed.map(({ record }) => record).join(',')}]`;
    const claims = claimed.map(({ task, epoch }) => [task.id, epoch] as const);
    this.#effects.reply(poll.request, body, claims);
  }

  /** A shard died: the claims that it had been asked for have an unknown outcome. */
  dropClaims(isOfShard: (instance: string) => boolean, now: UnixMs): void {
    for (const [number, claiming] of this.#claiming) {
      for (const task of claiming.picked.values()) {
        if (isOfShard(task.instance)) this.claimed(number, task.id, 0, '', now);
      }
    }
    this.#startOver();
  }

  // ---------------------------------------------------------------- the table

  /** Forgets what waits and reads the first page anew. */
  #startOver(): void {
    this.#ready.clear();
    this.#horizon = FIRST_PLACE;
    this.#stale = this.#reading;
    this.#readOn();
  }

  #readOn(): void {
    if (this.#reading || this.#horizon === LAST_PLACE) return;
    this.#reading = true;
    this.#effects.read(this.#horizon, LIMITS.recoveryPageRows);
  }

  loaded(rows: readonly OpenTaskRow[], now: UnixMs): void {
    this.#reading = false;
    if (this.#stale) {
      this.#stale = false;
      this.#hints = [];
      this.#readOn();
      return;
    }
    for (const row of rows) {
      const task = {
        id: row.task_id,
        instance: row.instance_id,
        tenant: row.tenant_id,
        queue: row.queue_name ?? '',
        rank: row.rank,
        createdAt: Date.parse(row.created_at),
      };
      if (!this.#picked.has(task.id)) this.#ready.add(task);
      this.#horizon = task;
    }
    if (rows.length < LIMITS.recoveryPageRows) this.#horizon = LAST_PLACE;
    const hints = this.#hints;
    this.#hints = [];
    for (const hint of hints) this.ready(hint);
    this.#serveParked();
    this.expire(now);
  }

  /** The table could not be read: the next poll begins anew, since hints may have been missed. */
  loadFailed(now: UnixMs): void {
    this.#reading = false;
    this.#stale = false;
    this.#hints = [];
    this.#ready.clear();
    this.#horizon = FIRST_PLACE;
    this.expire(now);
  }
}
