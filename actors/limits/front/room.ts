/** Rate limits, and limits of tenants, which decide which requests are admitted. */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { listBy, pageReply } from '../../../src/http/operation.js';
import type { tenantLimitOperations } from '../../catalog/front-rows.js';
import type { Shards } from '../../runtime/shards.js';
import { TenantAdmission } from './admission.js';
import { rateLimitList, tenantList } from './reads.js';
import { storedLimits, TenantLimitOperations, TenantLimitRegistry } from './tenant-limits.js';

export function openLimitsFront(kernel: FrontKernel<Shards<typeof tenantLimitOperations>>) {
  const { reads, clock } = kernel;
  const limits = new TenantLimitRegistry();
  const room = {
    parts: [new TenantLimitOperations({ ...kernel, registry: limits })],
    operations: {
      'rateLimits.list': listBy(rateLimitList),
      'tenants.list': async (front, call) => {
        const page = await front.reads.page(tenantList(call.query));
        return pageReply(call, { ...call.query, offset: 0 }, page);
      },
    },
    prepare: () => limits.load(reads),
    tenantComes: async (tenant) => limits.set(tenant, await storedLimits(reads, tenant)),
  } satisfies FrontRoom;
  const { monotonic } = clock;
  return { room, admission: new TenantAdmission({ ...kernel, limits, monotonic }) };
}
