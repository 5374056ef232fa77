/**
 * Stored definitions, as JSON text. Reads only. The unique index `sequences_by_name` serves names,
 * versions and the order of the list alike.
 */

import { columnsBut, selected } from '../tables.js';
import { filtersOf } from './filters.js';
import { list } from './list.js';
import { lookup, rowOf } from './lookup.js';
import { orderBy } from './order.js';
import type { Reader } from './reader.js';
import { type SequenceWireRow, sequenceText } from './wire.js';

const SEQUENCES = {
  columns: selected(columnsBut('sequences')),
  from: 'sequences',
  order: orderBy('sequences', ['tenant_id', 'namespace', 'name', '-version']),
  toText: sequenceText,
  cheaper: 'name the tenant and the namespace, or ask for a smaller offset and limit',
};

/** `SequenceDefinition` records by tenant, namespace, name and descending version. */
export const sequenceList = list({
  ...SEQUENCES,
  by: filtersOf('sequences', ['tenant_id', 'namespace']),
});

/** The versions of a name that are not deprecated, newest first, of all tenants without one. */
export const versionList = list({
  ...SEQUENCES,
  of: filtersOf('sequences', ['namespace', 'name']),
  by: filtersOf('sequences', ['tenant_id']),
  always: 'not deprecated',
});

const FOUND = `select ${SEQUENCES.columns} from sequences`;

export const SEQUENCE_LOOKUPS = {
  byId: lookup<SequenceWireRow>('reads_sequence_get', `${FOUND} where id = $1::uuid`),
  version: lookup<SequenceWireRow>(
    'reads_sequence_version',
    `${FOUND} where tenant_id = $1::text and namespace = $2::text and name = $3::text ` +
      'and version = $4::integer',
  ),
};

/** The `SequenceDefinition`. @throws EngineError 404 when the tenant ('' is any) has none of that id */
export async function sequenceById(
  reads: Pick<Reader, 'rows'>,
  id: string,
  tenant: string,
): Promise<string> {
  return sequenceText(await rowOf(reads, SEQUENCE_LOOKUPS.byId, 'sequence', id, tenant));
}

/** One version, deprecated or not; without `version` the newest that is not deprecated. */
export async function sequenceByName(
  reads: Reader,
  name: { readonly tenant_id: string; readonly namespace: string; readonly name: string },
  version: number | undefined,
): Promise<string | undefined> {
  if (version === undefined)
    return (await reads.batch(versionList({ ...name, limit: 1 }))).texts[0];
  const named = [name.tenant_id, name.namespace, name.name];
  const row = await SEQUENCE_LOOKUPS.version.row(reads, ...named, version);
  return row && sequenceText(row);
}
