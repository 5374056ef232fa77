/**
 * Runs the SELECTs of the reads: pages by cursor under a cap of bytes, small answers at once, both
 * within the time that a read may take. Whatever goes wrong becomes an error of the catalogue here,
 * so that nothing about statements or tables reaches a caller.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { EngineError, shareTaken, unavailable } from '../../base/errors.js';
import { LIMITS } from '../../base/limits.js';
import { FairSlots } from '../../base/quota/fair-slots.js';
import { NO_ANSWER_TEXT, type RowReader } from '../pool.js';
import { Runner, type Statement } from '../runner.js';
import { databaseDown, isFaultOfData, troubleOf } from '../trouble.js';
import type { Query } from './query.js';
import type { ReadPace } from './read-pace.js';

/** Part of a list, ready to be sent. */
export interface Page {
  /** A JSON array. */
  readonly text: string;
  readonly count: number;
  /** The size of an answer, or `rowsMax`, ended it: there are more rows. */
  readonly isCut: boolean;
  /** So did the number of rows that a list may look at: it goes on by its cursor only. */
  readonly isWalked: boolean;
  /** The place behind the last row that was looked at; undefined without one, and of a list that has no such places. */
  readonly cursor?: string | undefined;
}

/** Rows in order, as many as were asked for or fit. */
export interface Batch<Row> {
  /** Their wire records. */
  readonly texts: readonly string[];
  readonly last: Row | undefined;
  /** There are more rows. */
  readonly isCut: boolean;
  /** Because no more rows may be looked at: `last` is the last of these, and may be none of the list. */
  readonly isWalked: boolean;
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
  /** Of a list that looks at more rows than it has, and at so many only. */
  readonly walk?: WalkedPage<Row> | undefined;
  /** The cursor of the place behind a row. */
  readonly cursorAfter?: ((row: Row & object) => string) | undefined;
}

export interface WalkedPage<Row> {
  /** Rows of the list that are left out before the page. */
  readonly skip: number;
  /** Looks at what is behind a row, for a page that has taken so many rows, those left out included. */
  readonly on: (cursor: string, taken: number) => Query;
  /** Whether it is the last one that the statement looked at. */
  readonly endOf: (row: Row) => boolean;
  /** Whether it is one of the list; the last one that is looked at is told in any case. */
  readonly isMatch: (row: Row) => boolean;
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
/** Small rows that are taken at once: a few milliseconds, also where each has the longest message. */
const TAKEN_ROWS = 250;
/** Rows of the largest contexts, 256 KiB each, are 16 MiB then: what one read may hold at worst. */
const PIECE_ROWS_MAX = 64;
/** How much later than the server we give up: only one that does not answer at all gets so far. */
const SILENCE_GRACE_MS = 1_000;

/** Whose the reads of the engine itself are: no tenant is called so. */
const ENGINE = '\0engine';

/** What the reads of all tenants share. */
export interface SharedReads {
  readonly pool: pg.Pool;
  readonly slowReadMs: number;
  readonly slots: FairSlots;
  readonly pace: ReadPace;
  /** Of tenants whose reads take long: one for each. */
  readonly longTurns: FairSlots;
  /** Row level security is on (`row-security.ts`). */
  isWalled: boolean;
}

/** Reads for the engine itself; `of` gives one for a tenant, and all of them share the connections. */
export class Reader {
  readonly #shared: SharedReads;
  readonly #runner: Runner;
  readonly #slowReadMs: number;
  readonly #slots: FairSlots;
  readonly #path: readonly string[];

  constructor(shared: SharedReads, party: string = ENGINE) {
    const { pool, slowReadMs, slots, isWalled } = shared;
    const tenant = isWalled && party !== ENGINE && party !== '' ? party : undefined;
    this.#shared = shared;
    this.#runner = new Runner(pool, slowReadMs + SILENCE_GRACE_MS, tenant);
    this.#slowReadMs = slowReadMs;
    this.#slots = slots;
    this.#path = [party];
  }

  /** Of all tenants, being read. */
  get active(): number {
    return this.#slots.active;
  }

  get waiting(): number {
    return this.#slots.waiting;
  }

