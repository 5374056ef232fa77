/** Limits of tenants, as the operator has set them. Reads only. */

import { lookup } from '../../../src/db/reads/lookup.js';
import { columnsOf, selected } from '../../../src/db/table.js';
import { TENANT_LIMITS } from '../../catalog/tables.js';

export interface StoredLimitsRow {
  readonly tenant_id: string;
  /** JSON. */
  readonly limits: string;
  readonly set_at: string;
}

const COLUMNS = columnsOf(TENANT_LIMITS, 'tenant_id', 'limits', 'set_at');

/** In the order of the tenants, from the one after `$1` on. */
export const tenantLimitRows = lookup<StoredLimitsRow>(
  'reads_tenant_limits_after',
  `select ${selected(COLUMNS)} from tenant_limits where tenant_id > $1::text ` +
    'order by tenant_id limit $2::bigint',
);

export const tenantLimitRow = lookup<StoredLimitsRow>(
  'reads_tenant_limits_get',
  `select ${selected(COLUMNS)} from tenant_limits where tenant_id = $1::text`,
);
