/**
 * What is due when on one shard. Timers that lie ahead stay in their table; those within a horizon
 * are in a heap, and the shard sleeps until the first of them, or until its instance is to be loaded. Scans for overdue rows are the safety
 * net: they find what no event has served.
 */

import type { Clock, TimerHandle } from '../../src/base/clock.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Logger } from '../../src/base/log.js';
import type { UnixMs } from '../../src/base/time.js';
import type { TimerLoads } from '../instance/timer-loads.js';
import { OVERDUE_ROWS_MAX } from '../instance/timer-loads.js';
import type { Room } from '../runtime/room.js';
import type { DueTimer, Timer, TimerQueue } from '../runtime/timer.js';
import { DueTimers } from './due-timers.js';

export interface ShardTimersDeps {
  readonly clock: Clock;
  readonly loader: TimerLoads;
  readonly log: Logger;
  /** Upper bound between two scans for overdue timers. */
  readonly tickIntervalMs: number;
  /** Asks for a turn, in which the shard calls `popDue`. */
  readonly wakeShard: () => void;
  /** An instance whose timer was missed. */
  readonly onOverdue: (timer: DueTimer) => void;
  /** So many wait for their turn that what a scan finds is mostly among them. */
  readonly isBehind: () => boolean;
  /** A timer ran so much later than it was due, since the thread stood still, or did something else. */
  readonly onStoodStill: (ms: number) => void;
}

/** A timer that its event has not served by then was missed. */
const OVERDUE_MS = 1_000;

/**
 * A scan begins a little below the end of the last one. What was served below is gone from the table,
 * but not from the index while any session holds an old snapshot: hours of it would be walked in each
 * tick. Timers may be committed with a time in the past, so longer looks back come less often, and
 * one from the very start rarely; after a loss of hints that one comes next.
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
  /** What was overdue up to here has been found. */
  #scannedTo: UnixMs = Number.NEGATIVE_INFINITY;
  /** When each of the scans was made last. */
  #scannedAt = SCANS.map(() => Number.NEGATIVE_INFINITY);
  #wakeHandle: TimerHandle | undefined;
  /** When that fires, by the monotonic clock. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #scanHandle: TimerHandle | undefined;
  #stopped = false;

  constructor(deps: ShardTimersDeps) {
    this.#deps = deps;
  }

  /** Reads what lies within the horizon, then scans from time to time. */
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
    // Whoever commits is in memory, and is not let go so shortly before its time.
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

  /** There are timers that nobody has told of: those that lie ahead are read again, too. */
  async readAnew(): Promise<void> {
    this.#horizon = Number.NEGATIVE_INFINITY;
    this.peerBack();
    await this.#readAhead();
  }

  popDue(): Timer | undefined {
    return this.#due.popDue(this.#deps.clock.now());
  }

  /**
   * The next instance that is due soon and is to be in memory by then; '' when it is not, undefined when there is none.
   * @param max that may be loaded ahead at once
   */
  nextAhead(max: number): string | undefined {
    return this.#due.nextAhead(this.#deps.clock.now(), max);
  }

  /**
   * Called at the end of a turn: sleeps until the first timer is due. What is set already stays if it comes
   * in time: most turns change nothing, and one that finds nothing due costs little.
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
   * Raises the horizon, then reads the timers below it. In that order: a timer that is set meanwhile
   * is pushed by its own acknowledgement, and a timer that is read twice is ignored the second time.
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
        // What was not read is below the horizon: a later scan finds it when it is overdue.
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
    // The longer looks back are made all the same: some tenant may always have more than is done.
    if (SCANS[kind]!.everyMs === 0 && isBehind()) return;
    const to = now - OVERDUE_MS;
    const overdue = await loader.overdueTimers(this.#scannedTo - SCANS[kind]!.backMs, to);
    for (const timer of overdue) onOverdue(timer);
    // The next scan goes on with what this one had no room for, when some of it has been served.
    if (overdue.length === OVERDUE_ROWS_MAX) return;
    this.#scannedTo = to;
    for (let at = kind; at < SCANS.length; at++) times[at] = now;
  }
}
