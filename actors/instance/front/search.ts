/**
 * Finds instances and sequences by what a person has at hand (docs/search.md). Each branch of the statement reads the
 * first entries of a range of an index, and then these instances by key. Metadata that is not searchable is looked
 * through in the newest instances only: rows for all of it would make creations a third dearer.
 */

import type { SearchHit, SearchMatch, SearchQuery } from '../../../schema/search.js';
import { keyedInstanceId, uuidText } from '../../../src/base/ids.js';
import type { JsonObject } from '../../../src/base/json.js';
import { idempotencyKeyOf } from '../../../src/core/creation-key.js';
import { matchIn, searchTerm } from '../../../src/core/search-terms.js';
import { lookup } from '../../../src/db/reads/lookup.js';
import { IS_PRESENT } from '../../../src/db/reads/query.js';
import type { Reader } from '../../../src/db/reads/reader.js';
import { type FrontOperations, jsonReply, listQuery } from '../../../src/http/operation.js';

/** The range of a shorter start would contain the instances of all tenants within minutes. */
const ID_DIGITS_MIN = 8;
const ID_DIGITS = 32;

/** Candidates of each branch, as literals: for parameters the planner would expect a tenth of the table. */
const IDS_READ = 50;
const TERMS_READ = 100;

/** Best first. */
const RANKS: readonly SearchMatch[] = ['id', 'idempotency_key', 'value', 'value', 'name'];

interface Found extends Omit<SearchHit, 'kind' | 'matched_by' | 'matched'> {
  readonly rank: number;
  /** Null: the whole query. */
  readonly matched: string | null;
}

type Recent = Omit<Found, 'rank' | 'matched'> & { readonly metadata: string };

/** The tenant, '' for any; a range of ids; ids derived from the key; a range of terms; the namespace. */
const foundInstances = lookup<Found>(
  'reads_search_instances',
  `with found as (
  (select id, 0 as rank, id::text as matched from instances
   where id between $2::uuid and $3::uuid and ($1::text = '' or tenant_id = $1::text)
   order by id desc limit ${IDS_READ})
  union all
  (select id, 1, null from unnest($4::uuid[]) as derived(id))
  union all
  (select instance_id, 1, null from instance_keys where id = any($4::uuid[]))
  union all
  (select instance_id, 2, term from search_terms
   where tenant_id = $1::text and term = $5::text
   order by created_at desc, instance_id desc limit ${TERMS_READ})
  union all
  (select instance_id, 3, term from search_terms
   where tenant_id = $1::text and term > $5::text and term < $6::text
   order by term desc, created_at desc, instance_id desc limit ${TERMS_READ})
)
select i.id, i.tenant_id, i.namespace, s.name as sequence, s.version, i.state, i.created_at, f.rank, f.matched
from found f
cross join lateral (select * from instances where id = f.id offset 0) i
cross join lateral (select name, version from sequences where id = i.sequence_id offset 0) s
where ($1::text = '' or i.tenant_id = $1::text) and ($7::text is null or i.namespace = $7::text) and ${IS_PRESENT}`,
);

/** Read through for values in their metadata, which has no index. */
const NEWEST_READ = 2_000;
const NEWEST_FAILED_READ = 1_000;
const COLUMNS = 'i.id, i.tenant_id, i.namespace, i.sequence_id, i.state, i.created_at, i.metadata';

/** The tenant, a part of the metadata as JSON, and the namespace. */
const recentInstances = lookup<Recent>(
  'reads_search_recent',
  `select i.id, i.tenant_id, i.namespace, s.name as sequence, s.version, i.state, i.created_at, i.metadata
from (
  (select ${COLUMNS} from instances i where i.tenant_id = $1::text
   order by i.created_at desc, i.id desc limit ${NEWEST_READ})
  union all
  (select ${COLUMNS} from (
     select instance_id from dead_letters where tenant_id = $1::text
     order by created_at desc, instance_id desc limit ${NEWEST_FAILED_READ}) d
   cross join lateral (select * from instances where id = d.instance_id offset 0) i)
) i
cross join lateral (select name, version from sequences where id = i.sequence_id offset 0) s
where strpos(lower(i.metadata::text), $2::text) > 0
  and ($3::text is null or i.namespace = $3::text) and ${IS_PRESENT}
limit ${2 * TERMS_READ}`,
);

