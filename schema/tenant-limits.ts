/** Wire shapes and routes of tenants and their limits (docs/limits.md); for the root key. */

import { UNCHANGED } from './change-shapes.js';
import * as t from './common.js';
import { did, get, ok, ownedBy, type RouteRow } from './route-row.js';

const WORK_UNITS = ['bytes', 'rows', 'blocks', 'schedules'] as const;
export type WorkUnit = (typeof WORK_UNITS)[number];

/** Sums of such numbers are exact. */
const NUMBER_MAX = 1_000_000_000_000;

const Rate = t.integer({ minimum: 1, maximum: NUMBER_MAX });
const Count = t.integer({ minimum: 0, maximum: NUMBER_MAX });

const NUMBERS = {
  bytes_per_second: Rate,
  bytes_burst: Rate,
  rows_per_second: Rate,
  rows_burst: Rate,
  blocks_per_second: Rate,
  blocks_burst: Rate,
  schedules_per_second: Rate,
  schedules_burst: Rate,
  schedules_max: Count,
  queue_depth_max: Count,
};
export type TenantLimitName = keyof typeof NUMBERS;
export const TENANT_LIMIT_NAMES = Object.keys(NUMBERS) as TenantLimitName[];

/** Replaces all limits: absent and null members are reset to the default. */
export const PutTenantLimits = t.strictNamed('PutTenantLimits', {
  ...t.allNullish(NUMBERS),
  ...UNCHANGED,
});

export const TenantLimits = t.named('TenantLimits', {
  tenant_id: t.text(),
  ...t.allNullable(NUMBERS),
  updated_at: t.nullable(t.Timestamp),
});
export type TenantLimits = t.Static<typeof TenantLimits>;

const TenantParams = t.object({ id: t.text({ pattern: '\\S', maxLength: t.NAME_LENGTH_MAX }) });

export const Tenant = t.named('Tenant', { tenant_id: t.text() });
export type Tenant = t.Static<typeof Tenant>;

const ofTenant = ownedBy({ owner: 'front', params: TenantParams, isTenantless: true });

export const TENANT_ROWS = {
  'tenants.list': get(
    '/tenants',
    'List the tenants that have sequences, instances, keys or limits, by name.',
    t.list(Tenant),
    { query: t.object({ limit: t.Limit(100, 1_000), cursor: t.Cursor }), isTenantless: true },
  ),
  'tenantLimits.put': ofTenant.put('/tenants/{id}/limits', {
    params: t.object({ id: t.TenantName }),
    summary: 'Replace the limits of a tenant; absent members are reset to the default.',
    body: PutTenantLimits,
    replies: ok(TenantLimits, 409),
    action: did('tenant_limits', 'set', { shows: TENANT_LIMIT_NAMES }),
  }),
  'tenantLimits.get': ofTenant.get('/tenants/{id}/limits', {
    summary: 'Get the limits that were set for a tenant.',
    replies: ok(TenantLimits),
  }),
  'tenantLimits.delete': ofTenant.remove(
    '/tenants/{id}/limits',
    'Reset a tenant to the default limits.',
    {
      action: did('tenant_limits', 'reset'),
    },
  ),
} as const satisfies Record<string, RouteRow>;
