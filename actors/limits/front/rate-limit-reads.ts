/** The list of rate limits. */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { RATE_LIMITS } from '../tables.js';

/** `RateLimit` records by tenant and key, in the order of code points, whatever the database collation. */
export const rateLimitList = list({
  columns: 'tenant_id, limit_key as key, max_count, window_seconds, updated_at',
  from: 'rate_limits',
  by: filtersOf(RATE_LIMITS, ['tenant_id']),
  order: 'tenant_id collate "C", limit_key collate "C"',
});
