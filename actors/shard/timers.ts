/**
 * The timers of one shard. Later timers stay in their table; those within a horizon are in a heap, and the
 * shard sleeps until the first of them or until its instance has to be preloaded. Scans for overdue rows
 * are the safety net for missed events.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import { LIMITS } from '../../src/base/limits.js';
import { Tally } from '../../src/base/quota/tally.js';
import type { UnixMs } from '../../src/base/time.js';
import type { TimerLoads } from '../instance/loads.js';
import { OVERDUE_ROWS_MAX } from '../instance/loads.js';
import type { Room } from '../runtime/room.js';
import {
  type DueTimer,
  type Timer,
  TimerHeap,
  type TimerQueue,
  type WakeTimer,
} from '../runtime/timer.js';
import type { ShardKernel } from './kernel.js';

/** Limit of one tenant, so that others always find places. */
const TENANT_SHARE = 0.75;

/**
 * The timers in memory, by due time. An instance that is only in the database is loaded shortly before its
 * time, so that a burst of timers waits only for its commits. The number of preloaded instances is bounded,
 * in total and per tenant; the others are loaded when they are due. Pure.
 */
export class DueTimers {
  /** Instances that are still to be preloaded. */
  readonly #far = new TimerHeap<WakeTimer>();
  readonly #near = new TimerHeap<Timer>();
  /** Preloaded instances; each is in the heap once. */
  readonly #ahead = new Set<Timer>();
  readonly #aheadByTenant = new Tally();

  /** Nothing is preloaded for it. */
  push(at: UnixMs, timer: Timer): void {
    this.#near.push(at, timer);
  }

  /** Its instance may be in the database only. */
  pushFar(at: UnixMs, timer: WakeTimer): void {
    this.#far.push(at, timer);
  }

  /** When there is something to do next, after now. */
  nextAt(now: UnixMs): UnixMs | undefined {
    const near = this.#near.nextAt ?? Number.POSITIVE_INFINITY;
    const far = this.#far.nextAt ?? Number.POSITIVE_INFINITY;
    const loading = far - LIMITS.timerLeadMs;
    // An instance that was not preloaded in time is retried whenever a place is free.
    const at = Math.min(near, loading > now ? loading : far);
    return at === Number.POSITIVE_INFINITY ? undefined : at;
  }

  popDue(now: UnixMs): Timer | undefined {
    const near = this.#near.nextAt ?? Number.POSITIVE_INFINITY;
    const far = this.#far.nextAt ?? Number.POSITIVE_INFINITY;
    if (far < near) return this.#far.popDue(now);
    const timer = this.#near.popDue(now);
    if (timer !== undefined && this.#ahead.delete(timer)) {
      this.#aheadByTenant.add((timer as WakeTimer).tenant, -1);
    }
    return timer;
  }

