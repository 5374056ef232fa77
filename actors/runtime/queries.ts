/**
 * The reads of actors: rows by primary key, batched over the actors of one turn, and pages of due or open
 * rows of one shard. Every statement is prepared and uses an index.
 */

import type pg from 'pg';
import { LIMITS } from '../../src/base/limits.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { Runner, type Statement } from '../../src/db/runner.js';

export type ShardPlace = { readonly shard: number; readonly shards: number };

/** Limits the wait for a silent database; then the work that needs the rows is refused or retried. */
const QUERY_TIMEOUT_MS = 10_000;
/** For pages read at a start: longer than the server's statement timeout. */
const PAGE_TIMEOUT_MS = 35_000;
/** Sorts before every id. */
export const NO_ID = '00000000-0000-0000-0000-000000000000';

type Texts = Readonly<Record<string, string>>;

export interface Queries {
  /** @param texts statements of a room, under names that are unique among all rooms */
  of<Sql extends Texts>(texts: Sql): RoomQueries<Sql>;
}

export function queriesOf(pool: pg.Pool, place: ShardPlace): Queries {
  return { of: (texts) => new RoomQueries(texts, pool, place) };
}

class RoomQueries<Sql extends Texts> {
  readonly #texts: Sql;
  readonly #queries: Runner;
  readonly #pages: Runner;
  /** The last two parameters of statements that read the rows of one shard. */
  readonly #place: readonly [shard: number, shards: number];

  constructor(texts: Sql, pool: pg.Pool, { shard, shards }: ShardPlace) {
    this.#texts = texts;
    this.#queries = new Runner(pool, QUERY_TIMEOUT_MS);
    this.#pages = new Runner(pool, PAGE_TIMEOUT_MS);
    this.#place = [shard, shards];
  }

  all<Row extends object>(name: keyof Sql & string, values: readonly unknown[]): Promise<Row[]> {
    return this.#queries.all(this.#statement(name, values));
  }

  one<Row extends object>(
    name: keyof Sql & string,
    values: readonly unknown[],
  ): Promise<Row | undefined> {
    return this.#queries.one(this.#statement(name, values));
  }

  own<Row extends object>(name: keyof Sql & string, values: readonly unknown[]): Promise<Row[]> {
    return this.all(name, [...values, ...this.#place]);
  }

  /** A time in the first row. */
  async time(name: keyof Sql & string, column: string): Promise<UnixMs | undefined> {
    const row = await this.one<Record<string, string>>(name, []);
    return row && Date.parse(row[column]!);
  }

  /** All rows of this shard, in pages. */
  each<Row>(
    name: keyof Sql & string,
    values: readonly unknown[],
    take: (row: Row) => void,
  ): Promise<void> {
    const statement = this.#statement(name, [...values, ...this.#place]);
    return this.#pages.each(statement, LIMITS.recoveryPageRows, take);
  }

  /** Reads for many callers in one query; `n` of a row is the number of its caller, from 1. */
  batch<Ask, Row>(
    name: keyof Sql & string,
    values: (asks: readonly Ask[]) => readonly unknown[],
  ): BatchedReads<Ask, Row[]> {
    return new BatchedReads(async (asks) => {
      const found: Row[][] = asks.map(() => []);
      const rows = await this.all<Row & { readonly n: number }>(name, values(asks));
      for (const row of rows) found[row.n - 1]!.push(row);
      return found;
    });
  }

  #statement(name: keyof Sql & string, values: readonly unknown[]): Statement {
    return { name: `load_${name}`, text: this.#texts[name]!, values };
  }
}

interface Reading<Ask, Value> {
  readonly ask: Ask;
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

const ASKS_PER_QUERY = 500;

/** Collects the requests of one turn of the shard, or of one window of rows, into one query. */
export class BatchedReads<Ask, Value> {
  readonly #load: (asks: readonly Ask[]) => Promise<readonly Value[]>;
  #readings: Reading<Ask, Value>[] = [];

  /** @param load one query; its results are in the order of the requests */
  constructor(load: (asks: readonly Ask[]) => Promise<readonly Value[]>) {
    this.#load = load;
  }

  read(ask: Ask): Promise<Value> {
    // A microtask runs after everything already scheduled, and before any other event.
    if (this.#readings.length === 0) queueMicrotask(() => this.#flush());
    return new Promise((resolve, reject) => this.#readings.push({ ask, resolve, reject }));
  }

  #flush(): void {
    const readings = this.#readings;
    this.#readings = [];
    for (let first = 0; first < readings.length; first += ASKS_PER_QUERY) {
      void this.#query(readings.slice(first, first + ASKS_PER_QUERY));
    }
  }

  async #query(readings: readonly Reading<Ask, Value>[]): Promise<void> {
    try {
      const values = await this.#load(readings.map(({ ask }) => ask));
      for (const [at, { resolve }] of readings.entries()) resolve(values[at] as Value);
    } catch (error) {
      for (const { reject } of readings) reject(error);
    }
  }
}

/**
 * A condition on ids that are routed to a shard; rows are filtered in index order. The planner expects a
 * `coalesce` to pass half of the rows; it would expect a plain comparison to pass hardly any, and sort.
 */
export function isOwn(id: string, shard: string, shards: string): string {
  const route = `get_byte(uuid_send(${id}), 14) * 256 + get_byte(uuid_send(${id}), 15)`;
  return `coalesce((${route}) % ${shards}::int = ${shard}::int, false)`;
}

/** The rows of the `n`-th id. `lateral` makes each id a lookup by key, however many there are. */
export function ofIds(columns: string, rows: string): string {
  return (
    `select w.n, ${columns} from unnest($1::uuid[]) with ordinality ` +
    `as w(id, n) cross join lateral (${rows}) o`
  );
}

export function columnOf(ids: readonly string[]): readonly unknown[] {
  return [ids];
}

export function idsOf(rows: readonly { readonly id: string }[]): string[] {
  return rows.map(({ id }) => id);
}

export function boundOf(from: UnixMs): string {
  return from === Number.NEGATIVE_INFINITY ? '-infinity' : isoTime(from);
}