/** The newest version of each name that contains the text. */
const foundSequences = lookup<Found>(
  'reads_search_sequences',
  `select s.id, s.tenant_id, s.namespace, s.name as sequence, s.version, s.created_at,
  4 as rank, s.name as matched
from sequences s
where s.tenant_id = $1::text and ($2::text is null or s.namespace = $2::text)
  and strpos(lower(s.name), $3::text) > 0
  and not exists (
    select from sequences o where o.tenant_id = s.tenant_id and o.namespace = s.namespace
      and o.name = s.name and o.version > s.version)
order by strpos(lower(s.name), $3::text), s.name, s.namespace
limit $4::bigint`,
);

export const searchStatements = { foundInstances, recentInstances, foundSequences };

export const searchOperations = {
  'search.list': async ({ reads }, call) => {
    const query = listQuery(call);
    const [instances, recent, sequences] = await Promise.all([
      instancesBy(reads, query),
      recentBy(reads, query),
      sequencesBy(reads, query),
    ]);
    const hits = [...best([...instances, ...recent]), ...sequences]
      .slice(0, query.limit)
      .map((found) => hitOf(found, query.q.trim()));
    return jsonReply(JSON.stringify(hits));
  },
} satisfies Partial<FrontOperations>;

function instancesBy(reads: Reader, { q, tenant_id = '', namespace }: SearchQuery) {
  const text = q.trim();
  const term = searchTerm(q) ?? null;
  // Every stored term that begins with it is below this, in the order of bytes.
  const end = term === null ? null : `${term}\u{10ffff}`;
  const { from = null, to = null } = idRange(text) ?? {};
  const keyed = keyedIds(tenant_id, text);
  return foundInstances.rows(reads, tenant_id, from, to, keyed, term, end, namespace ?? null);
}

async function recentBy(reads: Reader, { q, tenant_id, namespace }: SearchQuery): Promise<Found[]> {
  const term = searchTerm(q);
  if (tenant_id === undefined || term === undefined) return [];
  const part = JSON.stringify(term).slice(1, -1);
  const rows = await recentInstances.rows(reads, tenant_id, part, namespace ?? null);
  return rows.flatMap(({ metadata, ...row }) => {
    const matched = matchIn(JSON.parse(metadata) as JsonObject, term);
    return matched === undefined ? [] : [{ ...row, matched, rank: matched === term ? 2 : 3 }];
  });
}

async function sequencesBy(reads: Reader, { q, tenant_id, namespace, limit }: SearchQuery) {
  if (tenant_id === undefined) return [];
  return foundSequences.rows(reads, tenant_id, namespace ?? null, q.trim().toLowerCase(), limit);
}

/** The ids that begin with the text. */
function idRange(text: string): { from: string; to: string } | undefined {
  const digits = text.toLowerCase().replaceAll('-', '');
  if (!/^[0-9a-f]+$/.test(digits)) return undefined;
  if (digits.length < ID_DIGITS_MIN || digits.length > ID_DIGITS) return undefined;
  return {
    from: uuidText(digits.padEnd(ID_DIGITS, '0')),
    to: uuidText(digits.padEnd(ID_DIGITS, 'f')),
  };
}

/** Of the runs with this idempotency key, the dry one included. */
function keyedIds(tenant: string, idempotency_key: string): string[] {
  if (tenant === '') return [];
  return [false, true].map((dry_run) =>
    keyedInstanceId(tenant, idempotencyKeyOf({ idempotency_key, dry_run }) as string),
  );
}

/** The best match of each instance; of equally good ones the newest first. */
function best(found: readonly Found[]): Found[] {
  const byId = new Map<string, Found>();
  const isBefore = (a: Found, b: Found) => a.rank < b.rank;
  for (const one of found) {
    const other = byId.get(one.id);
    if (other === undefined || isBefore(one, other)) byId.set(one.id, one);
  }
  return [...byId.values()].sort(
    (a, b) => a.rank - b.rank || (a.created_at < b.created_at ? 1 : -1),
  );
}

function hitOf({ rank, matched, ...row }: Found, text: string): SearchHit {
  const match = { matched_by: RANKS[rank]!, matched: matched ?? text };
  return { kind: row.state === undefined ? 'sequence' : 'instance', ...row, ...match };
}
