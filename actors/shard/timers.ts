/**
 * The timers of one shard. Those within a horizon are in a heap, later ones only in their table; the shard sleeps until
 * the first is due or its instance has to be preloaded. Scans for overdue rows find the timers that were missed.
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

/** Share of one tenant in the preloaded instances, so that others always find room. */
const TENANT_SHARE = 0.75;

/**
 * The timers in memory, by due time. An instance that is only in the database is preloaded shortly before
 * its time, so that a burst of timers waits only for its commits. The number of preloaded instances is
 * bounded, in total and per tenant; other instances are loaded when they are due. Pure.
 */
export class DueTimers {
  /** Their instances may need preloading. */
  readonly #far = new TimerHeap<WakeTimer>();
  readonly #near = new TimerHeap<Timer>();
  readonly #ahead = new Set<Timer>();
  readonly #aheadByTenant = new Tally();

  push(at: UnixMs, timer: Timer): void {
    this.#near.push(at, timer);
  }

  /** Adds a timer whose instance may be in the database only. */
  pushFar(at: UnixMs, timer: WakeTimer): void {
    this.#far.push(at, timer);
  }

  /** The next time after now when a timer or a preload is due. */
  nextAt(now: UnixMs): UnixMs | undefined {
    const near = this.#near.nextAt ?? Number.POSITIVE_INFINITY;
    const far = this.#far.nextAt ?? Number.POSITIVE_INFINITY;
    const loading = far - LIMITS.timerLeadMs;
    // A missed preload is retried whenever there is room.
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
  /** Whether so many instances wait that a scan would mostly find them. */
  readonly isBehind: () => boolean;
  /** A timer ran later than it was due. */
  readonly onStoodStill: (ms: number) => void;
}

/** A timer that is overdue by this much was missed. */
const OVERDUE_MS = 1_000;

/**
 * A scan begins a little before the end of the last one: handled timers stay in the index while any session holds an
 * old snapshot, and a scan from the start would step over hours of them. Timers may be committed with a time in the
 * past, so longer scans run less often, and a full one rarely; after a loss of hints the full one is next.
 */
const SCANS = [
  { backMs: Number.POSITIVE_INFINITY, everyMs: 600_000 },
  { backMs: 60_000, everyMs: 10_000 },
  { backMs: 2_000, everyMs: 0 },
] as const;

export class ShardTimers implements Room, TimerQueue {
  readonly #deps: ShardTimersDeps;
  readonly #due = new DueTimers();
  #horizon: UnixMs = Number.NEGATIVE_INFINITY;
  #scannedTo: UnixMs = Number.NEGATIVE_INFINITY;
  #scannedAt = SCANS.map(() => Number.NEGATIVE_INFINITY);
  #wakeHandle: TimerHandle | undefined;
  /** When it fires, by the monotonic clock. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #scanHandle: TimerHandle | undefined;
  #stopped = false;

  constructor(deps: ShardTimersDeps) {
    this.#deps = deps;
  }

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

  /** A timer of an instance was committed; beyond the horizon it is read later. */
  committed(at: UnixMs, { instance, rank, tenant }: DueTimer): void {
    if (at > this.#horizon) return;
    const timer = { kind: 'wake', instance, rank, tenant } as const;
    // The instance is in memory, and is not evicted so shortly before its time.
    if (at <= this.#deps.clock.now() + LIMITS.timerLeadMs) this.#due.push(at, timer);
    else this.#due.pushFar(at, timer);
  }

  /** Hints of timers with any time may have been lost. */
  peerBack(): void {
    this.#scannedAt = SCANS.map(() => Number.NEGATIVE_INFINITY);
  }

  writerReady(): void {
    this.peerBack();
  }

  /** There are timers without hints: reads those within the horizon again too. */
  async readAnew(): Promise<void> {
    this.#horizon = Number.NEGATIVE_INFINITY;
    this.peerBack();
    await this.#readAhead();
  }

  popDue(): Timer | undefined {
    return this.#due.popDue(this.#deps.clock.now());
  }

  /** The next instance to preload, '' if its timer needs none. @param max over all tenants */
  nextAhead(max: number): string | undefined {
    return this.#due.nextAhead(this.#deps.clock.now(), max);
  }

  /** Sleeps until the first timer is due. Keeps an earlier timeout: most turns change nothing. */
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

  /** Raises the horizon first, so that a timer set meanwhile is pushed; one read twice is ignored. */
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
        // Unread timers are below the horizon: a later scan finds them once they are overdue.
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
    // Longer scans run even then: some tenant may always have a backlog.
    if (SCANS[kind]!.everyMs === 0 && isBehind()) return;
    const to = now - OVERDUE_MS;
    const overdue = await loader.overdueTimers(this.#scannedTo - SCANS[kind]!.backMs, to);
    for (const timer of overdue) onOverdue(timer);
    // The next scan continues after the row limit.
    if (overdue.length === OVERDUE_ROWS_MAX) return;
    this.#scannedTo = to;
    for (let at = kind; at < SCANS.length; at++) times[at] = now;
  }
}
