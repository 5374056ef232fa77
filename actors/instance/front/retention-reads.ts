/** Which instances are to be removed. Reads only. */

import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import type { EndedPage } from './retention.js';
import type { Orphan } from './sequence-removal.js';

/** Instances of deleted sequences, `$1` at most. A sequence without instances has one row. */
export const orphans = lookup<Orphan>(
  'orphans_page',
  'select t.id as sequence, i.id as instance from (' +
    'select id from sequence_tombstones order by id limit $1::int) t left join lateral (' +
    'select id from instances where sequence_id = t.id ' +
    'order by created_at desc, id desc limit $1::int) i on true limit $1::int',
);

/** $1 the id to go on behind, $2 how many rows to look at, $3 the time before which they ended. */
const walked = lookup<{
  readonly id: string;
  readonly is_ended: boolean;
  readonly is_full: boolean;
}>(
  'retention_page',
  'with page as (select id, state, updated_at from instances where id > $1::uuid ' +
    'order by id limit $2::int) ' +
    "select id, state in ('completed', 'cancelled') and updated_at < $3::timestamptz as is_ended, " +
    '(select count(*) from page) = $2::int as is_full from page order by id',
);

/** Looks at so many instances behind the id. */
export async function endedPage(
  reads: Reader,
  after: string,
  before: UnixMs,
  rows: number,
): Promise<EndedPage> {
  const found = await walked.rows(reads, after, rows, isoTime(before));
  const last = found.at(-1);
  return {
    ids: found.filter(({ is_ended }) => is_ended).map(({ id }) => id),
    last: last?.is_full === true ? last.id : undefined,
  };
}
