/** The list of tenants. */

import { invalid } from '../../../src/base/errors.js';
import { pageCursor, placeIn } from '../../../src/core/page-cursor.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import { type TenantRow, tenantsText } from '../../../src/db/reads/tenant-reads.js';

/** Every known tenant has rows in one of these tables. */
const LISTED = ['sequences', 'instances', 'api_keys', 'tenant_limits'];

export const TENANTS_TEXT = tenantsText(LISTED);

const ORDER = 'tenants.tenant_id';

/** `Tenant` records. @throws EngineError 400 for a cursor of another list */
export function tenantList(asked: {
  readonly limit: number;
  readonly cursor?: string | undefined;
}): PageRequest<TenantRow> {
  const place = asked.cursor === undefined ? [''] : placeIn(ORDER, ['text'], asked.cursor);
  if (place === undefined) {
    throw invalid('cursor is not one that an earlier page of this list gave');
  }
  return {
    query: { text: TENANTS_TEXT, values: [...place, asked.limit] },
    toText: (row) => JSON.stringify(row),
    cheaper: 'ask for a smaller limit',
    cursorAfter: ({ tenant_id }) => pageCursor(ORDER, [tenant_id]),
  };
}
