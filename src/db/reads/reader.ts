/**
 * Runs the SELECTs of the reads within the time limit: pages by cursor under a byte limit, and small reads at once.
 * Every failure becomes an `EngineError`, so that no name of a statement or table reaches a caller.
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

export interface Page extends Pick<Batch<unknown>, 'isCut' | 'isWalked'> {
  readonly text: string;
  readonly count: number;
  /** The cursor after the last scanned row; undefined for lists without cursors. */
  readonly cursor?: string | undefined;
}

export interface Batch<Row> {
  readonly texts: readonly string[];
  readonly last: Row | undefined;
  /** The response size or `rowsMax` ended it: there are more rows. */
  readonly isCut: boolean;
  /** The scan limit ended it at `last`, which may not be in the list: only its cursor continues. */
  readonly isWalked: boolean;
}

export interface PageRequest<Row> {
  readonly query: Query;
  readonly toText: (row: Row) => string;
  /** Advice for a caller whose read takes too long. */
  readonly cheaper: string;
  /** Default: all. */
  readonly rowsMax?: number;
  /** Default: the size of a response. */
  readonly bytesMax?: number;
  /** For lists that scan more rows than they return. */
  readonly walk?: WalkedPage | undefined;
  readonly cursorAfter?: ((row: Row & object) => string) | undefined;
}

interface WalkedPage {
  readonly skip: number;
  /** Continues after a row. @param taken rows of the page so far, including skipped ones */
  readonly on: (cursor: string, taken: number) => Query;
}

export interface WalkedRow {
  /** It is the last scanned row, which is always returned. */
  readonly walk_end?: boolean;
  readonly walk_match?: boolean;
}

/** Few rows with small columns. */
export interface RowsRequest extends Statement {
  readonly name: string;
  readonly cheaper: string;
}

/** The first piece of a page, which measures the size of its rows. */
const FIRST_ROWS = 4;
/** Builds within a few milliseconds, so that other requests are served in between. */
const PIECE_BYTES = 512 * 1024;
/** Small rows that are handled within a few milliseconds, even with the longest messages. */
const TAKEN_ROWS = 250;
/** With contexts of 256 KiB each this is 16 MiB, the maximum of one read. */
const PIECE_ROWS_MAX = 64;
/** The client's timeout exceeds the server's by this; only a silent server reaches it. */
const SILENCE_GRACE_MS = 1_000;
/** The engine's own reads; no tenant has this name. */
const ENGINE = '\0engine';

export class SharedReads {
  readonly pool: pg.Pool;
  readonly slowReadMs: number;
  readonly pace: ReadPace;
  /** One slot per connection, so that no read waits within the pool. */
  readonly slots = new FairSlots([
    { activeMax: LIMITS.readsMax, waitingMax: LIMITS.readsWaitingMax },
    { activeMax: LIMITS.readsPerTenantMax, waitingMax: LIMITS.readsWaitingPerTenantMax },
  ]);
  /** One slot for each tenant with slow reads. */
  readonly longTurns = new FairSlots([
    { activeMax: Number.POSITIVE_INFINITY, waitingMax: LIMITS.readsWaitingMax },
    { activeMax: 1, waitingMax: LIMITS.readsWaitingPerTenantMax },
  ]);
  /** Whether row level security is on (`row-security.ts`). */
  isWalled = false;

  constructor(pool: pg.Pool, slowReadMs: number, pace: ReadPace) {
    this.pool = pool;
    this.slowReadMs = slowReadMs;
    this.pace = pace;
  }
}

/** Reads of the engine itself; `of` returns a reader for a tenant. */
export class Reader {
  readonly #shared: SharedReads;
  readonly #runner: Runner;
  readonly #party: string;

  constructor(shared: SharedReads, party: string = ENGINE) {
    const { pool, slowReadMs, isWalled } = shared;
    const tenant = isWalled && party !== ENGINE && party !== '' ? party : undefined;
    this.#shared = shared;
    this.#runner = new Runner(pool, slowReadMs + SILENCE_GRACE_MS, tenant);
    this.#party = party;
  }

  get active(): number {
    return this.#shared.slots.active;
  }

  get waiting(): number {
    return this.#shared.slots.waiting;
  }

