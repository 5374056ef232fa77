/** Rate limits, and limits of tenants, which decide which requests are admitted. */

import type { RateLimit } from '../../../schema/rate.js';
import { invalid, notFound } from '../../../src/base/errors.js';
import { rateLimitId } from '../../../src/base/ids.js';
import { limitFor } from '../../../src/core/rate-patterns.js';
import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listBy, type Operation, pageReply } from '../../../src/http/operation.js';
import type { tenantLimitOperations } from '../../catalog/front-rows.js';
import type { Shards } from '../../runtime/shards.js';
import { TenantAdmission } from './admission.js';
import { ownRateLimit, rateLimitList, ratePatterns, tenantList } from './reads.js';
import { storedLimits, TenantLimitOperations, TenantLimitRegistry } from './tenant-limits.js';

/** The key's own limit, else that of the pattern that applies. */
const rateLimitOfKey: Operation<'rateLimits.get'> = async ({ reads }, { tenant, params }) => {
  if (tenant === '') throw invalid('x-tenant-id is required');
  const { key } = params;
  const own = await ownRateLimit.row(reads, rateLimitId(tenant, key));
  const limit = own ?? limitFor(await ratePatterns.rows(reads, tenant), key);
  if (limit === undefined) throw notFound('rate limit');
  const { max_count, window_seconds, updated_at } = limit;
  const record: RateLimit = { tenant_id: tenant, key, max_count, window_seconds, updated_at };
  const pattern = own === undefined ? limit.limit_key : undefined;
  return jsonReply(JSON.stringify({ ...record, pattern }));
};

export function openLimitsFront(kernel: FrontKernel<Shards<typeof tenantLimitOperations>>) {
  const { reads, clock } = kernel;
  const limits = new TenantLimitRegistry();
  const room = {
    parts: [new TenantLimitOperations({ ...kernel, registry: limits })],
    operations: {
      'rateLimits.list': listBy(rateLimitList),
      'rateLimits.get': rateLimitOfKey,
      'tenants.list': async (front, call) => {
        const page = await front.reads.page(tenantList(call.query));
        return pageReply(call, { ...call.query, offset: 0 }, page);
      },
    },
    prepare: () => limits.load(reads),
    tenantComes: async (tenant) => limits.set(tenant, await storedLimits(reads, tenant)),
  } satisfies FrontRoom;
  const monotonic = () => clock.monotonic();
  return { room, admission: new TenantAdmission({ ...kernel, limits, monotonic }) };
}
