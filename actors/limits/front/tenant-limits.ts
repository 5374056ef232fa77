/**
 * Sets, reads and removes limits of tenants. The first shard commits each change, which is applied before the response.
 */

import {
  TENANT_LIMIT_NAMES,
  type TenantLimitName,
  type TenantLimits,
} from '../../../schema/tenant-limits.js';
import type { Clock, TimerHandle } from '../../../src/base/clock.js';
import { notFound, unavailable } from '../../../src/base/errors.js';
import { Serial } from '../../../src/base/serial.js';
import { checkUnchanged, updatedAt } from '../../../src/base/unchanged-since.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { type FrontOperations, jsonReply } from '../../../src/http/operation.js';
import type { tenantLimitOperations } from '../../catalog/front-rows.js';
import type { Shards } from '../../runtime/shards.js';
import { type StoredLimitsRow, tenantLimitRow, tenantLimitRows } from './reads.js';

type Rows = Pick<Reader, 'rows'>;

export interface SetLimits {
  readonly limits: Readonly<Partial<Record<TenantLimitName, number | null>>>;
  readonly updatedAt: string;
}

const LOAD_PAGE_ROWS = 5_000;

/**
 * All limits that were set for tenants. Only the front thread admits requests, so a change applies
 * from the next request on.
 */
export class TenantLimitRegistry {
  readonly #byTenant = new Map<string, SetLimits>();

  async load(reads: Rows): Promise<void> {
    for (let after = ''; ; ) {
      const rows = await tenantLimitRows.rows(reads, after, LOAD_PAGE_ROWS);
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

  set(tenant: string, limits: SetLimits | undefined): void {
    if (limits === undefined) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, limits);
  }
}

function setLimitsOf({ limits, set_at }: StoredLimitsRow): SetLimits {
  return { limits: JSON.parse(limits) as SetLimits['limits'], updatedAt: set_at };
}

/** Undefined: the defaults. */
export async function storedLimits(reads: Rows, tenant: string): Promise<SetLimits | undefined> {
  const row = await tenantLimitRow.row(reads, tenant);
  return row && setLimitsOf(row);
}

const SHARD = 0;

/**
 * A change with an unknown outcome is committed within this time or never, because late units of a
 * restarted shard are refused. Until then the row is re-read.
 */
const UNSETTLED_MS = 60_000;
const SETTLE_EVERY_MS = 1_000;

export interface TenantLimitOperationsDeps {
  readonly client: Pick<Shards<typeof tenantLimitOperations>, 'ask'>;
  readonly registry: TenantLimitRegistry;
  readonly reads: Rows;
  readonly clock: Clock;
}

export class TenantLimitOperations {
  readonly #deps: TenantLimitOperationsDeps;
  /** By tenant: when an unknown outcome is final. */
  readonly #unsettled = new Map<string, number>();
  #timer: TimerHandle | undefined;
  readonly #serial = new Serial();

  constructor(deps: TenantLimitOperationsDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#timer);
    this.#unsettled.clear();
  }

  readonly operations = {
    'tenantLimits.put': async (front, { params, body, action }) => {
      const tenant = params.id;
      const limits = Object.fromEntries(
        TENANT_LIMIT_NAMES.map((name) => [name, body[name] ?? null]),
      );
      return this.#serial.run(tenant, async () => {
        this.#checkUnchanged(tenant, body.if_unchanged_since);
        const { client, registry } = this.#deps;
        const set_at = updatedAt(front.now(), registry.of(tenant)?.updatedAt);
        const set = { limits, updatedAt: set_at };
        const row = { tenant_id: tenant, limits, set_at };
        await this.#change(tenant, set, () =>
          client.ask(SHARD, 'tenantLimits.store', '', '', row, { action }),
        );
        return jsonReply(textOf(tenant, set));
      });
    },
    'tenantLimits.get': async (_, { params: { id } }) =>
      jsonReply(textOf(id, this.#deps.registry.of(id))),
    'tenantLimits.delete': async (_, { params, action }) => {
      const tenant = params.id;
      const { client, registry } = this.#deps;
      if (registry.of(tenant) === undefined) throw notFound(`limits of the tenant ${tenant}`);
      await this.#serial.run(tenant, () =>
        this.#change(tenant, undefined, () =>
          client.ask(SHARD, 'tenantLimits.remove', '', tenant, undefined, { action }),
        ),
      );
      return { status: 204, body: undefined };
    },
  } satisfies Partial<FrontOperations>;

  /** @throws EngineError 409, or 503 while the outcome of the last change is unknown */
  #checkUnchanged(tenant: string, since: string | null | undefined): void {
    if (since == null) return;
    if (this.#unsettled.has(tenant))
      throw unavailable('ENG_OVERLOADED', 'the last change is not known to be done');
    checkUnchanged(since, this.#deps.registry.of(tenant)?.updatedAt);
  }

  async #change(
    tenant: string,
    set: SetLimits | undefined,
    commit: () => Promise<unknown>,
  ): Promise<void> {
    const { registry, clock } = this.#deps;
    try {
      await commit();
    } catch (error) {
      this.#unsettled.set(tenant, clock.monotonic() + UNSETTLED_MS);
      this.#settleSoon();
      throw error;
    }
    registry.set(tenant, set);
  }

  #settleSoon(): void {
    this.#deps.clock.clearTimeout(this.#timer);
    this.#timer = this.#deps.clock.setTimeout(() => void this.#settle(), SETTLE_EVERY_MS);
  }

  async #settle(): Promise<void> {
    const { registry, reads, clock } = this.#deps;
    for (const [tenant, until] of this.#unsettled) {
      const before = registry.of(tenant);
      const isLast = clock.monotonic() >= until;
      try {
        const set = await storedLimits(reads, tenant);
        // A change that was applied meanwhile is newer than the row.
        if (registry.of(tenant) !== before) continue;
        if (set?.updatedAt !== before?.updatedAt) registry.set(tenant, set);
        if (isLast) this.#unsettled.delete(tenant);
      } catch {
        // The next round reads again.
      }
    }
    if (this.#unsettled.size > 0) this.#settleSoon();
  }
}

function textOf(tenant: string, set: SetLimits | undefined): string {
  const values = TENANT_LIMIT_NAMES.map((name) => [name, set?.limits[name] ?? null] as const);
  const record: TenantLimits = {
    tenant_id: tenant,
    ...(Object.fromEntries(values) as Omit<TenantLimits, 'tenant_id' | 'updated_at'>),
    updated_at: set === undefined ? null : set.updatedAt,
  };
  return JSON.stringify(record);
}
