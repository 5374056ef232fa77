/** The rate limits of a tenant, or of all. Reads only. */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { RATE_LIMITS } from '../tables.js';

/** `RateLimit` records by tenant and key, in the order of code points, whatever the database sorts by. */
export const rateLimitList = list({
  columns: 'tenant_id, limit_key as key, max_count, window_seconds, updated_at',
  from: 'rate_limits',
  by: filtersOf(RATE_LIMITS, ['tenant_id']),
  order: 'tenant_id collate "C", limit_key collate "C"',
});
