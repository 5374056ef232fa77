/**
 * Keeps a tenant whose lists take long to one of them at a time while others use the server, with a rest after each
 * that is as long as it took: the database has no turns of its own, and works for whoever asks. It is about
 * those who ask for several at once, of which the next one waits. Pure: time is handed in.
 */

import { LIMITS } from '../../base/limits.js';
import type { TenantActivity } from '../../base/quota/tenant-activity.js';

interface Reading {
  /** Reads that are under way or wait. */
  count: number;
  /** How long the last one took. */
  lastMs: number;
  restsUntil: number;
}

export class ReadPace {
  readonly #activity: TenantActivity;
  readonly #tenants = new Map<string, Reading>();

  constructor(activity: TenantActivity) {
    this.#activity = activity;
  }

  /** @returns whether it has to wait for the others of its tenant, and for their rest */
  begin(tenant: string, now: number): boolean {
    const reading = this.#tenants.get(tenant);
    if (reading === undefined) {
      this.#tenants.set(tenant, { count: 1, lastMs: 0, restsUntil: now });
      return false;
    }
    reading.count += 1;
    return reading.lastMs > LIMITS.longReadMs && this.#activity.isShared(now);
  }

  restMs(tenant: string, now: number): number {
    return Math.max(0, (this.#tenants.get(tenant)?.restsUntil ?? now) - now);
  }

  /** The read that took so long. */
  took(tenant: string, ms: number, now: number): void {
    const reading = this.#tenants.get(tenant);
    if (reading === undefined) return;
    reading.lastMs = ms;
    reading.restsUntil = now + Math.min(ms, LIMITS.readWaitMs / 2);
  }

  /** One that began is over, whatever became of it. */
  end(tenant: string): void {
    const reading = this.#tenants.get(tenant);
    if (reading === undefined) return;
    reading.count -= 1;
    if (reading.count === 0) this.#tenants.delete(tenant);
  }
}
