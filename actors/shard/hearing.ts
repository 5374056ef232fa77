/**
 * From when on workers can be heard, as one shard sees it. Their silence counts from there at the earliest: what
 * could not arrive says nothing about those who would have sent it (docs/reference/workers.md).
 *
 * - A start, a clock that was set, a tenant that came from another cell: nobody could be heard before.
 * - An outage: the database takes no writes, the writer is being replaced, the process stood still, or reports were
 *   turned away. While it lasts the end of the silence is now.
 */

import type { UnixMs } from '../../src/base/time.js';

/** What takes a time to come back. */
type Missing = 'database' | 'writer';

export class Hearing {
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

  /** The silence of workers of this tenant counts from here. */
  since(tenant: string): UnixMs {
    return Math.max(this.#since, this.outageEnd, this.#admittedAt.get(tenant) ?? 0);
  }

  /** Of the last outage; now while it lasts, 0 when there was none. */
  get outageEnd(): UnixMs {
    return this.#missing.size > 0 ? this.#now() : this.#outageEndedAt;
  }

  /** The shard has started, or its clock was set. */
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

  /** A report was turned away, which says that there was one. */
  turnedAway(): void {
    this.#outageEndedAt = this.#now();
  }

  /** The thread runs again: for less than half of what a worker may be silent, nobody is taken for that. */
  stoodStill(ms: number): void {
    if (ms >= this.#staleMs / 2) this.#outageEndedAt = this.#now();
  }
}
