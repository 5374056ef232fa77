/**
 * The change feed of a tenant: audit entries in the order of (time, id), as JSON text. Reads only.
 *
 * Entries lie packed, those of a unit in one row of `audit_log`, or in the row of the instance that
 * the unit created. All of a row have its time. Both tables are walked from the reader's place in the
 * order of an index, `audit_log_by_tenant` and `instances_by_tenant` backwards; of rows that have
 * the same millisecond the entries are sorted. Most instances of a batch carry no entries: so that a
 * read never walks past a million of them, it looks at some thousands at a time.
 */

import { LIMITS } from '../../../src/base/limits.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import type { Query } from '../../../src/db/reads/query.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { type AuditRow, auditText } from '../../instance/front/audit-reads.js';
import { type ChangePlace, placeBefore } from '../core/change-cursor.js';

interface ChangeRow extends AuditRow {
  readonly id: string;
  readonly instance_id: string;
}

/** `AuditEntry` as JSON text, and where it stands. */
export interface ChangeEntry extends ChangePlace {
  readonly text: string;
}

export interface ChangesRequest {
  readonly tenant: string;
  readonly after: ChangePlace;
  /** Only entries of an earlier time: see the watermark in `actors/feed/changes.ts`. */
  readonly below: UnixMs;
  readonly limit: number;
  readonly bytesMax?: number;
}

export interface ChangesPage {
  readonly entries: readonly ChangeEntry[];
  /** Of the last entry; undefined when there is none. */
  readonly last: ChangePlace | undefined;
  /** Everything up to here is in this page or an earlier one. */
  readonly place: ChangePlace;
  /** There are more entries below, or there may be. */
  readonly hasMore: boolean;
}

/** Instances that one statement walks past at most. */
const INSTANCES_AT_ONCE = 2_000;
/** How often one page looks at so many before it says that there may be more. */
const WINDOWS_MAX = 50;

const CHEAPER = 'ask for a smaller limit';

/** One page of the feed. */
export async function changesPage(reads: Reader, request: ChangesRequest): Promise<ChangesPage> {
  const { tenant, below, limit, bytesMax = LIMITS.responseBytesMax } = request;
  const entries: ChangeEntry[] = [];
  let place = request.after;
  let bytesLeft = bytesMax;
  let hasMore = place.at < below;
  for (let windows = 0; hasMore && windows < WINDOWS_MAX; windows++) {
    const end = await endOfWindow(reads, tenant, place.at, below);
    const wanted = bytesLeft > 0 ? limit - entries.length : 0;
    const window = { tenant, after: place, below: end, limit: wanted, bytesMax: bytesLeft };
    const batch = await readWindow(reads, window);
    entries.push(...batch.entries);
    bytesLeft -= batch.entries.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    if (batch.isCut) {
      const last = lastOf(entries);
      return { entries, last, place: last ?? place, hasMore };
    }
    place = placeBefore(end);
    hasMore = end < below;
  }
  return { entries, last: lastOf(entries), place, hasMore };
}

async function readWindow(
  reads: Reader,
  { tenant, after, below, limit, bytesMax }: Required<ChangesRequest>,
): Promise<{ readonly entries: readonly ChangeEntry[]; readonly isCut: boolean }> {
  const entries: ChangeEntry[] = [];
  const { texts, isCut } = await reads.batch<ChangeRow>({
    // One more than is wanted shows whether there are more.
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
  // The last one may be what did not fit.
  return { entries: entries.slice(0, texts.length), isCut };
}

async function endOfWindow(
  reads: Reader,
  tenant: string,
  from: UnixMs,
  below: UnixMs,
): Promise<UnixMs> {
  const query = windowQuery(tenant, from, below);
  const [row] = await reads.rowsOf<{ readonly created_at: string }>(query, CHEAPER);
  return row === undefined ? below : Math.min(below, Date.parse(row.created_at) + 1);
}

function lastOf(entries: readonly ChangeEntry[]): ChangePlace | undefined {
  const last = entries.at(-1);
  return last && { at: last.at, id: last.id };
}

/**
 * The time of the last instance that a statement walks past, beside all that are as old as the place;
 * none when there are fewer. A batch gives ten thousand one time: so each window ends later.
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

/** Entries behind a place and below a time, in the order of the feed. */
export function changesQuery(
  tenant: string,
  after: ChangePlace,
  below: UnixMs,
  limit: number,
): Query {
  const entries = (from: string, instance: string, packed: string) =>
    `(select (entry ->> 'id')::uuid as id, ${instance} as instance_id, tenant_id, entry, ` +
    `created_at from ${from} cross join lateral json_array_elements(${packed}) as e(entry) ` +
    'where tenant_id = $1::text and created_at >= $2::timestamptz ' +
    'and created_at < $4::timestamptz ' +
    "and (created_at, (entry ->> 'id')::uuid) > ($2::timestamptz, $3::uuid) " +
    "order by created_at, (entry ->> 'id')::uuid limit $5::bigint)";
  return {
    text:
      'select id, instance_id, tenant_id, entry, created_at from (' +
      `${entries('audit_log', 'instance_id', 'entries')} union all ` +
      `${entries('instances', 'instances.id', 'creation_audit')}` +
      ') changes order by created_at, id limit $5::bigint',
    values: [tenant, isoTime(after.at), after.id, isoTime(below), limit],
  };
}
