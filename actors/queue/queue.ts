/**
 * The queue of one handler: its waiting long polls and the claims in progress. It owns no rows: `open_tasks` has the
 * open tasks, and the queue reads it through windows, one per kind of poll. A poll picks tasks here; each is claimed
 * only by a unit of its instance. A poll may use several windows, also of other queues of its shard: it takes their
 * first task, waits at all, and leaves all when one serves it.
 *
 *   poll ─► window ─► picked ─claim─► instance ─claimed─► response
 *              ▲                          │
 *              └── ready, gone, reads ────┘
 */

import { LIMITS } from '../../src/base/limits.js';
import type { FairSlots } from '../../src/base/quota/fair-slots.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import type { UnixMs } from '../../src/base/time.js';
import type { TaskPlace } from './loads.js';
import type { Claimed, Place, Poll } from './poll.js';
import {
  compareTasks,
  endRead,
  LAST_PLACE,
  newWindow,
  offer,
  type Read,
  type ReadyTask,
  reset,
  type TaskCount,
  type Window,
  type WindowBounds,
  wantedRead,
  withdraw,
} from './window.js';

/** Effects of a queue; the shard executes them at the end of the turn. */
export interface QueueEffects {
  claim(poll: Poll, task: ReadyTask): void;
  unclaim(task: string, epoch: number): void;
  /** Ends the poll with its claimed tasks. */
  answer(poll: Poll): void;
  /** Serves the poll again as if it had just arrived: all its picked tasks were gone. */
  again(poll: Poll): void;
  /** Reads waiting tasks; `loaded` or `loadFailed` follows. */
  read(window: Window, read: Read): void;
  /** Calls `expire` when the poll's time is over. */
  expireLater(poll: Poll): void;
  /** Marks the window as most recently used, for eviction. */
  used(window: Window): void;
}

export class QueueActor {
  readonly #effects: QueueEffects;
  readonly #count: TaskCount;
  readonly #waits: FairSlots;
  readonly #bounds: WindowBounds | undefined;
  /** Tenant or '' → queue name or '' → the window of such polls. */
  readonly #windows = new Map<string, Map<string, Window>>();
  /** Tasks with a claim in progress: neither offered nor added again until it is settled. */
  readonly #picked = new Map<string, { readonly task: ReadyTask; readonly poll: Poll }>();
  #parkedCount = 0;

  /** @param count of tasks in memory @param waits slots of waiting polls; both are shared by queues */
  constructor(effects: QueueEffects, count: TaskCount, waits: FairSlots, bounds?: WindowBounds) {
    this.#effects = effects;
    this.#count = count;
    this.#waits = waits;
    this.#bounds = bounds;
  }

  /** Memory has nothing that the tables do not have. */
  get isIdle(): boolean {
    return this.#windows.size === 0 && this.#picked.size === 0;
  }

  get isAwaited(): boolean {
    return this.#parkedCount > 0;
  }

  // ---------------------------------------------------------------- polls

