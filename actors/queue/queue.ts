/**
 * The queue of one handler: its waiting long polls and the claims in progress. It owns no rows and
 * reads open tasks through windows, one per kind of poll. A poll picks tasks here; a unit of the
 * instance claims each of them. A poll may wait at several windows, also of other queues of its
 * shard.
 *
 *   poll ─► window ─► picked ─claim─► instance ─claimed─► response
 *              ▲                          │
 *              └── ready, gone, reads ────┘
 */

import { ChurningMap } from '../../src/base/churning-map.js';
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

/** The shard executes these at the end of the turn. */
export interface QueueEffects {
  claim(poll: Poll, task: ReadyTask): void;
  unclaim(task: string, epoch: number): void;
  answer(poll: Poll): void;
  /** Serves the poll again: none of its picked tasks could be claimed. */
  again(poll: Poll): void;
  /** A call of `loaded` or `loadFailed` follows. */
  read(window: Window, read: Read): void;
  /** Calls `expire` at the end of the wait. */
  expireLater(poll: Poll): void;
  /** The window is now the most recently used one. */
  used(window: Window): void;
}

export class QueueActor {
  readonly #effects: QueueEffects;
  readonly #count: TaskCount;
  readonly #waits: FairSlots;
  readonly #bounds: WindowBounds | undefined;
  /** By tenant or '', then by queue name or ''. */
  readonly #windows = new Map<string, Map<string, Window>>();
  /** Tasks with a claim in progress, which are not offered until it is settled. */
  readonly #picked = new ChurningMap<string, { readonly task: ReadyTask; readonly poll: Poll }>();
  #parkedCount = 0;

  /** All queues share `count`, the tasks in memory, and `waits`, the slots of waiting polls. */
  constructor(effects: QueueEffects, count: TaskCount, waits: FairSlots, bounds?: WindowBounds) {
    this.#effects = effects;
    this.#count = count;
    this.#waits = waits;
    this.#bounds = bounds;
  }

  /** All state can be read from the tables again. */
  get isIdle(): boolean {
    return this.#windows.size === 0 && this.#picked.size === 0;
  }

  get isAwaited(): boolean {
    return this.#parkedCount > 0;
  }

  place(tenant: string, queue: string): Place {
    const named = valueFor(this.#windows, tenant, () => new Map<string, Window>());
    const make = () => newWindow(tenant, queue, this.#count, this.#bounds);
    const window = valueFor(named, queue, make);
    this.#effects.used(window);
    return { queue: this, window };
  }

  /** @param poll has a limit of at least one task, and a place in this queue */
  poll(poll: Poll, now: UnixMs): void {
    if (this.#serve(poll)) return;
    const { places } = poll;
    if (poll.until > now) {
      const { isOwn, tenant } = poll.requested;
      poll.leave = isOwn ? () => undefined : this.#waits.take([tenant]);
      if (poll.leave === undefined) poll.until = now;
    }
    // The response always waits for a read in progress.
    if (poll.until <= now && !isReading(poll)) {
      leave(poll);
      this.#effects.answer(poll);
      return;
    }
    for (const { queue, window } of places) {
      window.parked.set(poll.number, poll);
      queue.#parkedCount += 1;
    }
    if (poll.until > now && Number.isFinite(poll.until)) this.#effects.expireLater(poll);
  }

  /** The client has disconnected: forgets a parked poll, and returns claims in progress. */
  abort(poll: Poll): void {
    poll.isAborted = true;
    this.#unpark(poll);
  }

  expire(poll: Poll, now: UnixMs): void {
    const isParked = poll.places[0]?.window.parked.has(poll.number);
    if (isParked && poll.until <= now && !isReading(poll)) this.#answerEmpty(poll);
  }

  answerParked(): void {
    for (const window of this.#allWindows()) {
      for (const poll of window.parked.values()) this.#answerEmpty(poll);
    }
  }

  #answerDue(window: Window, now: UnixMs): void {
    for (const poll of window.parked.values()) this.expire(poll, now);
  }

  #answerEmpty(poll: Poll): void {
    this.#unpark(poll);
    this.#effects.answer(poll);
  }

  #unpark(poll: Poll): void {
    leave(poll);
    for (const { queue, window } of poll.places) {
      if (window.parked.delete(poll.number)) queue.#parkedCount -= 1;
    }
  }

