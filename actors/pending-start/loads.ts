/** Statements of pending starts. */

import { isoTime, type UnixMs } from '../../src/base/time.js';
import { columnsBut, type StoredRow, selected } from '../../src/db/table.js';
import type { COLLECTED_CANCELS } from '../event/tables.js';
import { boundOf, columnOf, isOwn, ofIds, type Queries } from '../runtime/queries.js';
import { type COLLECTED_ITEMS, PENDING_STARTS } from './tables.js';

/** The columns in memory. The creation is read when the instance starts. */
const COLUMNS = columnsBut(PENDING_STARTS, 'creation');

export type PendingRow = StoredRow<typeof PENDING_STARTS, (typeof COLUMNS)[number]>;
/** @property is_awaiting some of its creations name events of `cancel_on` */
export type LoadedStart = PendingRow & { readonly is_awaiting: boolean };
/** Data of one creation as JSON text. */
export type Item = StoredRow<typeof COLLECTED_ITEMS, 'seq' | 'data'>;
export type DueStart = Pick<PendingRow, 'id' | 'key_id' | 'starts_at'>;
/** An order of an event to take out a creation. */
export type StartOrder = StoredRow<typeof COLLECTED_CANCELS, 'event_id' | 'seq'>;
/** A start with orders; without a key when it has started or was dropped. */
type OrderedStart = StoredRow<typeof COLLECTED_CANCELS, 'pending_id'> & {
  readonly key_id: string | null;
};
/** An order whose creation is not collected any more. No key: the event was removed. */
export type LateOrder = StoredRow<typeof COLLECTED_CANCELS> & {
  readonly key_id: string | null;
  readonly event_name: string | null;
};

export const PENDING_START_SQL = {
  startsOfKey: ofIds(
    `${selected(COLUMNS, 'o')}, o.is_awaiting`,
    `select ${selected(COLUMNS)}, exists (select 1 from collected_waits c ` +
      'where c.pending_id = p.id offset 0) as is_awaiting ' +
      'from pending_starts p where key_id = w.id order by created_at, id',
  ),
  keyOfStart: 'select key_id, tenant_id from pending_starts where id = $1::uuid',
  creationOfStart: ofIds('o.creation', 'select creation from pending_starts where id = w.id'),
  itemsOfStart: ofIds(
    'o.seq, o.data',
    'select seq, data from collected_items where pending_id = w.id order by seq',
  ),
  ordersOfStart: ofIds(
    'o.event_id, o.seq',
    'select event_id, seq from collected_cancels where pending_id = w.id order by event_id, seq',
  ),
  orderedStarts:
    'select c.pending_id, p.key_id from collected_cancels c ' +
    'left join pending_starts p on p.id = c.pending_id where c.pending_id > $1::uuid ' +
    `and ${isOwn('c.pending_id', '$3', '$4')} order by c.pending_id limit $2`,
  lateOrders: ofIds(
    'o.pending_id, o.event_id, o.seq, o.tenant_id, o.key_id, o.event_name',
    'select c.pending_id, c.event_id, c.seq, c.tenant_id, e.key_id, e.event_name ' +
      'from collected_cancels c left join events e on e.id = c.event_id ' +
      'where c.pending_id = w.id order by c.event_id, c.seq',
  ),
  dueStarts:
    'select id, key_id, starts_at from pending_starts ' +
    'where (starts_at, id) > ($1::timestamptz, $2::uuid) and starts_at <= $3::timestamptz ' +
    `and ${isOwn('key_id', '$5', '$6')} order by starts_at, id limit $4`,
} as const;

export function pendingStartLoads(queries: Queries) {
  const sql = queries.of(PENDING_START_SQL);
  const startsOfKey = sql.batch<string, LoadedStart>('startsOfKey', columnOf);
  const creations = sql.batch<string, { creation: string }>('creationOfStart', columnOf);
  const items = sql.batch<string, Item>('itemsOfStart', columnOf);
  const orders = sql.batch<string, StartOrder>('ordersOfStart', columnOf);
  const lateOrders = sql.batch<string, LateOrder>('lateOrders', columnOf);
  return {
    /** Oldest first. */
    startsOfKey: (key: string) => startsOfKey.read(key),
    keyOfStart: (id: string) =>
      sql.one<Pick<PendingRow, 'key_id' | 'tenant_id'>>('keyOfStart', [id]),
    /** As JSON text. */
    creationOfStart: async (id: string) => (await creations.read(id))[0]?.creation,
    /** The creations of a batch in their order. */
    itemsOfStart: (id: string) => items.read(id),
    ordersOfStart: (id: string) => orders.read(id),
    /** Starts of the shard that have orders, one row for each, after the given one. */
    orderedStarts: (after: string, limit: number) =>
      sql.own<OrderedStart>('orderedStarts', [after, limit]),
    lateOrders: (id: string) => lateOrders.read(id),
    /** Starts of the shard after the given one, by time. */
    dueStarts: (after: Omit<DueStart, 'key_id'>, to: UnixMs, limit: number) =>
      sql.own<DueStart>('dueStarts', [after.starts_at, after.id, isoTime(to), limit]),
  };
}

export type PendingStartLoads = ReturnType<typeof pendingStartLoads>;

export const EARLIEST = boundOf(Number.NEGATIVE_INFINITY);