  /** The window for polls of this tenant and queue name. */
  place(tenant: string, queue: string): Place {
    const named = valueFor(this.#windows, tenant, () => new Map<string, Window>());
    const make = () => newWindow(tenant, queue, this.#count, this.#bounds);
    const window = valueFor(named, queue, make);
    this.#effects.used(window);
    return { queue: this, window };
  }

  /** @param poll for at least one task, with a place here */
  poll(poll: Poll, now: UnixMs): void {
    if (this.#serve(poll)) return;
    const { places } = poll;
    if (poll.until > now) {
      poll.leave = this.#waits.take([poll.requested.tenant]);
      if (poll.leave === undefined) poll.until = now;
    }
    // If the table has not been read yet, the response waits for the read in any case.
    if (poll.until <= now && !isReading(poll)) {
      leave(poll);
      this.#effects.answer(poll);
      return;
    }
    for (const { queue, window } of places) {
      window.parked.add(poll);
      queue.#parkedCount += 1;
    }
    if (poll.until > now) this.#effects.expireLater(poll);
  }

  /** The client has disconnected: forgets a parked poll, and gives claims in progress back. */
  abort(poll: Poll): void {
    poll.isAborted = true;
    this.#unpark(poll);
  }

  expire(poll: Poll, now: UnixMs): void {
    const isParked = poll.places[0]?.window.parked.has(poll);
    if (isParked && poll.until <= now && !isReading(poll)) this.#answerEmpty(poll);
  }

  answerParked(): void {
    for (const window of this.#allWindows()) {
      for (const poll of window.parked) this.#answerEmpty(poll);
    }
  }

  #answerDue(window: Window, now: UnixMs): void {
    for (const poll of window.parked) this.expire(poll, now);
  }

  #answerEmpty(poll: Poll): void {
    this.#unpark(poll);
    this.#effects.answer(poll);
  }

  #unpark(poll: Poll): void {
    leave(poll);
    for (const { queue, window } of poll.places) {
      if (window.parked.delete(poll)) queue.#parkedCount -= 1;
    }
  }

  /** @param isRead a read has ended, so polls with several places can be decided */
  #serveParked(window: Window, isRead = false): void {
    for (const poll of window.parked) {
      if (this.#serve(poll)) this.#unpark(poll);
      else if (window.ready.size === 0 && !isRead) return;
    }
  }

  /** Picks tasks for a poll and asks their instances to claim them. */
  #serve(poll: Poll): boolean {
    const picked: { readonly place: Place; readonly task: ReadyTask }[] = [];
    for (const { queue, window } of poll.places) queue.#readOn(window, poll);
    while (picked.length < poll.requested.limit) {
      const place = firstPlace(poll.places);
      if (place === undefined) break;
      const { queue } = place;
      const task = place.window.ready.first() as ReadyTask;
      queue.#picked.set(task.id, { task, poll });
      for (const window of queue.#windowsWith(task.tenant, task.queue)) withdraw(window, task.id);
      picked.push({ place, task });
    }
    if (picked.length === 0) return false;
    poll.openClaims = picked.length;
    for (const { queue, window } of poll.places) queue.#readOn(window, poll);
    for (const { place, task } of picked) place.queue.#effects.claim(poll, task);
    return true;
  }

  // ---------------------------------------------------------------- claims

  /**
   * A claim is settled.
   *
   * @param epoch positive: committed; 0: the task is gone; -1: unknown, so it is offered again
   * @param record the claimed task's wire record as JSON text
   */
  claimed(number: number, id: string, epoch: number, record: string): void {
    const picked = this.#picked.get(id);
    if (picked?.poll.number !== number) {
      // The queue was rebuilt meanwhile: no poll waits for this claim.
      if (epoch > 0) this.#effects.unclaim(id, epoch);
      return;
    }
    const { task, poll } = picked;
    this.#picked.delete(id);
    poll.openClaims -= 1;
    if (epoch > 0) this.#keepOrGiveBack(poll, { task, epoch, record });
    else if (epoch < 0) this.ready(task);
    if (poll.openClaims === 0) this.#finish(poll);
  }

