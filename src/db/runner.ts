/**
 * Runs SELECTs for all readers: the lists of the front thread, the rows of actors, and those of executions.
 * Every read ends in time: the connection to a silent database is dropped. Errors are those of `pg`.
 */

import pg from 'pg';
import { forTenant, type RowReader, withCursor } from './pool.js';

export interface Statement {
  /** The name of the prepared statement: one text per name. */
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
    // The limit belongs to the query: a limit of the pool would end cursors that are still read.
    const config = {
      text,
      values: [...values],
      query_timeout: this.#timeoutMs,
      ...(name && { name }),
    };
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

  /** Calls `take` with every row, in pieces. */
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
 * Uses a separate statement name, since a plan belongs to one role and would be replanned at each change. A
 * statement without values must not go as simple text, which would leave the transaction open.
 */
function narrowed(
  config: pg.QueryConfig & { readonly query_timeout: number },
  tenant: string,
): pg.Query {
  const { name, query_timeout } = config;
  const own = { ...config, queryMode: 'extended', ...(name && { name: `${name} of tenant` }) };
  return forTenant(Object.assign(new pg.Query(own), { query_timeout }), tenant);
}
