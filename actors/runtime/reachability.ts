/**
 * Since when one shard can receive heartbeats of workers. The silence of a worker counts from there at the
 * earliest, because messages that could not arrive prove nothing (docs/reference/workers.md).
 *
 * - After a start, a set clock, or a move of a tenant from another cell, no heartbeat could arrive before.
 * - During an outage (the database takes no writes, the writer is replaced, the process was paused, reports
 *   were refused) the silence ends now.
 */

import type { UnixMs } from '../../src/base/time.js';

/** Causes that last until they end. */
type Missing = 'database' | 'writer';

export class Reachability {
  readonly #now: () => UnixMs;
  readonly #staleMs: number;
  #since: UnixMs = 0;
  #outageEndedAt: UnixMs = 0;
  readonly #missing = new Set<Missing>();
  /** When tenants came from another cell. */
  readonly #admittedAt = new Map<string, UnixMs>();

  /** @param staleMs how long a worker may be silent */
  constructor(now: () => UnixMs, staleMs: number) {
    this.#now = now;
    this.#staleMs = staleMs;
  }

  /** Where the silence of the tenant's workers begins to count. */
  since(tenant: string): UnixMs {
    return Math.max(this.#since, this.outageEnd, this.#admittedAt.get(tenant) ?? 0);
  }

  /** Of the last outage; now while it lasts, 0 when there was none. */
  get outageEnd(): UnixMs {
    return this.#missing.size > 0 ? this.#now() : this.#outageEndedAt;
  }

  /** The shard was started, or its clock was set. */
  begin(): void {
    this.#since = this.#now();
    this.#outageEndedAt = Math.min(this.#outageEndedAt, this.#since);
    this.#admittedAt.clear();
  }

  admitted(tenant: string): void {
    const now = this.#now();
    for (const [other, at] of this.#admittedAt) {
      if (at + this.#staleMs <= now) this.#admittedAt.delete(other);
    }
    this.#admittedAt.set(tenant, now);
  }

  lost(what: Missing): void {
    this.#missing.add(what);
  }

  back(what: Missing): void {
    if (this.#missing.delete(what)) this.#outageEndedAt = this.#now();
  }

  /** A request was refused temporarily, which may have been a worker's report. */
  turnedAway(): void {
    this.#outageEndedAt = this.#now();
  }

  /** The thread runs again. A pause shorter than half of the stale time does not count as an outage. */
  stoodStill(ms: number): void {
    if (ms >= this.#staleMs / 2) this.#outageEndedAt = this.#now();
  }
}
