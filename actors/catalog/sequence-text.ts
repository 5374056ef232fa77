/** Wire records of sequences as JSON text, with the stored part inserted verbatim. Pure. */

import type { StoredRow } from '../../src/db/table.js';
import type { SEQUENCES } from './tables.js';

export type SequenceWireRow = StoredRow<typeof SEQUENCES>;
/** In a list: without its definition, or with the number of versions of its name, on request. */
export type SequenceListedRow = Omit<SequenceWireRow, 'definition'> &
  Partial<Pick<SequenceWireRow, 'definition'>> & { readonly versions?: number };

/** `SequenceDefinition` or `SequenceListed`: the stored part, `{"blocks": […], …}`, has only members with a value. */
export function sequenceText(row: SequenceListedRow): string {
  const { definition, versions } = row;
  const fields = definition?.slice(definition.indexOf('{') + 1, definition.lastIndexOf('}'));
  return (
    `{"id":"${row.id}","tenant_id":${JSON.stringify(row.tenant_id)},"namespace":${JSON.stringify(row.namespace)}` +
    `,"name":${JSON.stringify(row.name)},"version":${row.version},"deprecated":${row.deprecated}` +
    `,"hold":${row.hold},"status":"${row.status}"${fields === undefined ? '' : `,${fields}`}` +
    `${versions === undefined ? '' : `,"versions":${versions}`},"created_at":"${row.created_at}"}`
  );
}
