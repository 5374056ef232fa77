/**
 * Runs SELECTs for all readers: lists of the front thread, rows of actors and of executions. Every read
 * ends in time: the connection to a silent database is dropped. Errors are those of `pg`.
 */

import pg from 'pg';
import { forTenant, type RowReader, withCursor } from './pool.js';

export interface Statement {
  /** Of the prepared statement; one text per name. */
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: readonly unknown[];
}

export class Runner {
  readonly #pool: pg.Pool;
  readonly #timeoutMs: number;
  readonly #tenant: string | undefined;

  /** @param tenant restricts the rows (see `forTenant`) */
  constructor(pool: pg.Pool, timeoutMs: number, tenant?: string) {
    this.#pool = pool;
    this.#timeoutMs = timeoutMs;
    this.#tenant = tenant;
  }

  async all<Row extends object>({ name, text, values }: Statement): Promise<Row[]> {
    // The timeout belongs to the query: that of a pool would end cursors in use.
    const named = name && { name };
    const config = { text, values: [...values], query_timeout: this.#timeoutMs, ...named };
    const query = this.#tenant === undefined ? config : narrowed(config, this.#tenant);
    return (await this.#pool.query<Row>(query as pg.QueryConfig)).rows;
  }

  async one<Row extends object>(statement: Statement): Promise<Row | undefined> {
    return (await this.all<Row>(statement))[0];
  }

  cursor<Row, Result>(
    { text, values }: Omit<Statement, 'name'>,
    use: (reader: RowReader<Row>) => Promise<Result>,
  ): Promise<Result> {
    return withCursor(this.#pool, text, values, use, this.#tenant);
  }

  each<Row>(
    statement: Omit<Statement, 'name'>,
    pieceRows: number,
    take: (row: Row) => void,
  ): Promise<void> {
    return this.cursor<Row, void>(statement, async (reader) => {
      for (;;) {
        const rows = await reader.read(pieceRows, this.#timeoutMs);
        if (rows.length === 0) return;
        for (const row of rows) take(row);
      }
    });
  }
}

/**
 * A separate name, since a plan belongs to one role; `extended`, since simple text would leave the transaction open.
 */
function narrowed(
  config: pg.QueryConfig & { readonly query_timeout: number },
  tenant: string,
): pg.Query {
  const { name, query_timeout } = config;
  const own = { ...config, queryMode: 'extended', ...(name && { name: `${name} of tenant` }) };
  return forTenant(Object.assign(new pg.Query(own), { query_timeout }), tenant);
}
