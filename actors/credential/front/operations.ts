/** Reads of credentials, without their secrets. */

import { invalid, notFound } from '../../../src/base/errors.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { FrontRoom } from '../../../src/http/front-room.js';
import { jsonReply, listBy } from '../../../src/http/operation.js';
import { CREDENTIALS } from '../tables.js';

const SHOWN = columnsBut(CREDENTIALS, 'value', 'refresh_token');
const COLUMNS = `${selected(SHOWN)}, refresh_token is not null as has_refresh_token`;

/** `Credential` records, oldest first. */
const credentialList = list({
  columns: COLUMNS,
  from: 'credentials',
  by: filtersOf(CREDENTIALS, ['tenant_id', 'kind']),
  order: orderBy(CREDENTIALS, ['created_at', 'id']),
});

const credentialById = lookup<object>(
  'read_credential',
  `select ${COLUMNS} from credentials where tenant_id = $1 and id = $2`,
);

export function openCredentialFront() {
  return {
    operations: {
      'credentials.list': listBy(credentialList),
      'credentials.get': async ({ reads }, { tenant, params: { id } }) => {
        if (tenant === '') throw invalid('x-tenant-id is required');
        const row = await credentialById.row(reads, tenant, id);
        if (row === undefined) throw notFound(`credential ${id}`);
        return jsonReply(JSON.stringify(row));
      },
    },
  } satisfies FrontRoom;
}
