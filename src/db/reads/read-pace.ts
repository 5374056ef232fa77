/**
 * Limits a tenant with slow lists to one at a time while others use the server, with a rest after each that is as long
 * as the list took: the database does not schedule fairly by tenant. Only tenants with concurrent reads wait. Pure.
 */

import { LIMITS } from '../../base/limits.js';
import type { TenantActivity } from '../../base/quota/tenant-activity.js';

type Reading = { count: number; lastMs: number; restsUntil: number };

export class ReadPace {
  readonly #activity: TenantActivity;
  readonly #tenants = new Map<string, Reading>();

  constructor(activity: TenantActivity) {
    this.#activity = activity;
  }

  /** @returns whether the read has to wait for the tenant's other reads and their rest */
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

  took(tenant: string, ms: number, now: number): void {
    const reading = this.#tenants.get(tenant);
    if (reading === undefined) return;
    reading.lastMs = ms;
    reading.restsUntil = now + Math.min(ms, LIMITS.readWaitMs / 2);
  }

  end(tenant: string): void {
    const reading = this.#tenants.get(tenant);
    if (reading === undefined) return;
    reading.count -= 1;
    if (reading.count === 0) this.#tenants.delete(tenant);
  }
}
