/**
 * Ownership of the database: waits as a standby, takes over, renews the row of `engine_lease` and holds a session
 * advisory lock named after its epoch, and reports the loss of both. A standby takes over when the lock is free, or
 * when it has seen no renewal for the length of the lease, by monotonic clocks alone. The fence prevents writes of a
 * stale owner, whose epoch is on no lane row. This order makes a take-over safe:
 * 1. The new epoch's lock is held before the new epoch is visible.
 * 2. The old owner's writers are terminated, so that they hold no locks on lane rows.
 * 3. The epoch of every lane is raised, which waits for a commit in progress.
 * 4. Lease and lanes change in one transaction, guarded by the version of the row that was read.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { type Clock, type ClockReading, offsetFrom, type TimerHandle } from '../base/clock.js';
import { within } from '../base/real-clock.js';
import { LeaseConnection, type LeaseRow } from './lease-connection.js';
import { restoreLease, SchemaError } from './migrate.js';
import type { DbLog } from './pool.js';
import { lookMsMax } from './primary.js';

export interface LeaseOptions {
  readonly connectionString: string;
  /** Unique to this process, at most 40 bytes. */
  readonly owner: string;
  /** Only of this owner's writing sessions: a successor terminates sessions of this name. */
  readonly applicationName: string;
  /** Lane rows 0 … laneCount - 1 exist once the lease is held; further ones get its epoch too. */
  readonly laneCount: number;
  readonly clock: Clock;
  readonly log: DbLog;
  /** Called at most once, if another engine owns the database. */
  readonly onStandby: (current: { readonly owner: string; readonly epoch: number }) => void;
  /** Ends the wait; the promise rejects with the signal's reason. */
  readonly signal: AbortSignal;
  readonly timing?: Partial<LeaseTiming>;
}

export interface LeaseTiming {
  /** The lease ends this long after a renewal, and a stopped owner is replaced. */
  readonly ttlMs: number;
  readonly renewMs: number;
  /** Interval of a standby's polls and of retries of a failed renewal. */
  readonly standbyPollMs: number;
  /** Timeout of connecting and of each statement; a take-over that exceeds it starts again. */
  readonly statementMs: number;
}

/** On the monotonic clock. */
export interface LeaseTimes {
  readonly confirmedAt: number;
  /** Then another process may own the database; extended while the database is unresponsive. */
  readonly trustedUntil: number;
}

/** Six renewals per lease; a stopped owner is replaced within seven seconds. */
export const LEASE_TIMING: LeaseTiming = {
  ttlMs: 6_000,
  renewMs: 1_000,
  standbyPollMs: 300,
  statementMs: 2_000,
};

/** The engine follows the database's clock if the deviation is at least this. */
const FOLLOWED_MS = 1;
/** A stop ends within seconds, even if the database does not respond. */
const RELEASE_MS = 1_000;

/**
 * Resolves when this engine owns the database, however long that takes; an unreachable database is retried.
 * The schema of `0000_engine.sql` must exist.
 * @throws SchemaError when the row of the lease is older than the rest of the database
 */
export async function acquireLease(options: LeaseOptions): Promise<Lease> {
  const timing = { ...LEASE_TIMING, ...options.timing };
  const connection = new LeaseConnection(options, timing);
  const { clock, log, signal, connectionString } = options;
  const silence = new Silence();
  const graceMs = graceOf(timing, connectionString);
  let isStandby = false;
  let isInTrouble = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      try {
        const sentAt = clock.monotonic();
        const seen = await connection.poll(isStandby ? graceMs : 0);
        if (seen === undefined) {
          log.warn({}, 'the row of the lease is lost: putting it back');
          await restoreLease(connectionString, timing.ttlMs);
          continue;
        }
        isInTrouble = false;
        if (seen.isFree || silence.isOver(seen, sentAt, clock.monotonic())) {
          const reading = await connection.takeOver(seen);
          if (reading !== undefined) {
            return new Lease(seen.epoch + 1, connection, options, timing, reading);
          }
        } else if (!isStandby) {
          isStandby = true;
          options.onStandby({ owner: seen.owner, epoch: seen.epoch });
        }
      } catch (error) {
        if (error instanceof SchemaError) throw error;
        if (!isInTrouble) log.warn({ err: error }, 'cannot ask for the lease; trying again');
        isInTrouble = true;
        silence.forget();
        connection.drop();
      }
      // The head of the loop throws the reason of an abort.
      await pause(timing.standbyPollMs, undefined, { signal }).catch(() => undefined);
    }
  } catch (error) {
    connection.drop();
    throw error;
  }
}

/**
 * The lock is free on a server that was just promoted or restarted: the owner lost its session too, and
 * gets the time of one more attempt to take the lock.
 */
function graceOf({ statementMs, standbyPollMs }: LeaseTiming, connectionString: string): number {
  return statementMs + standbyPollMs + lookMsMax(connectionString);
}