  /** @param isRead a read has ended, so polls with several places may be served */
  #serveParked(window: Window, isRead = false): void {
    for (const poll of window.parked.values()) {
      if (this.#serve(poll)) this.#unpark(poll);
      else if (window.ready.size === 0 && !isRead) return;
    }
  }

  /** Picks tasks and requests their claims. Returns false if there are none. */
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

  /**
   * Settles a claim.
   *
   * @param epoch positive: committed; 0: cannot be claimed; -1: unknown, so it is offered again
   * @param record the wire record of the claimed task as JSON text
   */
  claimed(number: number, id: string, epoch: number, record: string): void {
    const picked = this.#picked.get(id);
    if (picked?.poll.number !== number) {
      // The queue was recreated meanwhile, so no poll waits for this claim.
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

  /** Tasks beyond the size limit of the response are offered again. */
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

  /** After a restart of a shard, its claims are unknown and its last hints may be lost. */
  dropClaims(isOfShard: (instance: string) => boolean): void {
    for (const window of this.#allWindows()) {
      reset(window);
      for (const poll of window.parked.values()) this.#readOn(window, poll);
    }
    for (const [id, { task, poll }] of this.#picked) {
      if (isOfShard(task.instance)) this.claimed(poll.number, id, 0, '');
    }
  }

  /** Hint: a task waits. It goes to the oldest poll that can take it. */
  ready(task: ReadyTask): void {
    if (this.#picked.has(task.id)) return;
    const windows = this.#windowsWith(task.tenant, task.queue);
    for (const window of windows) offer(window, task);
    if (this.#parkedCount === 0) return;
    const waiting = windows.filter(({ parked }) => parked.size > 0);
    waiting.sort((a, b) => firstParked(a) - firstParked(b));
    for (const window of waiting) this.#serveParked(window);
  }

  gone(task: string, tenant: string, queue: string): void {
    for (const window of this.#windowsWith(tenant, queue)) withdraw(window, task);
  }

  #readOn(window: Window, poll: Poll): void {
    const read = wantedRead(window, poll);
    if (read !== undefined) this.#effects.read(window, read);
  }

  /** @param tasks fewer than requested only at the end of the table */
  loaded(window: Window, read: Read, tasks: readonly ReadyTask[], now: UnixMs): void {
    // The window was reset meanwhile.
    if (window.read !== read) return;
    endRead(window, tasks, (id) => this.#picked.has(id));
    this.#serveParked(window, true);
    this.#answerDue(window, now);
  }

  /** Polls that may wait stay, and the table is read again. */
  loadFailed(window: Window, read: Read, now: UnixMs): void {
    if (window.read !== read) return;
    window.read = undefined;
    read.late.clear();
    this.#answerDue(window, now);
    this.#serveParked(window);
  }

  /** Forgets a window, which the next poll recreates. Returns false if polls are waiting at it. */
  evict(window: Window): boolean {
    if (window.parked.size > 0) return false;
    reset(window);
    const named = this.#windows.get(window.tenant);
    named?.delete(window.queue);
    if (named?.size === 0) this.#windows.delete(window.tenant);
    return true;
  }

  /** The windows that include tasks of this tenant and queue name; at most four. */
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

function isReading({ places }: Poll): boolean {
  return places.some(({ window }) => window.read !== undefined);
}

/** The place with the next task; undefined if there is none, or an unread task may precede it. */
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
  const [first] = parked.keys();
  return first ?? Number.POSITIVE_INFINITY;
}
