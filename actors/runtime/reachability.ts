/**
 * Since when a shard can receive heartbeats of workers. The silence of a worker counts from then at the earliest,
 * because messages that could not arrive prove nothing (docs/reference/workers.md).
 *
 * - After a start, a clock change, or the arrival of a tenant from another cell, the silence counts from that time.
 * - During an outage (the database takes no writes, the writer is being replaced, the process was paused, reports were
 *   refused) it counts from now.
 */

import type { UnixMs } from '../../src/base/time.js';

type Dependency = 'database' | 'writer';
export class Reachability {
  readonly #now: () => UnixMs;
  readonly #staleMs: number;
  #since: UnixMs = 0;
  #outageEndedAt: UnixMs = 0;
  readonly #missing = new Set<Dependency>();
  /** When tenants arrived from another cell. */
  readonly #admittedAt = new Map<string, UnixMs>();

  constructor(now: () => UnixMs, staleMs: number) {
    this.#now = now;
    this.#staleMs = staleMs;
  }

  since(tenant: string): UnixMs {
    return Math.max(this.#since, this.outageEnd, this.#admittedAt.get(tenant) ?? 0);
  }

  /** The end of the last outage; now while one lasts, 0 when there was none. */
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

  lost(dependency: Dependency): void {
    this.#missing.add(dependency);
  }

  back(dependency: Dependency): void {
    if (this.#missing.delete(dependency)) this.#outageEndedAt = this.#now();
  }

  /** The refused request may have been a worker's report. */
  turnedAway(): void {
    this.#outageEndedAt = this.#now();
  }

  /** The thread was paused. A pause shorter than half of the stale time does not count as an outage. */
  stoodStill(ms: number): void {
    if (ms >= this.#staleMs / 2) this.#outageEndedAt = this.#now();
  }
}
