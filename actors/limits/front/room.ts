/**
 * Rate limits and limits of tenants on the front thread. The latter are loaded before requests are served, and decide
 * which requests are admitted.
 */

import type { FrontKernel, FrontRoom } from '../../../src/http/front-room.js';
import { listBy, pageReply } from '../../../src/http/operation.js';
import type { tenantLimitOperations } from '../../catalog/front-rows.js';
import type { Shards } from '../../runtime/shards.js';
import { TenantAdmission } from './admission.js';
import { rateLimitList } from './rate-limit-reads.js';
import { tenantLimitRow, tenantLimitRows } from './tenant-limit-reads.js';
import { setLimitsOf, TenantLimitRegistry } from './tenant-limit-registry.js';
import { TenantLimitOperations } from './tenant-limits.js';
import { tenantList } from './tenant-reads.js';

export function openLimitsFront(kernel: FrontKernel<Shards<typeof tenantLimitOperations>>) {
  const { reads, offload, clock } = kernel;
  const limits = new TenantLimitRegistry();
  const room = {
    parts: [new TenantLimitOperations({ ...kernel, registry: limits })],
    operations: {
      'rateLimits.list': listBy(rateLimitList),
      'tenants.list': async (deps, call) =>
        pageReply(
          call,
          { ...call.query, offset: 0 },
          await deps.reads.page(tenantList(call.query)),
        ),
    },
    prepare: () => limits.load((after, limit) => tenantLimitRows.rows(reads, after, limit)),
    tenantComes: async (tenant) => {
      const row = await tenantLimitRow.row(reads, tenant);
      limits.set(tenant, row && setLimitsOf(row));
    },
  } satisfies FrontRoom;
  const { monotonic } = clock;
  return { room, admission: new TenantAdmission({ limits, reads, offload, monotonic }) };
}