  /** A reader with the tenant's share of connections, and only its rows. @param tenant '' sees all */
  of(tenant: string): Reader {
    return new Reader(this.#shared, tenant);
  }

  /** From now on the database restricts the reads of tenants too. */
  wallTenants(): void {
    this.#shared.isWalled = true;
  }

  /** The first row may have any size, so that a caller who continues by offset makes progress. */
  async page<Row>(request: PageRequest<Row>): Promise<Page> {
    const { texts, last, isCut, isWalked } = await this.batch(request);
    const cursor = last == null ? undefined : request.cursorAfter?.(last);
    return { text: `[${texts.join(',')}]`, count: texts.length, isCut, isWalked, cursor };
  }

  /** For a caller that continues after the last row instead of at an offset. */
  batch<Row>(request: PageRequest<Row>): Promise<Batch<Row>> {
    return this.#inTurn(request.cheaper, async () => {
      const { query, walk, cursorAfter, cheaper } = request;
      const endsAt = performance.now() + this.#shared.slowReadMs;
      const read = (next: Query, so?: Collected<Row>) =>
        this.#runner.cursor<Row, Collected<Row>>(next, (rows) =>
          collect(rows, request, endsAt, so),
        );
      let found = await read(query);
      if (found.isWalked && walk !== undefined) {
        const taken = found.texts.length + walk.skip - found.skip;
        const cursor = cursorAfter?.(found.last as Row & object) as string;
        found = await read(walk.on(cursor, taken), { ...found, isCut: false, isWalked: false });
        // A caller with an offset beyond the scanned rows cannot continue by a cursor.
        if (found.isWalked && found.skip > 0) throw slowRead(cheaper);
      }
      return found;
    });
  }

  rows<Row extends object>(request: RowsRequest): Promise<Row[]> {
    return this.#inTurn(request.cheaper, () => this.#runner.all<Row>(request));
  }

  /** For a statement without a fixed text and name. */
  rowsOf<Row extends object>(query: Query, cheaper: string): Promise<Row[]> {
    return this.#inTurn(cheaper, () => this.#runner.all<Row>(query));
  }

  /** Calls `take` with every row, in pieces, so that other requests are served in between. */
  each<Row>(query: Query, cheaper: string, take: (row: Row) => void): Promise<void> {
    return this.#inTurn(cheaper, () => {
      const endsAt = performance.now() + this.#shared.slowReadMs;
      return this.#runner.each<Row>(query, TAKEN_ROWS, (row) => {
        if (performance.now() > endsAt) throw slowRead(cheaper);
        take(row);
      });
    });
  }

  async #inTurn<T>(cheaper: string, read: () => Promise<T>): Promise<T> {
    const { pace } = this.#shared;
    if (this.#party === ENGINE) return this.#onConnection(cheaper, read);
    const isLong = pace.begin(this.#party, performance.now());
    try {
      return await (isLong ? this.#afterRest(cheaper, read) : this.#onConnection(cheaper, read));
    } finally {
      pace.end(this.#party);
    }
  }

  async #afterRest<T>(cheaper: string, read: () => Promise<T>): Promise<T> {
    const { pace, longTurns } = this.#shared;
    const release = await this.#turn(longTurns);
    try {
      await pause(pace.restMs(this.#party, performance.now()));
      return await this.#onConnection(cheaper, read);
    } finally {
      release();
    }
  }

  async #onConnection<T>(cheaper: string, read: () => Promise<T>): Promise<T> {
    const { slots, pace } = this.#shared;
    const release = slots.take([this.#party]) ?? (await this.#turn(slots));
    const startedAt = performance.now();
    try {
      return await read();
    } catch (error) {
      throw asEngineError(error, cheaper);
    } finally {
      const now = performance.now();
      pace.took(this.#party, now - startedAt, now);
      release();
    }
  }

  async #turn(turns: FairSlots): Promise<() => void> {
    const wait = AbortSignal.timeout(LIMITS.readWaitMs);
    const slot = await turns.acquire([this.#party], wait);
    if (slot.ok) return slot.release;
    const { readsMax, readsPerTenantMax, readsWaitingMax } = LIMITS;
    const { readsWaitingPerTenantMax: ofTenant } = LIMITS;
    const { slots } = this.#shared;
    if (slot.reason === 'aborted' && turns !== slots) {
      throw shareTaken('long lists of this tenant are read one at a time while others ask');
    }
    if (slot.reason === 'aborted') {
      throw slots.active >= readsMax
        ? tooManyReads()
        : shareTaken(`${readsPerTenantMax} lists and reports of this tenant are being read`);
    }
    throw turns.waiting >= readsWaitingMax
      ? tooManyReads()
      : shareTaken(`${ofTenant} lists and reports of this tenant wait already`);
  }
}

interface Collected<Row> extends Batch<Row> {
  readonly bytes: number;
  readonly skip: number;
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
  const { toText, rowsMax = Number.POSITIVE_INFINITY, walk } = request;
  const { bytesMax = LIMITS.responseBytesMax } = request;
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
    const wanted = skip > 0 ? PIECE_ROWS_MAX : rowsToRead(texts.length, bytes);
    const leftMs = endsAt - performance.now();
    if (leftMs < 0) throw slowRead(request.cheaper);
    const rows = await reader.read(wanted, leftMs + SILENCE_GRACE_MS);
    for (const row of rows) {
      const { walk_end: isEnd, walk_match: isMatch } = row as WalkedRow;
      if (isEnd && !isMatch) {
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
    if (rows.length < wanted) return ended(false);
  }
}

function rowsToRead(count: number, bytes: number): number {
  if (count === 0) return FIRST_ROWS;
  return Math.max(1, Math.min(Math.floor((PIECE_BYTES * count) / bytes), PIECE_ROWS_MAX));
}

/** Only the statement timeout cancels these statements. */
const QUERY_CANCELED = '57014';

/** Messages of `pg`, without a code, for a broken or failed connection. */
const UNREACHABLE_TEXT =
  /^(Connection terminated|timeout expired|Client (has encountered|was closed))/;

/** Messages of its pool: all connections are in use for too long, and after its end. */
const POOL_BUSY_TEXT = 'timeout exceeded when trying to connect';
const POOL_ENDED_TEXT = 'Cannot use a pool after calling end on the pool';

function slowRead(cheaper: string): EngineError {
  return unavailable('ENG_SLOW_READ', `the answer takes too long; ${cheaper}`);
}

function asEngineError(error: unknown, cheaper: string): EngineError {
  if (error instanceof EngineError) return error;
  const { message, code } = error as Error & { readonly code?: unknown };
  if (code === QUERY_CANCELED) return slowRead(cheaper);
  // The server did not cancel the statement: it does not respond at all.
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
