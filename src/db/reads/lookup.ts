/** Small answers, by statements that each connection prepares once under their names. Reads only. */

import { owned } from '../../base/tenancy.js';
import type { Reader } from './reader.js';

/** What most callers can do about a read that takes too long. */
export const TRY_LATER = 'try again later';

export interface Lookup<Row extends object> {
  readonly text: string;
  rows(reads: Pick<Reader, 'rows'>, ...values: readonly unknown[]): Promise<Row[]>;
  /** The first of them. */
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
 * The row with this id.
 *
 * @param what how a caller is told that there is none
 * @param tenant whose it has to be; '' is any
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
