/**
 * Reads of API keys. Secrets are not stored; only the front's registry reads their hashes, and no response has them.
 */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import type { PageRequest } from '../../../src/db/reads/reader.js';
import { columnsBut, columnsOf, type StoredRow, selected } from '../../../src/db/table.js';
import type { LiveKeyRow } from '../../../src/http/key-registry.js';
import { API_KEYS } from '../tables.js';

const LIVE = columnsBut(API_KEYS, 'created_at', 'revoked');

const STATE = columnsOf(API_KEYS, 'tenant_id', 'revoked', 'last_used_at');
export type KeyState = StoredRow<typeof API_KEYS, (typeof STATE)[number]>;

const LISTED = columnsBut(API_KEYS, 'secret_hash');
type ListedKeyRow = StoredRow<typeof API_KEYS, (typeof LISTED)[number]>;

/** By id, after `$1`. */
export const liveKeys = lookup<LiveKeyRow>(
  'reads_key_live',
  `select ${selected(LIVE)} from api_keys where id > $1::text and not revoked ` +
    'order by id limit $2::bigint',
);

export const keyState = lookup<KeyState>(
  'reads_key_state',
  `select ${selected(STATE)} from api_keys where id = $1::text`,
);

const storedKeyList = list({
  columns: selected(LISTED),
  from: 'api_keys',
  of: filtersOf(API_KEYS, ['tenant_id']),
  order: orderBy(API_KEYS, ['created_at', 'id']),
  toText: keyText,
  cheaper: 'ask for a smaller offset and limit',
});

/**
 * `ApiKey` records of a tenant, oldest first.
 *
 * @param lastUsedAt a time that is not stored yet; undefined: the row has the last use
 */
export function keyList(
  asked: Parameters<typeof storedKeyList>[0],
  lastUsedAt: (id: string) => string | undefined,
): PageRequest<ListedKeyRow> {
  const toText = (row: ListedKeyRow) =>
    keyText({ ...row, last_used_at: lastUsedAt(row.id) ?? row.last_used_at });
  return { ...storedKeyList(asked), toText };
}

function keyText(row: ListedKeyRow): string {
  return JSON.stringify({ ...row, capabilities: JSON.parse(row.capabilities) as unknown });
}