  /** The response has a size limit; tasks beyond it are offered again. */
  #keepOrGiveBack(poll: Poll, claimed: Claimed): void {
    const { task, epoch, record } = claimed;
    const fits = poll.claimed.length === 0 || poll.bytes + record.length <= LIMITS.responseBytesMax;
    if (poll.isAborted || !fits) {
      this.#effects.unclaim(task.id, epoch);
      return;
    }
    poll.bytes += record.length;
    poll.claimed.push(claimed);
  }

  #finish(poll: Poll): void {
    const { claimed } = poll;
    if (poll.isAborted) {
      for (const { task, epoch } of claimed) this.#effects.unclaim(task.id, epoch);
      return;
    }
    if (claimed.length === 0) {
      this.#effects.again(poll);
      return;
    }
    claimed.sort((a, b) => compareTasks(a.task, b.task));
    this.#effects.answer(poll);
  }

  /** A shard has restarted: its claims have an unknown outcome, and its last hints may be lost. */
  dropClaims(isOfShard: (instance: string) => boolean): void {
    for (const window of this.#allWindows()) {
      reset(window);
      for (const poll of window.parked) this.#readOn(window, poll);
    }
    for (const [id, { task, poll }] of this.#picked) {
      if (isOfShard(task.instance)) this.claimed(poll.number, id, 0, '');
    }
  }

  // ---------------------------------------------------------------- hints

  /** Hint: a task waits. The oldest poll that can take it gets it. */
  ready(task: ReadyTask): void {
    if (this.#picked.has(task.id)) return;
    const windows = this.#windowsWith(task.tenant, task.queue);
    for (const window of windows) offer(window, task);
    if (this.#parkedCount === 0) return;
    const waiting = windows.filter(({ parked }) => parked.size > 0);
    waiting.sort((a, b) => firstParked(a) - firstParked(b));
    for (const window of waiting) this.#serveParked(window);
  }

  /** Hint: a task is no longer offered. */
  gone(task: string, tenant: string, queue: string): void {
    for (const window of this.#windowsWith(tenant, queue)) withdraw(window, task);
  }

  // ---------------------------------------------------------------- the table

  #readOn(window: Window, poll: Poll): void {
    const read = wantedRead(window, poll);
    if (read !== undefined) this.#effects.read(window, read);
  }

  /** @param tasks in the order of the table; fewer than the read requested only at its end */
  loaded(window: Window, read: Read, tasks: readonly ReadyTask[], now: UnixMs): void {
    // The window was reset since the read began.
    if (window.read !== read) return;
    endRead(window, tasks, (id) => this.#picked.has(id));
    this.#serveParked(window, true);
    this.#answerDue(window, now);
  }

  /** The table could not be read: polls that may wait stay, and it is read again. */
  loadFailed(window: Window, read: Read, now: UnixMs): void {
    if (window.read !== read) return;
    window.read = undefined;
    read.late.clear();
    this.#answerDue(window, now);
    this.#serveParked(window);
  }

  // ---------------------------------------------------------------- windows

  /** Forgets a window, which the next poll recreates. Returns false for one with waiting polls. */
  evict(window: Window): boolean {
    if (window.parked.size > 0) return false;
    reset(window);
    const named = this.#windows.get(window.tenant);
    named?.delete(window.queue);
    if (named?.size === 0) this.#windows.delete(window.tenant);
    return true;
  }

  /** The windows that include tasks of this tenant and queue name: four at most. */
  #windowsWith(tenant: string, queue: string): Window[] {
    const windows: Window[] = [];
    for (const named of [this.#windows.get(tenant), this.#windows.get('')]) {
      const ofEvery = named?.get('');
      if (ofEvery !== undefined) windows.push(ofEvery);
      const ofName = queue === '' ? undefined : named?.get(queue);
      if (ofName !== undefined) windows.push(ofName);
    }
    return windows;
  }

  *#allWindows(): Iterable<Window> {
    for (const named of this.#windows.values()) yield* named.values();
  }
}

function leave(poll: Poll): void {
  poll.leave?.();
  poll.leave = undefined;
}

/** Tasks in the table may not be in memory yet. */
function isReading({ places }: Poll): boolean {
  return places.some(({ window }) => window.read !== undefined);
}

/** The place with the next task of a poll; undefined when there is none, or an unread one may precede it. */
function firstPlace(places: readonly Place[]): Place | undefined {
  let found: Place | undefined;
  let first: TaskPlace = LAST_PLACE;
  for (const place of places) {
    const { ready } = place.window;
    const task = ready.first();
    const next = task ?? ready.horizon;
    if (compareTasks(next, first) >= 0) continue;
    first = next;
    found = task === undefined ? undefined : place;
  }
  return found;
}

function firstParked({ parked }: Window): number {
  const [first] = parked;
  return first?.number ?? Number.POSITIVE_INFINITY;
}
