/**
 * Pages of a tenant's change feed: audit entries in the order of (time, id). The entries of a unit
 * are packed in one row of `audit_log`, or in the row of the instance that the unit created. Both
 * tables are walked by an index, and entries of one millisecond are sorted. Instances of a batch
 * mostly have no entries, so each read walks past some thousands of them.
 */

import { LIMITS } from '../../../src/base/limits.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { withClient } from '../../../src/db/pool.js';
import type { Query } from '../../../src/db/reads/query.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { type AuditRow, auditText, ENTRY_ID, entriesOf } from '../../instance/front/audit-reads.js';
import { type ChangePlace, placeBefore } from '../core/change-cursor.js';

export interface ChangeEntry extends ChangePlace {
  readonly text: string;
}

export interface ChangesRequest {
  readonly tenant: string;
  readonly after: ChangePlace;
  /** Exclusive: the watermark (`actors/feed/changes.ts`). */
  readonly below: UnixMs;
  readonly limit: number;
  readonly bytesMax?: number;
}

export interface ChangesPage {
  readonly entries: readonly ChangeEntry[];
  /** All entries up to here are in this page or an earlier one. */
  readonly place: ChangePlace;
  /** There may be more entries below the watermark. */
  readonly hasMore: boolean;
}

/** Instances that one statement walks past. */
const INSTANCES_AT_ONCE = 2_000;
/** Such statements per page; the page then reports that there may be more. */
const WINDOWS_MAX = 50;
const CHEAPER = 'ask for a smaller limit';

export async function changesPage(reads: Reader, request: ChangesRequest): Promise<ChangesPage> {
  const { tenant, below, limit, bytesMax = LIMITS.responseBytesMax } = request;
  const entries: ChangeEntry[] = [];
  let place = request.after;
  let bytesLeft = bytesMax;
  let hasMore = place.at < below;
  for (let windows = 0; hasMore && windows < WINDOWS_MAX; windows++) {
    const query = windowQuery(tenant, place.at, below);
    const [row] = await reads.rowsOf<{ readonly created_at: string }>(query, CHEAPER);
    const end = row === undefined ? below : Math.min(below, Date.parse(row.created_at) + 1);
    const wanted = bytesLeft > 0 ? limit - entries.length : 0;
    const window = { tenant, after: place, below: end, limit: wanted, bytesMax: bytesLeft };
    const batch = await readWindow(reads, window);
    entries.push(...batch.entries);
    bytesLeft -= batch.entries.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    if (batch.isCut) {
      const { at, id } = entries.at(-1) ?? place;
      return { entries, place: { at, id }, hasMore };
    }
    place = placeBefore(end);
    hasMore = end < below;
  }
  return { entries, place, hasMore };
}

async function readWindow(
  reads: Reader,
  { tenant, after, below, limit, bytesMax }: Required<ChangesRequest>,
): Promise<{ readonly entries: readonly ChangeEntry[]; readonly isCut: boolean }> {
  const entries: ChangeEntry[] = [];
  const { texts, isCut } = await reads.batch<AuditRow & { readonly instance_id: string }>({
    // One more than wanted shows whether there are more.
    query: changesQuery(tenant, after, below, limit + 1),
    toText: (row) => {
      const text = auditText(row.instance_id, row);
      entries.push({ at: Date.parse(row.created_at), id: row.id, text });
      return text;
    },
    cheaper: CHEAPER,
    rowsMax: limit,
    bytesMax,
  });
  // The last entry may not have fitted.
  return { entries: entries.slice(0, texts.length), isCut };
}

/**
 * Returns the time of the last instance that a statement walks past, if there are that many.
 * Instances at the time of the position are not counted, because a whole batch may have one time.
 */
export function windowQuery(tenant: string, from: UnixMs, below: UnixMs): Query {
  return {
    text:
      'select created_at from instances where tenant_id = $1::text ' +
      'and created_at > $2::timestamptz and created_at < $3::timestamptz ' +
      `order by created_at, id offset ${INSTANCES_AT_ONCE} limit 1`,
    values: [tenant, isoTime(from), isoTime(below)],
  };
}

export function changesQuery(
  tenant: string,
  after: ChangePlace,
  below: UnixMs,
  limit: number,
): Query {
  const entries = (from: string, instance: string, packed: string) =>
    `(select ${ENTRY_ID} as id, ${instance} as instance_id, tenant_id, entry, created_at ` +
    `from ${from} ${entriesOf(packed)} ` +
    'where tenant_id = $1::text and created_at >= $2::timestamptz ' +
    'and created_at < $4::timestamptz ' +
    `and (created_at, ${ENTRY_ID}) > ($2::timestamptz, $3::uuid) ` +
    `order by created_at, ${ENTRY_ID} limit $5::bigint)`;
  return {
    text:
      'select id, instance_id, tenant_id, entry, created_at from (' +
      `${entries('audit_log', 'instance_id', 'entries')} union all ` +
      `${entries('instances', 'instances.id', 'creation_audit')}` +
      ') changes order by created_at, id limit $5::bigint',
    values: [tenant, isoTime(after.at), after.id, isoTime(below), limit],
  };
}

/**
 * The mark of earlier owners of the database (`actors/feed/changes.ts`); 0 if the feed was never read. Must be called
 * before an entry is stamped, when the predecessor can no longer raise the mark.
 */
export function readChangeMark(connectionString: string): Promise<UnixMs> {
  return withClient({ connectionString, applicationName: 'engine start' }, async (client) => {
    const { rows } = await client.query<{ readonly stamps_from: string }>(
      'select stamps_from from change_mark where id = 1',
    );
    return rows[0] === undefined ? 0 : Date.parse(rows[0].stamps_from);
  });
}
