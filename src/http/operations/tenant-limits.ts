/**
 * Limits of tenants: set, read and removed with the root key. The first shard makes each change durable; it is
 * applied before its answer leaves.
 */

import type { ShardClient } from '../../../actors/shard/client.js';
import { TENANT_LIMIT_NAMES, type TenantLimits } from '../../../schema/tenant-limits.js';
import { isoTime } from '../../core/time.js';
import { tenantLimitRow } from '../../db/reads/tenant-limit-reads.js';
import { notFound } from '../../errors.js';
import { type SetLimits, setLimitsOf, type TenantLimitRegistry } from '../../tenant-limits.js';
import { type FrontDeps, type FrontOperations, jsonReply } from './operation.js';

/** The shard whose actor commits the changes. */
const SHARD = 0;

export function tenantLimitOperations(
  client: Pick<ShardClient, 'ask'>,
  registry: TenantLimitRegistry,
) {
  /** What was asked may have happened although nobody was told so: the row says. */
  const settle = async ({ reads }: FrontDeps, tenant: string, change: Promise<unknown>) => {
    try {
      await change;
    } catch (error) {
      const row = await tenantLimitRow.row(reads, tenant);
      registry.set(tenant, row && setLimitsOf(row));
      throw error;
    }
  };
  return {
    'tenantLimits.put': async (front, { params, body }) => {
      const tenant = params.id.trim();
      const limits = Object.fromEntries(
        TENANT_LIMIT_NAMES.map((name) => [name, body[name] ?? null]),
      );
      const updatedAt = isoTime(front.now());
      const row = { tenant_id: tenant, limits, set_at: updatedAt };
      await settle(front, tenant, client.ask(SHARD, 'tenantLimits.store', '', '', row));
      const set = { limits, updatedAt };
      registry.set(tenant, set);
      return jsonReply(textOf(tenant, set));
    },
    'tenantLimits.get': async (_, { params }) => {
      const tenant = params.id.trim();
      return jsonReply(textOf(tenant, registry.of(tenant)));
    },
    'tenantLimits.delete': async (front, { params }) => {
      const tenant = params.id.trim();
      if (registry.of(tenant) === undefined) throw notFound(`limits of the tenant ${tenant}`);
      await settle(front, tenant, client.ask(SHARD, 'tenantLimits.remove', '', tenant, undefined));
      registry.set(tenant, undefined);
      return { status: 204, body: undefined };
    },
  } satisfies Partial<FrontOperations>;
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
