/**
 * Who owns the database. One row, `engine_lease`, names the epoch and its owner and says by database
 * time until when; the owner also holds a session advisory lock named after the epoch. This module
 * waits as a standby, takes over, renews, and tells the owner when it is not the owner any more.
 *
 * It decides who *should* write. What keeps a stale owner from writing is the fence: its epoch is on
 * no lane row any more. Exactly this order makes a take-over safe:
 * 1. The new epoch's lock is held before anybody can see the new epoch.
 * 2. The old owner's writers are ended, so that their locks on lane rows go away.
 * 3. The epoch of every lane is raised, which waits for a commit in progress.
 * 4. Lease and lanes change in one transaction, guarded by the epoch that was judged.
 */

import type { Clock, TimerHandle } from '../core/clock.js';
import { LeaseConnection } from './lease-connection.js';
import type { DbLog } from './pool.js';

export interface LeaseOptions {
  readonly connectionString: string;
  /** Unique to this process, at most 40 bytes. */
  readonly owner: string;
  /** The `application_name` of this owner's writing sessions alone: a successor ends those. */
  readonly applicationName: string;
  /** Lane rows 0 … laneCount - 1 exist once the lease is held; those beyond keep up in epoch. */
  readonly laneCount: number;
  readonly clock: Clock;
  readonly log: DbLog;
  /** Told once, when somebody else owns the database at first sight. */
  readonly onStandby: (current: { readonly owner: string; readonly epoch: number }) => void;
  /** Ends the waiting; the promise then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /**
   * How long, in ms past its end, an owner that cannot reach the database keeps the lease. 0 gives
   * it up with its end; Infinity never, which is as safe and better in an outage: an owner that was
   * replaced meanwhile sees it when the database is back, and the fence stops it in any case.
   */
  readonly unreachableMs: number;
  readonly timing?: Partial<LeaseTiming>;
}

/** Milliseconds. Tests shorten them. */
export interface LeaseTiming {
  /** How long the lease holds after a renewal: a stopped owner is replaced after this. */
  readonly ttlMs: number;
  readonly renewMs: number;
  readonly standbyPollMs: number;
  /** Limit of connecting, and of each statement; a take-over that meets it is begun again. */
  readonly statementMs: number;
}

export interface Lease {
  readonly epoch: number;
  /** The listener is called once: another engine has, or may have, the database now. */
  onLost(listener: (reason: string) => void): void;
  /** Frees the lock and ends the lease, so that a standby takes over at once. Never rejects. */
  release(): Promise<void>;
}

/** Four renewals fit into one lease; with them a stopped owner is replaced within seven seconds. */
export const LEASE_TIMING: LeaseTiming = {
  ttlMs: 6_000,
  renewMs: 1_500,
  standbyPollMs: 300,
  statementMs: 2_000,
};

/** A stop must end within seconds, also when the database does not answer. */
const RELEASE_MS = 1_000;

/**
 * Resolves when this engine owns the database, however long that takes; the schema of
 * `0000_engine.sql` must exist. A database that cannot be reached meanwhile is tried again.
 */
export async function acquireLease(options: LeaseOptions): Promise<Lease> {
  const timing = { ...LEASE_TIMING, ...options.timing };
  const connection = new LeaseConnection(options, timing);
  const { clock, log, signal } = options;
  let isToldStandby = false;
  let isInTrouble = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      try {
        const sentAt = clock.monotonic();
        const seen = await connection.poll();
        isInTrouble = false;
        if (seen.isFree || seen.isExpired) {
          const epoch = await connection.takeOver(seen);
          if (epoch !== undefined) return new HeldLease(epoch, connection, options, timing, sentAt);
        } else if (!isToldStandby) {
          isToldStandby = true;
          options.onStandby({ owner: seen.owner, epoch: seen.epoch });
        }
      } catch (error) {
        if (!isInTrouble) log.warn({ err: error }, 'cannot ask for the lease; trying again');
        isInTrouble = true;
        connection.drop();
      }
      await pause(clock, timing.standbyPollMs, signal);
    }
  } catch (error) {
    connection.drop();
    throw error;
  }
}

/**
 * The owner's side. One round is in progress or one timer is set, never both: a round renews over
 * the connection that holds the lock, or, when that was lost, over a new one that takes the lock of
 * the same epoch again.
 */
class HeldLease implements Lease {
  readonly epoch: number;
  readonly #connection: LeaseConnection;
  readonly #options: LeaseOptions;
  readonly #timing: LeaseTiming;
  #isHeld = true;
  /** When the lease ends, on the monotonic clock: never later than what the database says. */
  #endsAt: number;
  #isInTrouble = false;
  #lostReason: string | undefined;
  #listener: ((reason: string) => void) | undefined;
  #timer: TimerHandle;
  #round: Promise<void> | undefined;

  constructor(
    epoch: number,
    connection: LeaseConnection,
    options: LeaseOptions,
    timing: LeaseTiming,
    sentAt: number,
  ) {
    this.epoch = epoch;
    this.#connection = connection;
    this.#options = options;
    this.#timing = timing;
    this.#endsAt = sentAt + timing.ttlMs;
    this.#timer = this.#after(timing.renewMs);
    connection.onEnd(() => this.#hurry());
  }

  onLost(listener: (reason: string) => void): void {
    if (this.#lostReason === undefined) this.#listener = listener;
    else listener(this.#lostReason);
  }

  async release(): Promise<void> {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    const { clock } = this.#options;
    clock.clearTimeout(this.#timer);
    let limit: TimerHandle;
    const tooLong = new Promise<void>((resolve) => {
      limit = clock.setTimeout(resolve, RELEASE_MS);
    });
    await Promise.race([this.#giveUp(), tooLong]);
    clock.clearTimeout(limit);
    this.#connection.drop();
  }

  /** What it does not reach in time, the end of the connection does: only the lease runs on then. */
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

  /** The connection ended while it was idle: the lock is free, and a standby may be looking. */
  #hurry(): void {
    if (!this.#isHeld || this.#round !== undefined) return;
    this.#options.clock.clearTimeout(this.#timer);
    this.#timer = this.#after(0);
  }

  async #runRound(): Promise<void> {
    const delayMs = await this.#renew();
    this.#round = undefined;
    if (this.#isHeld) this.#timer = this.#after(delayMs);
  }

  /** Returns when the next round is due. */
  async #renew(): Promise<number> {
    const { clock, log, unreachableMs } = this.#options;
    const sentAt = clock.monotonic();
    try {
      const outcome = await this.#connection.renew(this.epoch);
      if (outcome === 'taken') this.#lose('another engine has taken the database over');
      if (outcome === 'renewed') {
        this.#endsAt = sentAt + this.#timing.ttlMs;
        this.#isInTrouble = false;
        return this.#timing.renewMs;
      }
      // 'locked': a standby was quicker with the lock. It takes over, or ends and frees it.
    } catch (error) {
      if (!this.#isInTrouble) log.warn({ err: error }, 'cannot renew the lease; trying again');
      this.#isInTrouble = true;
      this.#connection.drop();
    }
    const overdueMs = clock.monotonic() - this.#endsAt;
    if (overdueMs > unreachableMs) {
      this.#lose(`the lease ended ${Math.round(overdueMs)} ms ago and could not be renewed`);
    }
    return this.#timing.standbyPollMs;
  }

  #lose(reason: string): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#connection.drop();
    this.#lostReason = reason;
    this.#listener?.(reason);
  }
}

function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clock.clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = clock.setTimeout(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
