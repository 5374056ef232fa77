/** The list and lookup of credentials, without secret columns. */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { CREDENTIALS } from '../tables.js';

const SHOWN = columnsBut(CREDENTIALS, 'value', 'refresh_token');
const COLUMNS = `${selected(SHOWN)}, refresh_token is not null as has_refresh_token`;

export interface ShownCredential extends StoredRow<typeof CREDENTIALS, (typeof SHOWN)[number]> {
  readonly has_refresh_token: boolean;
}

/** `Credential` records, oldest first. */
export const credentialList = list({
  columns: COLUMNS,
  from: 'credentials',
  by: filtersOf(CREDENTIALS, ['tenant_id', 'kind']),
  order: orderBy(CREDENTIALS, ['created_at', 'id']),
});

export const credentialById = lookup<ShownCredential>(
  'read_credential',
  `select ${COLUMNS} from credentials where tenant_id = $1 and id = $2`,
);
