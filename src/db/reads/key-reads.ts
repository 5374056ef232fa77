/**
 * Keys of tenants. Reads only. Secrets are not stored; the hash of one is read by the front's
 * registry alone, and is part of no answer.
 */

import { columnsBut, columnsOf, type StoredRow, selected } from '../tables.js';
import { filtersOf } from './filters.js';
import { list } from './list.js';
import { lookup } from './lookup.js';
import { orderBy } from './order.js';
import type { PageRequest } from './reader.js';

const LIVE = columnsBut('api_keys', 'created_at', 'revoked');
/** What the registry needs to know of a key that was not revoked. */
export type LiveKeyRow = StoredRow<'api_keys', (typeof LIVE)[number]>;

const STATE = columnsOf('api_keys', 'tenant_id', 'revoked', 'last_used_at');
export type KeyState = StoredRow<'api_keys', (typeof STATE)[number]>;

const LISTED = columnsBut('api_keys', 'secret_hash');
type ListedKeyRow = StoredRow<'api_keys', (typeof LISTED)[number]>;

/** In the order of their ids, from the one after `$1` on. */
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
  of: filtersOf('api_keys', ['tenant_id']),
  order: orderBy('api_keys', ['created_at', 'id']),
  toText: keyText,
  cheaper: 'ask for a smaller offset and limit',
});

/**
 * `ApiKey` records of a tenant, oldest first.
 *
 * @param lastUsedAt what is known and not stored yet; undefined: what the row says
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