  /**
   * The same for requests of a tenant, whose reads take its share of the connections, and see its rows only.
   *
   * @param tenant '' is that of a caller who has none, and sees all
   */
  of(tenant: string): Reader {
    return new Reader(this.#shared, tenant);
  }

  /** Reads for tenants are narrowed by the database as well from now on, which can do so. */
  wallTenants(): void {
    this.#shared.isWalled = true;
  }

  /**
   * Reads rows until they end or the answer is full. A first row of any size is taken, so that a
   * caller who goes on at the next offset always gets further.
   */
  async page<Row>(request: PageRequest<Row>): Promise<Page> {
    const { texts, last, isCut, isWalked } = await this.batch(request);
    const cursor = last == null ? undefined : request.cursorAfter?.(last);
    return { text: `[${texts.join(',')}]`, count: texts.length, isCut, isWalked, cursor };
  }

  /** The same, for a reader that goes on after the last row instead of at an offset. */
  batch<Row>(request: PageRequest<Row>): Promise<Batch<Row>> {
    return this.#inTurn(request.cheaper, async () => {
      const { query, walk, cursorAfter, cheaper } = request;
      const endsAt = performance.now() + this.#slowReadMs;
      const read = (next: Query, so?: Collected<Row>) =>
        this.#runner.cursor<Row, Collected<Row>>(next, (rows) =>
          collect(rows, request, endsAt, so),
        );
      let found = await read(query);
      if (found.isWalked && walk !== undefined) {
        const taken = found.texts.length + walk.skip - found.skip;
        const cursor = cursorAfter?.(found.last as Row & object) as string;
        found = await read(walk.on(cursor, taken), { ...found, isCut: false, isWalked: false });
        // Nobody can go on by a cursor who counts from the beginning and is not there yet.
        if (found.isWalked && found.skip > 0) throw slowRead(cheaper);
      }
      return found;
    });
  }

  rows<Row extends object>(request: RowsRequest): Promise<Row[]> {
    return this.#inTurn(request.cheaper, () => this.#runner.all<Row>(request));
  }

  /** Like `rows` for a statement that has no fixed text, and so no name. */
  rowsOf<Row extends object>(query: Query, cheaper: string): Promise<Row[]> {
    return this.#inTurn(cheaper, () => this.#runner.all<Row>(query));
  }

  /** Calls `take` with every row, a few at a time, so that other requests are served in between. */
  each<Row>(query: Query, cheaper: string, take: (row: Row) => void): Promise<void> {
    return this.#inTurn(cheaper, () => {
      const endsAt = performance.now() + this.#slowReadMs;
      return this.#runner.each<Row>(query, TAKEN_ROWS, (row) => {
        if (performance.now() > endsAt) throw slowRead(cheaper);
        take(row);
      });
    });
  }

  /** @param cheaper what a caller is told to do instead when it takes too long */
  async #inTurn<T>(cheaper: string, read: () => Promise<T>): Promise<T> {
    const { pace } = this.#shared;
    const [party = ''] = this.#path;
    if (party === ENGINE) return this.#onConnection(cheaper, read);
    const isLong = pace.begin(party, performance.now());
    try {
      return await (isLong
        ? this.#afterRest(cheaper, read, party)
        : this.#onConnection(cheaper, read));
    } finally {
      pace.end(party);
    }
  }

  async #afterRest<T>(cheaper: string, read: () => Promise<T>, party: string): Promise<T> {
    const { pace, longTurns } = this.#shared;
    const release = await this.#turn(longTurns);
    try {
      await pause(pace.restMs(party, performance.now()));
      return await this.#onConnection(cheaper, read);
    } finally {
      release();
    }
  }

  async #onConnection<T>(cheaper: string, read: () => Promise<T>): Promise<T> {
    const release = this.#slots.take(this.#path) ?? (await this.#turn(this.#slots));
    const startedAt = performance.now();
    try {
      return await read();
    } catch (error) {
      throw asEngineError(error, cheaper);
    } finally {
      const now = performance.now();
      this.#shared.pace.took(this.#path[0] as string, now - startedAt, now);
      release();
    }
  }

  async #turn(turns: FairSlots): Promise<() => void> {
    const wait = AbortSignal.timeout(LIMITS.readWaitMs);
    const slot = await turns.acquire(this.#path, wait);
    if (slot.ok) return slot.release;
    const { readsMax, readsPerTenantMax, readsWaitingMax } = LIMITS;
    const { readsWaitingPerTenantMax: ofTenant } = LIMITS;
    if (slot.reason === 'aborted' && turns !== this.#slots) {
      throw shareTaken('long lists of this tenant are read one at a time while others ask');
    }
    if (slot.reason === 'aborted') {
      throw this.#slots.active >= readsMax
        ? tooManyReads()
        : shareTaken(`${readsPerTenantMax} lists and reports of this tenant are being read`);
    }
    throw turns.waiting >= readsWaitingMax
      ? tooManyReads()
      : shareTaken(`${ofTenant} lists and reports of this tenant wait already`);
  }
}

