/** Small reads by prepared statements. */

import { owned } from '../../base/tenancy.js';
import type { Reader } from './reader.js';

export const TRY_LATER = 'try again later';

export interface Lookup<Row extends object> {
  readonly text: string;
  rows(reads: Pick<Reader, 'rows'>, ...values: readonly unknown[]): Promise<Row[]>;
  row(reads: Pick<Reader, 'rows'>, ...values: readonly unknown[]): Promise<Row | undefined>;
}

export function lookup<Row extends object>(
  name: string,
  text: string,
  cheaper: string = TRY_LATER,
): Lookup<Row> {
  const rows: Lookup<Row>['rows'] = (reads, ...values) =>
    reads.rows<Row>({ name, text, values, cheaper });
  return { text, rows, row: async (reads, ...values) => (await rows(reads, ...values))[0] };
}

/**
 * @param what names the row in the 404 message
 * @param tenant the required owner; '' is any
 * @throws EngineError 404
 */
export async function rowOf<Row extends { readonly tenant_id: string }>(
  reads: Pick<Reader, 'rows'>,
  byId: Lookup<Row>,
  what: string,
  id: string,
  tenant: string,
): Promise<Row> {
  return owned(await byId.row(reads, id), tenant, `${what} ${id}`);
}
