/**
 * All limits that were set for tenants, in the memory of the front thread. Only this thread admits requests, so that a
 * change holds from the next request on. The table is the truth across restarts; only the engine that owns the database
 * writes it.
 */

import type { TenantLimitName } from '../../../schema/tenant-limits.js';
import type { StoredLimitsRow } from './tenant-limit-reads.js';

export interface SetLimits {
  readonly limits: Readonly<Partial<Record<TenantLimitName, number | null>>>;
  readonly updatedAt: string;
}

/** Rows read by one query. */
const LOAD_PAGE_ROWS = 5_000;

export class TenantLimitRegistry {
  readonly #byTenant = new Map<string, SetLimits>();

  async load(page: (after: string, limit: number) => Promise<StoredLimitsRow[]>): Promise<void> {
    for (let after = ''; ; ) {
      const rows = await page(after, LOAD_PAGE_ROWS);
      for (const row of rows) this.set(row.tenant_id, setLimitsOf(row));
      const last = rows.at(-1);
      if (last === undefined || rows.length < LOAD_PAGE_ROWS) return;
      after = last.tenant_id;
    }
  }

  /** Undefined: the defaults. */
  of(tenant: string): SetLimits | undefined {
    return this.#byTenant.get(tenant);
  }

  /** @param limits undefined: the defaults */
  set(tenant: string, limits: SetLimits | undefined): void {
    if (limits === undefined) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, limits);
  }
}

export function setLimitsOf({ limits, set_at }: StoredLimitsRow): SetLimits {
  return { limits: JSON.parse(limits) as SetLimits['limits'], updatedAt: set_at };
}
