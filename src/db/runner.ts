/**
 * Runs SELECTs for everyone who reads: the lists of the front thread, the rows that actors come to
 * life from, and those of executions. Every answer comes in time or not at all: a database that went
 * silent is given up, and its connection with it. Errors are those of `pg`.
 */

import pg from 'pg';
import { forTenant, type RowReader, withCursor } from './pool.js';

export interface Statement {
  /** Prepared under this name on each connection, so it must always stand for the same text. */
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: readonly unknown[];
}

export class Runner {
  readonly #pool: pg.Pool;
  readonly #timeoutMs: number;
  readonly #tenant: string | undefined;

  /**
   * @param timeoutMs for an answer, and for each piece of `each`
   * @param tenant whose rows alone are seen (see `forTenant`)
   */
  constructor(pool: pg.Pool, timeoutMs: number, tenant?: string) {
    this.#pool = pool;
    this.#timeoutMs = timeoutMs;
    this.#tenant = tenant;
  }

  async all<Row extends object>({ name, text, values }: Statement): Promise<Row[]> {
    // The limit is the query's, not the pool's: there it would end cursors that have long been read.
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

  /** Has `use` read the rows in pieces, on a connection of its own. */
  cursor<Row, Result>(
    { text, values }: Omit<Statement, 'name'>,
    use: (reader: RowReader<Row>) => Promise<Result>,
  ): Promise<Result> {
    return withCursor(this.#pool, text, values, use, this.#tenant);
  }

  /** Calls `take` with every row, one piece after the other. */
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
 * Prepared under a name of its own: a plan is made for one role, and would be made anew at each change. A
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