/** Only uninterrupted observation counts: the owner cannot renew while the database is unresponsive. */
class Silence {
  #version: string | undefined;
  #since = 0;
  #seenAt = 0;

  forget(): void {
    this.#version = undefined;
  }

  isOver({ version, ttlMs }: LeaseRow, sentAt: number, receivedAt: number): boolean {
    const isBroken = receivedAt - this.#seenAt > ttlMs / 2;
    if (version !== this.#version || isBroken) this.#since = receivedAt;
    this.#version = version;
    this.#seenAt = receivedAt;
    return sentAt - this.#since >= ttlMs || ttlMs === 0;
  }
}

/**
 * The owner's side. Either a round is in progress or a timer is set: a round renews over the connection
 * that holds the lock or, if that was lost, over a new one that takes the lock of the same epoch again.
 *
 * While the database is unavailable no engine can take over, so the owner keeps the lease. If it was
 * replaced meanwhile, it finds out when the database is back; the fence stops it in any case.
 */
export class Lease implements LeaseTimes {
  readonly epoch: number;
  /** Database time minus the monotonic clock. */
  clockOffsetMs: number;
  confirmedAt: number;
  trustedUntil: number;
  readonly #connection: LeaseConnection;
  readonly #options: LeaseOptions;
  readonly #timing: LeaseTiming;
  #isHeld = true;
  #isInTrouble = false;
  #lostReason: string | undefined;
  #onLost: ((reason: string) => void) | undefined;
  #onClock: (offsetMs: number) => void = () => undefined;
  #timer: TimerHandle;
  #round: Promise<void> | undefined;

  constructor(
    epoch: number,
    connection: LeaseConnection,
    options: LeaseOptions,
    timing: LeaseTiming,
    reading: ClockReading,
  ) {
    this.epoch = epoch;
    this.#connection = connection;
    this.#options = options;
    this.#timing = timing;
    this.clockOffsetMs = offsetFrom(reading);
    this.confirmedAt = reading.receivedAt;
    this.trustedUntil = reading.sentAt + timing.ttlMs;
    this.#timer = this.#after(timing.renewMs);
    connection.onEnd(() => this.#renewNow());
  }

  /** Called once: another engine owns, or may own, the database. */
  onLost(listener: (reason: string) => void): void {
    if (this.#lostReason === undefined) this.#onLost = listener;
    else listener(this.#lostReason);
  }

  onClock(listener: (offsetMs: number) => void): void {
    this.#onClock = listener;
  }

  /** Ends the lease, so that a standby takes over immediately. Never rejects. */
  async release(): Promise<void> {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    const { clock } = this.#options;
    clock.clearTimeout(this.#timer);
    await within(clock.monotonic() + RELEASE_MS, this.#giveUp());
    this.#connection.drop();
  }

  /** If it is too late, closing the connection still frees the lock. */
  async #giveUp(): Promise<void> {
    await this.#round;
    try {
      await this.#connection.giveUp(this.epoch);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not give the lease up in order');
    }
  }

  #after(delayMs: number): TimerHandle {
    return this.#options.clock.setTimeout(() => {
      this.#round = this.#runRound();
    }, delayMs);
  }

  /** The connection was lost while idle: a standby may take the lock. */
  #renewNow(): void {
    if (!this.#isHeld || this.#round !== undefined) return;
    this.#options.clock.clearTimeout(this.#timer);
    this.#timer = this.#after(0);
  }

  async #runRound(): Promise<void> {
    const delayMs = await this.#renew();
    this.#round = undefined;
    if (this.#isHeld) this.#timer = this.#after(delayMs);
  }

  async #renew(): Promise<number> {
    const { clock, log } = this.#options;
    try {
      const renewal = await this.#connection.renew(this.epoch);
      if (renewal.kind === 'taken') this.#lose('another engine has taken the database over');
      if (renewal.kind === 'renewed') {
        this.#confirm(renewal.reading);
        return this.#timing.renewMs;
      }
      // 'locked': a standby has the lock; it takes over, or ends and frees it.
    } catch (error) {
      if (!this.#isInTrouble) log.warn({ err: error }, 'cannot renew the lease; trying again');
      this.#isInTrouble = true;
      this.#connection.drop();
      const now = clock.monotonic();
      // After a pause of this process, the failure says nothing about the time of the pause.
      if (now <= this.trustedUntil) this.trustedUntil = now + this.#timing.ttlMs;
    }
    return this.#timing.standbyPollMs;
  }

  #confirm(reading: ClockReading): void {
    this.#isInTrouble = false;
    this.confirmedAt = reading.receivedAt;
    this.trustedUntil = reading.sentAt + this.#timing.ttlMs;
    const offsetMs = offsetFrom(reading, this.clockOffsetMs);
    if (Math.abs(offsetMs - this.clockOffsetMs) < FOLLOWED_MS) return;
    this.clockOffsetMs = offsetMs;
    this.#onClock(offsetMs);
  }

  #lose(reason: string): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#connection.drop();
    this.#lostReason = reason;
    this.#onLost?.(reason);
  }
}
