/**
 * Sets, reads and removes tenant limits, with the root key. The first shard commits each change, and it is applied
 * before the response.
 */

import { TENANT_LIMIT_NAMES, type TenantLimits } from '../../../schema/tenant-limits.js';
import type { Clock, TimerHandle } from '../../../src/base/clock.js';
import { notFound, unavailable } from '../../../src/base/errors.js';
import { Serial } from '../../../src/base/serial.js';
import { checkUnchanged, updatedAt } from '../../../src/base/unchanged-since.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { type FrontOperations, jsonReply, type Operation } from '../../../src/http/operation.js';
import type { tenantLimitOperations } from '../../catalog/front-rows.js';
import type { Shards } from '../../runtime/shards.js';
import { tenantLimitRow } from './tenant-limit-reads.js';
import { type SetLimits, setLimitsOf, type TenantLimitRegistry } from './tenant-limit-registry.js';

const SHARD = 0;

/**
 * A change with an unknown outcome happens within this time or never: its shard has answered or was restarted, and late
 * units of a predecessor are refused. Until then the row is re-read.
 */
const UNSETTLED_MS = 60_000;
const SETTLE_EVERY_MS = 1_000;

export interface TenantLimitOperationsDeps {
  readonly client: Pick<Shards<typeof tenantLimitOperations>, 'ask'>;
  readonly registry: TenantLimitRegistry;
  readonly reads: Pick<Reader, 'rows'>;
  readonly clock: Clock;
}

export class TenantLimitOperations {
  readonly #deps: TenantLimitOperationsDeps;
  /** By tenant: when the outcome of the latest change is known. */
  readonly #unsettled = new Map<string, number>();
  #timer: TimerHandle | undefined;
  readonly #serial = new Serial();

  constructor(deps: TenantLimitOperationsDeps) {
    this.#deps = deps;
  }

  /** Idempotent. */
  stop(): void {
    this.#deps.clock.clearTimeout(this.#timer);
    this.#unsettled.clear();
  }

  readonly #put: Operation<'tenantLimits.put'> = async (front, { params, body }) => {
    const tenant = params.id;
    const limits = Object.fromEntries(TENANT_LIMIT_NAMES.map((name) => [name, body[name] ?? null]));
    return this.#serial.run(tenant, async () => {
      this.#checkUnchanged(tenant, body.if_unchanged_since);
      const set_at = updatedAt(front.now(), this.#deps.registry.of(tenant)?.updatedAt);
      const set = { limits, updatedAt: set_at };
      const row = { tenant_id: tenant, limits, set_at };
      await this.#change(tenant, set, (client) =>
        client.ask(SHARD, 'tenantLimits.store', '', '', row),
      );
      return jsonReply(textOf(tenant, set));
    });
  };

  readonly #get: Operation<'tenantLimits.get'> = async (_, { params }) => {
    const tenant = params.id;
    return jsonReply(textOf(tenant, this.#deps.registry.of(tenant)));
  };

  readonly #delete: Operation<'tenantLimits.delete'> = async (_, { params }) => {
    const tenant = params.id;
    const { registry } = this.#deps;
    if (registry.of(tenant) === undefined) throw notFound(`limits of the tenant ${tenant}`);
    await this.#serial.run(tenant, () =>
      this.#change(tenant, undefined, (client) =>
        client.ask(SHARD, 'tenantLimits.remove', '', tenant, undefined),
      ),
    );
    return { status: 204, body: undefined };
  };

  readonly operations = {
    'tenantLimits.put': this.#put,
    'tenantLimits.get': this.#get,
    'tenantLimits.delete': this.#delete,
  } satisfies Partial<FrontOperations>;

  /** @throws EngineError 409; 503 while the outcome of the last change is unknown */
  #checkUnchanged(tenant: string, given: string | null | undefined): void {
    if (given == null) return;
    if (this.#unsettled.has(tenant))
      throw unavailable('ENG_OVERLOADED', 'the last change is not known to be done');
    checkUnchanged(given, this.#deps.registry.of(tenant)?.updatedAt);
  }

  /** After an unknown outcome the row decides. */
  async #change(
    tenant: string,
    set: SetLimits | undefined,
    ask: (client: TenantLimitOperationsDeps['client']) => Promise<unknown>,
  ): Promise<void> {
    const { client, registry, clock } = this.#deps;
    try {
      await ask(client);
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
        const row = await tenantLimitRow.row(reads, tenant);
        // A change applied meanwhile is newer than the row read.
        if (registry.of(tenant) !== before) continue;
        const set = row && setLimitsOf(row);
        if (set?.updatedAt !== before?.updatedAt) registry.set(tenant, set);
        if (isLast) this.#unsettled.delete(tenant);
      } catch {
        // The database is unavailable; the next round reads again.
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
