/** Small answers, by statements that each connection prepares once under their names. Reads only. */

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

/** The row, unless it is another tenant's; '' is any tenant. */
export function owned<Row extends { readonly tenant_id: string }>(
  row: Row | undefined,
  tenant: string,
): Row | undefined {
  return tenant === '' || row?.tenant_id === tenant ? row : undefined;
}