  /** See `DueTimers`. */
  nextAhead(now: UnixMs, max: number): string | undefined {
    const at = this.#far.nextAt;
    if (at === undefined || at <= now || this.#ahead.size >= max) return undefined;
    const timer = this.#far.popDue(now + LIMITS.timerLeadMs);
    if (timer === undefined) return undefined;
    this.#near.push(at, timer);
    if (this.#aheadByTenant.of(timer.tenant) >= max * TENANT_SHARE) return '';
    this.#ahead.add(timer);
    this.#aheadByTenant.add(timer.tenant, 1);
    return timer.instance;
  }
}

export interface ShardTimersDeps extends Pick<ShardKernel, 'clock' | 'log' | 'wakeShard'> {
  readonly loader: TimerLoads;
  /** Maximum time between two scans for overdue timers. */
  readonly tickIntervalMs: number;
  readonly onOverdue: (timer: DueTimer) => void;
  /** So many instances wait for their turn that a scan would mostly find them. */
  readonly isBehind: () => boolean;
  /** A timer ran that much later than it was due. */
  readonly onStoodStill: (ms: number) => void;
}

/** A timer that its event has not served by then was missed. */
const OVERDUE_MS = 1_000;

/**
 * A scan begins a little below the end of the last one. Served timers are gone from the table, but not from
 * the index while any session holds an old snapshot: each scan would step over hours of them. Timers may be
 * committed with a time in the past, so longer scans come less often, and one from the very start rarely;
 * after a loss of hints that one comes next.
 */
const SCANS = [
  { backMs: Number.POSITIVE_INFINITY, everyMs: 600_000 },
  { backMs: 60_000, everyMs: 10_000 },
  { backMs: 2_000, everyMs: 0 },
] as const;

export class ShardTimers implements Room, TimerQueue {
  readonly #deps: ShardTimersDeps;
  readonly #due = new DueTimers();
  /** Timers of instances up to here are in the heap. */
  #horizon: UnixMs = Number.NEGATIVE_INFINITY;
  /** Overdue timers up to here have been found. */
  #scannedTo: UnixMs = Number.NEGATIVE_INFINITY;
  /** When each of the scans was last made. */
  #scannedAt = SCANS.map(() => Number.NEGATIVE_INFINITY);
  #wakeHandle: TimerHandle | undefined;
  /** When that fires, by the monotonic clock. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #scanHandle: TimerHandle | undefined;
  #stopped = false;

  constructor(deps: ShardTimersDeps) {
    this.#deps = deps;
  }

  /** Reads the timers within the horizon, then scans from time to time. */
  async prepare(): Promise<void> {
    await this.#readAhead();
    this.#scanLater();
  }

  stop(): void {
    this.#stopped = true;
    this.#deps.clock.clearTimeout(this.#wakeHandle);
    this.#deps.clock.clearTimeout(this.#scanHandle);
  }

  push(at: UnixMs, timer: Timer): void {
    this.#due.push(at, timer);
  }

  /** The timer of an instance was committed; one beyond the horizon is read when its time comes. */
  committed(at: UnixMs, { instance, rank, tenant }: DueTimer): void {
    if (at > this.#horizon) return;
    const timer = { kind: 'wake', instance, rank, tenant } as const;
    // The instance has just committed, so it is in memory, and is not evicted so shortly before its time.
    if (at <= this.#deps.clock.now() + LIMITS.timerLeadMs) this.#due.push(at, timer);
    else this.#due.pushFar(at, timer);
  }

  /** Hints may have been lost, of timers with any time. */
  peerBack(): void {
    this.#scannedAt = SCANS.map(() => Number.NEGATIVE_INFINITY);
  }

  writerReady(): void {
    this.peerBack();
  }

  /** There are timers without hints: those ahead are read again too. */
  async readAnew(): Promise<void> {
    this.#horizon = Number.NEGATIVE_INFINITY;
    this.peerBack();
    await this.#readAhead();
  }

  popDue(): Timer | undefined {
    return this.#due.popDue(this.#deps.clock.now());
  }

  /**
   * The next instance to preload; '' when none is needed for its timer, undefined when there is none.
   * @param max limit of all tenants
   */
  nextAhead(max: number): string | undefined {
    return this.#due.nextAhead(this.#deps.clock.now(), max);
  }

  /**
   * Called at the end of a turn: sleeps until the first timer is due. A timeout that is early enough is
   * kept: most turns change nothing, and a turn without due timers costs little.
   */
  sleep(): void {
    const { clock, wakeShard } = this.#deps;
    const at = this.#due.nextAt(clock.now());
    if (at === undefined || this.#stopped) return;
    const waitMs = Math.min(Math.max(0, at - clock.now()), LIMITS.timerHorizonMs);
    const wakesAt = clock.monotonic() + waitMs;
    if (this.#wakesAt < wakesAt + 1) return;
    clock.clearTimeout(this.#wakeHandle);
    this.#wakesAt = wakesAt;
    this.#wakeHandle = clock.setTimeout(() => {
      this.#wakesAt = Number.POSITIVE_INFINITY;
      wakeShard();
    }, waitMs);
  }

  /**
   * Raises the horizon, then reads the timers below it. In this order a timer that is set meanwhile is
   * pushed by its own acknowledgement, and one that is read twice is ignored the second time.
   */
  async #readAhead(): Promise<void> {
    const { clock, loader, wakeShard } = this.#deps;
    const from = this.#horizon;
    this.#horizon = clock.now() + LIMITS.timerHorizonMs;
    await loader.dueTimers(from, this.#horizon, (fireAt, { instance, rank, tenant }) => {
      this.#due.pushFar(fireAt, { kind: 'wake', instance, rank, tenant });
    });
    wakeShard();
  }

  #scanLater(): void {
    if (this.#stopped) return;
    const { clock, tickIntervalMs, log, onStoodStill } = this.#deps;
    const dueAt = clock.monotonic() + tickIntervalMs;
    this.#scanHandle = clock.setTimeout(() => {
      onStoodStill(clock.monotonic() - dueAt);
      this.#scan()
        // Unread timers are below the horizon: a later scan finds them when they are overdue.
        .catch((error: unknown) => log.debug({ err: error }, 'timers could not be read'))
        .finally(() => this.#scanLater());
    }, tickIntervalMs);
  }

  async #scan(): Promise<void> {
    const { clock, loader, onOverdue, isBehind } = this.#deps;
    const now = clock.now();
    if (this.#horizon - now < LIMITS.timerHorizonMs / 2) await this.#readAhead();
    const times = this.#scannedAt;
    const kind = SCANS.findIndex(({ everyMs }, at) => now - times[at]! >= everyMs);
    // The longer scans are made all the same: some tenant may always have a backlog.
    if (SCANS[kind]!.everyMs === 0 && isBehind()) return;
    const to = now - OVERDUE_MS;
    const overdue = await loader.overdueTimers(this.#scannedTo - SCANS[kind]!.backMs, to);
    for (const timer of overdue) onOverdue(timer);
    // The next scan continues with what this one had no room for.
    if (overdue.length === OVERDUE_ROWS_MAX) return;
    this.#scannedTo = to;
    for (let at = kind; at < SCANS.length; at++) times[at] = now;
  }
}
