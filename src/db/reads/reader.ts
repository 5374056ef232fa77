/**
 * Runs the SELECTs of the reads: pages by cursor under a cap of bytes, small answers at once, both
 * within the time that a read may take. Whatever goes wrong becomes an error of the catalogue here,
 * so that nothing about statements or tables reaches a caller.
 */

import type pg from 'pg';
import { LIMITS } from '../../config.js';
import { databaseDown, EngineError, isFaultOfData, troubleOf, unavailable } from '../../errors.js';
import { type RowReader, withCursor } from '../pool.js';
import type { Query } from './query.js';

/** Part of a list, ready to be sent. */
export interface Page {
  /** A JSON array. */
  readonly text: string;
  readonly count: number;
  /** The size of an answer, or `rowsMax`, ended it: there are more rows. */
  readonly isCut: boolean;
}

/** Rows in order, as many as were asked for or fit. */
export interface Batch<Row> {
  /** Their wire records. */
  readonly texts: readonly string[];
  readonly last: Row | undefined;
  /** There are more rows. */
  readonly isCut: boolean;
}

export interface PageRequest<Row> {
  readonly query: Query;
  /** The wire record of a row as JSON text. */
  readonly toText: (row: Row) => string;
  /** What a caller is told to do instead when it takes too long. */
  readonly cheaper: string;
  /** Rows that are taken; further ones only show that there are more. Default: all. */
  readonly rowsMax?: number;
  /** Default: the size of an answer. */
  readonly bytesMax?: number;
}

/** Few rows, whose columns are known to be small. */
export interface RowsRequest {
  /** Prepared under this name on each connection, so it must always stand for the same text. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
  readonly cheaper: string;
}

/** The first piece of a page shows how large its rows are. */
const FIRST_ROWS = 4;
/** A piece is built within a few milliseconds, so that other requests are served in between. */
const PIECE_BYTES = 512 * 1024;
/** Rows of the largest contexts, 256 KiB each, are 16 MiB then: what one read may hold at worst. */
const PIECE_ROWS_MAX = 64;
/** How much later than the server we give up: only one that does not answer at all gets so far. */
const SILENCE_GRACE_MS = 1_000;

export class Reader {
  readonly #pool: pg.Pool;
  readonly #slowReadMs: number;

  constructor(pool: pg.Pool, slowReadMs: number) {
    this.#pool = pool;
    this.#slowReadMs = slowReadMs;
  }

  /**
   * Reads rows until they end or the answer is full. A first row of any size is taken, so that a
   * caller who goes on at the next offset always gets further.
   */
  async page<Row>(request: PageRequest<Row>): Promise<Page> {
    const { texts, isCut } = await this.batch(request);
    return { text: `[${texts.join(',')}]`, count: texts.length, isCut };
  }

  /** The same, for a reader that goes on after the last row instead of at an offset. */
  batch<Row>(request: PageRequest<Row>): Promise<Batch<Row>> {
    const { text, values } = request.query;
    return this.#within(request.cheaper, (checkTime) =>
      withCursor<Row, Batch<Row>>(this.#pool, text, values, (rows) =>
        collect(rows, request, checkTime),
      ),
    );
  }

  async rows<Row extends object>(request: RowsRequest): Promise<Row[]> {
    const { name, text, values } = request;
    const result = await this.#within(request.cheaper, () =>
      this.#pool.query<Row>({ name, text, values: [...values] }),
    );
    return result.rows;
  }

  /** Like `rows` for a statement that has no fixed text, and so no name. */
  async rowsOf<Row extends object>({ text, values }: Query, cheaper: string): Promise<Row[]> {
    const result = await this.#within(cheaper, () => this.#pool.query<Row>(text, [...values]));
    return result.rows;
  }

  async #within<T>(cheaper: string, read: (checkTime: () => void) => Promise<T>): Promise<T> {
    const endsAt = performance.now() + this.#slowReadMs;
    const checkTime = () => {
      if (performance.now() > endsAt) throw slowRead(cheaper);
    };
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_, reject) => {
      const giveUp = () => reject(slowRead(cheaper));
      timer = setTimeout(giveUp, this.#slowReadMs + SILENCE_GRACE_MS);
    });
    try {
      return await Promise.race([read(checkTime), silence]);
    } catch (error) {
      throw asEngineError(error, cheaper);
    } finally {
      clearTimeout(timer);
    }
  }
}

async function collect<Row>(
  reader: RowReader<Row>,
  request: PageRequest<Row>,
  checkTime: () => void,
): Promise<Batch<Row>> {
  const {
    toText,
    rowsMax = Number.POSITIVE_INFINITY,
    bytesMax = LIMITS.responseBytesMax,
  } = request;
  const texts: string[] = [];
  let last: Row | undefined;
  let bytes = 2;
  for (;;) {
    const asked = rowsToRead(texts.length, bytes);
    const rows = await reader.read(asked);
    for (const row of rows) {
      if (texts.length >= rowsMax) return { texts, last, isCut: true };
      const text = toText(row);
      bytes += Buffer.byteLength(text) + 1;
      if (bytes > bytesMax && texts.length > 0) return { texts, last, isCut: true };
      texts.push(text);
      last = row;
    }
    if (rows.length < asked) return { texts, last, isCut: false };
    checkTime();
  }
}

function rowsToRead(count: number, bytes: number): number {
  if (count === 0) return FIRST_ROWS;
  return Math.max(1, Math.min(Math.floor((PIECE_BYTES * count) / bytes), PIECE_ROWS_MAX));
}

// ---------------------------------------------------------------- errors

/** The statement was given up: by its time limit, which is the only reason here. */
const QUERY_CANCELED = '57014';

/** What `pg` says, without a code, of a connection that broke or was not made. */
const UNREACHABLE_TEXT =
  /^(Connection terminated|timeout expired|Client (has encountered|was closed)|Query read timeout)/;

/** What its pool says when every connection is in use for too long, and after its end. */
const POOL_BUSY_TEXT = 'timeout exceeded when trying to connect';
const POOL_ENDED_TEXT = 'Cannot use a pool after calling end on the pool';

function slowRead(cheaper: string): EngineError {
  return unavailable('ENG_SLOW_READ', `the answer takes too long; ${cheaper}`);
}

function asEngineError(error: unknown, cheaper: string): EngineError {
  if (error instanceof EngineError) return error;
  const { message, code } = error as Error & { readonly code?: unknown };
  if (code === QUERY_CANCELED) return slowRead(cheaper);
  if (message === POOL_BUSY_TEXT) {
    return unavailable('ENG_OVERLOADED', 'too many lists and reports are being read');
  }
  if (message === POOL_ENDED_TEXT) return unavailable('ENG_STOPPING', 'the engine is stopping');
  const isDefect = typeof code === 'string' ? isFaultOfData(code) : !UNREACHABLE_TEXT.test(message);
  if (isDefect) return new EngineError('ENG_INTERNAL', 'internal error', undefined, error);
  const trouble = troubleOf(error);
  return trouble.kind === 'unreachable' || trouble.kind === 'connections'
    ? unavailable('ENG_DATABASE_DOWN', 'the database cannot be reached')
    : databaseDown('cannot answer', trouble, error);
}
