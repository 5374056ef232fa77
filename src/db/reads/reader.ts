/**
 * Runs the SELECTs of the reads: pages by cursor under a cap of bytes, small answers at once, both
 * within the time that a read may take. Whatever goes wrong becomes an error of the catalogue here,
 * so that nothing about statements or tables reaches a caller.
 */

import type pg from 'pg';
import { databaseDown, EngineError, isFaultOfData, troubleOf, unavailable } from '../../errors.js';
import { LIMITS } from '../../limits.js';
import { NO_ANSWER_TEXT, type RowReader } from '../pool.js';
import { Runner, type Statement } from '../runner.js';
import type { Query } from './query.js';

/** Part of a list, ready to be sent. */
export interface Page {
  /** A JSON array. */
  readonly text: string;
  readonly count: number;
  /** The size of an answer, or `rowsMax`, ended it: there are more rows. */
  readonly isCut: boolean;
  /** The place behind the last row; undefined without one, and of a list that has no such places. */
  readonly cursor?: string | undefined;
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
  /** The cursor of the place behind a row. */
  readonly cursorAfter?: ((row: Row & object) => string) | undefined;
}

/** Few rows, whose columns are known to be small. */
export interface RowsRequest extends Statement {
  readonly name: string;
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
  readonly #runner: Runner;
  readonly #slowReadMs: number;

  constructor(pool: pg.Pool, slowReadMs: number) {
    this.#runner = new Runner(pool, slowReadMs + SILENCE_GRACE_MS);
    this.#slowReadMs = slowReadMs;
  }

  /**
   * Reads rows until they end or the answer is full. A first row of any size is taken, so that a
   * caller who goes on at the next offset always gets further.
   */
  async page<Row>(request: PageRequest<Row>): Promise<Page> {
    const { texts, last, isCut } = await this.batch(request);
    const cursor = last == null ? undefined : request.cursorAfter?.(last);
    return { text: `[${texts.join(',')}]`, count: texts.length, isCut, cursor };
  }

  /** The same, for a reader that goes on after the last row instead of at an offset. */
  batch<Row>(request: PageRequest<Row>): Promise<Batch<Row>> {
    const endsAt = performance.now() + this.#slowReadMs;
    return inTime(
      request.cheaper,
      this.#runner.cursor<Row, Batch<Row>>(request.query, (rows) => collect(rows, request, endsAt)),
    );
  }

  rows<Row extends object>(request: RowsRequest): Promise<Row[]> {
    return inTime(request.cheaper, this.#runner.all<Row>(request));
  }

  /** Like `rows` for a statement that has no fixed text, and so no name. */
  rowsOf<Row extends object>(query: Query, cheaper: string): Promise<Row[]> {
    return inTime(cheaper, this.#runner.all<Row>(query));
  }
}

async function collect<Row>(
  reader: RowReader<Row>,
  request: PageRequest<Row>,
  endsAt: number,
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
    const leftMs = endsAt - performance.now();
    if (leftMs < 0) throw slowRead(request.cheaper);
    const rows = await reader.read(asked, leftMs + SILENCE_GRACE_MS);
    for (const row of rows) {
      if (texts.length >= rowsMax) return { texts, last, isCut: true };
      const text = toText(row);
      bytes += Buffer.byteLength(text) + 1;
      if (bytes > bytesMax && texts.length > 0) return { texts, last, isCut: true };
      texts.push(text);
      last = row;
    }
    if (rows.length < asked) return { texts, last, isCut: false };
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
  /^(Connection terminated|timeout expired|Client (has encountered|was closed))/;

/** What its pool says when every connection is in use for too long, and after its end. */
const POOL_BUSY_TEXT = 'timeout exceeded when trying to connect';
const POOL_ENDED_TEXT = 'Cannot use a pool after calling end on the pool';

function slowRead(cheaper: string): EngineError {
  return unavailable('ENG_SLOW_READ', `the answer takes too long; ${cheaper}`);
}

/** @param cheaper what a caller is told to do instead when it takes too long */
async function inTime<T>(cheaper: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw asEngineError(error, cheaper);
  }
}

function asEngineError(error: unknown, cheaper: string): EngineError {
  if (error instanceof EngineError) return error;
  const { message, code } = error as Error & { readonly code?: unknown };
  if (code === QUERY_CANCELED || message === NO_ANSWER_TEXT) return slowRead(cheaper);
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
