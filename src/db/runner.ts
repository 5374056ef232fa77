/**
 * Runs SELECTs for everyone who reads: the lists of the front thread, the rows that actors come to
 * life from, and those of executions. Every answer comes in time or not at all: a database that went
 * silent is given up, and its connection with it. Errors are those of `pg`.
 */

import type pg from 'pg';
import { type RowReader, withCursor } from './pool.js';

export interface Statement {
  /** Prepared under this name on each connection, so it must always stand for the same text. */
  readonly name?: string | undefined;
  readonly text: string;
  readonly values: readonly unknown[];
}

export class Runner {
  readonly #pool: pg.Pool;
  readonly #timeoutMs: number;

  /** @param timeoutMs for an answer, and for each piece of `each` */
  constructor(pool: pg.Pool, timeoutMs: number) {
    this.#pool = pool;
    this.#timeoutMs = timeoutMs;
  }

  async all<Row extends object>({ name, text, values }: Statement): Promise<Row[]> {
    // The limit is the query's, not the pool's: there it would end cursors that have long been read.
    const query = { name, text, values: [...values], query_timeout: this.#timeoutMs };
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
    return withCursor(this.#pool, text, values, use);
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
