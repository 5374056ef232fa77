/** Lists and lookups of sequences, as JSON text. The unique index `sequences_by_name` serves all but lookups by id. */

import type { SequenceListQuery } from '../../../schema/sequence.js';
import { contains, filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, rowOf } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import type { PageRequest, Reader } from '../../../src/db/reads/reader.js';
import { columnsBut, type StoredRow, selected } from '../../../src/db/table.js';
import { SEQUENCES } from '../tables.js';

export type SequenceWireRow = StoredRow<typeof SEQUENCES>;
/** A listed row: on request without its definition, or with the number of versions of its name. */
export type SequenceListedRow = Omit<SequenceWireRow, 'definition'> &
  Partial<Pick<SequenceWireRow, 'definition'>> & { readonly versions?: number };

/** `SequenceDefinition` or `SequenceListed`. The stored part, `{"blocks": […], …}`, has only members with a value. */
function sequenceText(row: SequenceListedRow): string {
  const { definition, versions } = row;
  const fields = definition?.slice(definition.indexOf('{') + 1, definition.lastIndexOf('}'));
  return (
    `{"id":"${row.id}","tenant_id":${JSON.stringify(row.tenant_id)},"namespace":${JSON.stringify(row.namespace)}` +
    `,"name":${JSON.stringify(row.name)},"version":${row.version},"deprecated":${row.deprecated}` +
    `,"hold":${row.hold},"status":"${row.status}"${fields === undefined ? '' : `,${fields}`}` +
    `${versions === undefined ? '' : `,"versions":${versions}`},"created_at":"${row.created_at}"}`
  );
}

const SHOWN = {
  columns: selected(columnsBut(SEQUENCES)),
  from: 'sequences',
  order: orderBy(SEQUENCES, ['tenant_id', 'namespace', 'name', '-version']),
  toText: sequenceText,
  cheaper: 'name the tenant and the namespace, or ask for a smaller offset and limit',
};

const OTHERS =
  'from sequences o where o.tenant_id = sequences.tenant_id ' +
  'and o.namespace = sequences.namespace and o.name = sequences.name';

const LISTED = {
  ...SHOWN,
  by: {
    ...filtersOf(SEQUENCES, ['tenant_id', 'namespace', 'name']),
    name_contains: contains('sequences.name'),
  },
};
const KNOWN_BY = selected(columnsBut(SEQUENCES, 'definition'));

const EVERY_VERSION = {
  whole: list<SequenceListedRow, never, keyof typeof LISTED.by>(LISTED),
  brief: list<SequenceListedRow, never, keyof typeof LISTED.by>({ ...LISTED, columns: KNOWN_BY }),
};

/** The newest version of each name. */
const NEWEST_VERSION = { whole: newestList(SHOWN.columns), brief: newestList(KNOWN_BY) };

function newestList(columns: string) {
  return list<SequenceListedRow, never, keyof typeof LISTED.by>({
    ...LISTED,
    columns: `${columns}, (select count(*)::integer ${OTHERS}) as versions`,
    always: `not exists (select ${OTHERS} and o.version > sequences.version)`,
  });
}

/** `SequenceListed` records by tenant, namespace, name and descending version. */
export function sequenceList(
  query: Parameters<typeof EVERY_VERSION.whole>[0] &
    Partial<Pick<SequenceListQuery, 'newest_only' | 'include_definition'>>,
): PageRequest<SequenceListedRow> {
  const lists = query.newest_only ? NEWEST_VERSION : EVERY_VERSION;
  return (query.include_definition === false ? lists.brief : lists.whole)(query);
}

/** The versions of a name that are not deprecated, newest first. */
export const versionList = list({
  ...SHOWN,
  of: filtersOf(SEQUENCES, ['namespace', 'name']),
  by: filtersOf(SEQUENCES, ['tenant_id']),
  always: 'not deprecated',
});

/** The versions that the name can resolve to. */
const CHOSEN = list({
  ...SHOWN,
  of: filtersOf(SEQUENCES, ['tenant_id', 'namespace', 'name']),
  always: 'not deprecated and not hold',
});

const FOUND = `select ${SHOWN.columns} from sequences`;

export const SEQUENCE_LOOKUPS = {
  byId: lookup<SequenceWireRow>('reads_sequence_get', `${FOUND} where id = $1::uuid`),
  /** Without the definition. */
  brief: lookup<Omit<SequenceWireRow, 'definition'>>(
    'reads_sequence_brief',
    `select ${KNOWN_BY} from sequences where id = $1::uuid`,
  ),
  version: lookup<SequenceWireRow>(
    'reads_sequence_version',
    `${FOUND} where tenant_id = $1::text and namespace = $2::text and name = $3::text ` +
      'and version = $4::integer',
  ),
};

/** @param tenant '' is any @throws EngineError 404 */
export async function sequenceById(
  reads: Pick<Reader, 'rows'>,
  id: string,
  tenant: string,
): Promise<string> {
  return sequenceText(await rowOf(reads, SEQUENCE_LOOKUPS.byId, 'sequence', id, tenant));
}

/** A given version, or without `version` the newest that is neither deprecated nor on hold. */
export async function sequenceByName(
  reads: Reader,
  name: { readonly tenant_id: string; readonly namespace: string; readonly name: string },
  version: number | undefined,
): Promise<string | undefined> {
  if (version === undefined) return (await reads.batch(CHOSEN({ ...name, limit: 1 }))).texts[0];
  const named = [name.tenant_id, name.namespace, name.name];
  const row = await SEQUENCE_LOOKUPS.version.row(reads, ...named, version);
  return row && sequenceText(row);
}