/** A batch that may be gone on with. */
interface Collected<Row> extends Batch<Row> {
  readonly bytes: number;
  /** Rows that are still to be left out. */
  readonly skip: number;
}

/** The places are the connections, so that nobody waits within the pool. */
export function readSlots(): FairSlots {
  return new FairSlots([
    { activeMax: LIMITS.readsMax, waitingMax: LIMITS.readsWaitingMax },
    { activeMax: LIMITS.readsPerTenantMax, waitingMax: LIMITS.readsWaitingPerTenantMax },
  ]);
}

/** As many wait there as for connections. */
export function longReadTurns(): FairSlots {
  return new FairSlots([
    { activeMax: Number.POSITIVE_INFINITY, waitingMax: LIMITS.readsWaitingMax },
    { activeMax: 1, waitingMax: LIMITS.readsWaitingPerTenantMax },
  ]);
}

function tooManyReads(): EngineError {
  return unavailable('ENG_OVERLOADED', 'too many lists and reports are being read');
}

async function collect<Row>(
  reader: RowReader<Row>,
  request: PageRequest<Row>,
  endsAt: number,
  before?: Collected<Row>,
): Promise<Collected<Row>> {
  const {
    toText,
    rowsMax = Number.POSITIVE_INFINITY,
    bytesMax = LIMITS.responseBytesMax,
    walk,
  } = request;
  const texts = [...(before?.texts ?? [])];
  let { last, bytes, skip } = before ?? { last: undefined, bytes: 2, skip: walk?.skip ?? 0 };
  const ended = (isCut: boolean, isWalked = false) => ({
    texts,
    last,
    bytes,
    skip,
    isCut,
    isWalked,
  });
  for (;;) {
    const asked = skip > 0 ? PIECE_ROWS_MAX : rowsToRead(texts.length, bytes);
    const leftMs = endsAt - performance.now();
    if (leftMs < 0) throw slowRead(request.cheaper);
    const rows = await reader.read(asked, leftMs + SILENCE_GRACE_MS);
    for (const row of rows) {
      const isEnd = walk?.endOf(row) === true;
      if (isEnd && walk?.isMatch(row) === false) {
        last = row;
        return ended(true, true);
      }
      if (skip > 0) {
        skip -= 1;
        last = row;
        if (isEnd) return ended(true, true);
        continue;
      }
      if (texts.length >= rowsMax) return ended(true);
      const text = toText(row);
      bytes += Buffer.byteLength(text) + 1;
      if (bytes > bytesMax && texts.length > 0) return ended(true);
      texts.push(text);
      last = row;
      if (isEnd) return ended(true, true);
    }
    if (rows.length < asked) return ended(false);
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

function asEngineError(error: unknown, cheaper: string): EngineError {
  if (error instanceof EngineError) return error;
  const { message, code } = error as Error & { readonly code?: unknown };
  if (code === QUERY_CANCELED) return slowRead(cheaper);
  // Its own limit had ended the statement: the server stands still, whatever was asked of it.
  if (message === NO_ANSWER_TEXT)
    return unavailable('ENG_DATABASE_DOWN', 'the database does not answer');
  if (message === POOL_BUSY_TEXT) return tooManyReads();
  if (message === POOL_ENDED_TEXT) return unavailable('ENG_STOPPING', 'the engine is stopping');
  const isDefect =
    typeof code === 'string' ? isFaultOfData(code, message) : !UNREACHABLE_TEXT.test(message);
  if (isDefect) return new EngineError('ENG_INTERNAL', 'internal error', undefined, error);
  const trouble = troubleOf(error);
  return trouble.kind === 'unreachable' || trouble.kind === 'connections'
    ? unavailable('ENG_DATABASE_DOWN', 'the database cannot be reached')
    : databaseDown('cannot answer', trouble, error);
}
