/**
 * The simulated database is as good as the real one as far as the engine can see: random units have
 * the same outcomes and leave the same rows, and every statement of the loader finds the same in them.
 *
 * Cost: 8 s, since only so many units have written and found everything.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import pg from 'pg';
import { LOAD_SQL } from '../../actors/shard/loads.js';
import { STORE } from '../../actors/shard/store.js';
import { Writer, type WriterOptions } from '../../actors/writer/writer.js';
import { realClock } from '../../src/base/real-clock.js';
import { createClient, createPool } from '../../src/db/pool.js';
import { columnType } from '../../src/db/table.js';
import type { Ack, UnitEnvelope } from '../../src/db/units.js';
import { createRandom } from '../chaos/random.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { MUTATION_KINDS, TABLES } from '../helpers/store.js';
import { prepareLanes } from '../helpers/writer.js';
import { Counts, Faults } from './faults.js';
import { memoryClient } from './memory-connection.js';
import { memoryPool } from './memory-pool.js';
import { MemoryServer } from './memory-server.js';
import { MemoryTables, Transaction } from './memory-tables.js';
import { RandomUnits, randomValues } from './random-units.js';
import { Thread, World } from './world.js';

const SEEDS = [1, 2];
/** More follow until there was something to compare for each statement, which a new mutation may put off. */
const LAST_SEED = 20;
const UNITS = 1_500;

/** Kinds of mutations that were written, over all seeds. */
const written = new Set<string>();

/** Rows that each statement of the loader found, over all seeds. */
const found = new Map<string, number>();

let database: TestDatabase;
let client: pg.Client;
let pool: pg.Pool;

before(async () => {
  database = await createTestDatabase();
  const { connectionString } = database;
  client = new pg.Client({ connectionString });
  await client.connect();
  pool = createPool({
    connectionString,
    applicationName: 'store',
    connectionsMax: 1,
    onError() {},
  });
});

after(async () => {
  await pool.end();
  await client.end();
  await database.drop();
});

for (const seed of SEEDS) {
  test(`seed ${seed}: units leave the same rows in both databases`, () => compare(seed));
}

async function compare(seed: number): Promise<void> {
  await client.query(`truncate ${names().join(', ')}, lanes`);
  await prepareLanes(client);
  const memory = new MemoryStore(seed);
  const real = new RealStore(database.connectionString);
  await Promise.all([memory.start(), real.start()]);
  const units = new RandomUnits(createRandom(seed));
  const outcomes = new Map<string, number>();
  for (let i = 0; i < UNITS; i++) {
    const unit = units.next();
    for (const at of unit.mutations) if (typeof at === 'number') written.add(MUTATION_KINDS[at]!);
    const [expected, actual] = [await real.put(unit), await memory.put(unit)];
    assert.deepEqual(shown(actual), shown(expected), JSON.stringify(unit));
    const kind = shown(expected).join(' ');
    outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
  }
  await real.stop();
  assert.ok(outcomes.size >= 6, `outcomes: ${[...outcomes].join('; ')}`);
  for (const name of names()) assert.deepEqual(memory.rows(name), await realRows(name), name);
  await compareReads(memory, createRandom(seed, 1));
}

/** The tables that the writer writes. */
function names(): string[] {
  return (Object.keys(TABLES) as string[]).filter((name) => !name.startsWith('lane'));
}

/** Without texts, whose wording is Postgres's own. */
function shown(ack: Ack): readonly unknown[] {
  return ack.outcome === 'refused'
    ? [ack.outcome, ack.sqlState]
    : ack.outcome === 'inserted'
      ? [ack.outcome, ...ack.ids]
      : [ack.outcome];
}

async function realRows(name: string): Promise<object[]> {
  const { key } = TABLES[name]!;
  const { rows } = await pool.query(`select * from ${name}`);
  return inOrder((rows as Record<string, unknown>[]).map(encoded), key);
}

/** Bytes as the text that they came in. */
function encoded(row: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    Buffer.isBuffer(value) ? value.toString('base64') : value,
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

function inOrder<Row extends Record<string, unknown>>(rows: Row[], key: readonly string[]): Row[] {
  const place = (row: Row) => key.map((column) => String(row[column])).join('/');
  return rows.sort((a, b) => (place(a) < place(b) ? -1 : 1));
}

async function compareReads(memory: MemoryStore, random: ReturnType<typeof createRandom>) {
  for (const [name, text] of Object.entries(LOAD_SQL)) {
    for (let i = 0; i < 30; i++) {
      const values = randomValues(random, name as keyof typeof LOAD_SQL);
      const { rows } = await pool.query({ text, values: [...values] });
      const read = await memory.read(name, values);
      // Sums have no order, nor have instances, whatever the rows had that hang on them.
      const isOrdered =
        name !== 'instances' && text.includes('order by') && !/ group by \w+$/.test(text);
      // Any one of the rows will do.
      const isAny = / limit 1$/.test(text) && !isOrdered;
      const compared = isOrdered ? [read, rows] : [inAnyOrder(read), inAnyOrder(rows)];
      const question = `${name} ${JSON.stringify(values)}`;
      if (isAny) assert.equal(read.length, rows.length, question);
      else assert.deepEqual(compared[0], compared[1], question);
      found.set(name, (found.get(name) ?? 0) + rows.length);
    }
  }
}

function inAnyOrder(rows: readonly object[]): string[] {
  const entries = (row: object) =>
    Object.entries(row).map(([name, value]) => [
      name,
      PACKED.has(name) && value !== null ? JSON.parse(value) : value,
    ]);
  return rows.map((row) => JSON.stringify(entries(row).sort())).sort();
}

/** Rows within a row, as JSON, which may be written in several ways. */
const PACKED: ReadonlySet<string> = new Set(['snapshots', 'signals']);

/** A writer of the real database. */
class RealStore {
  readonly #writer: Writer;
  readonly #waiting = new Map<number, (ack: Ack) => void>();

  constructor(connectionString: string) {
    const applicationName = 'store test';
    this.#writer = new Writer({
      store: STORE,
      ...commonOptions(this.#waiting),
      connect: () => createClient({ connectionString, applicationName, statementTimeoutMs: 0 }),
      applicationName,
      clock: realClock,
    });
  }

  start(): Promise<void> {
    return this.#writer.start();
  }

  put(unit: UnitEnvelope): Promise<Ack> {
    return new Promise((resolve) => {
      this.#waiting.set(unit.seq, resolve);
      this.#writer.submit(0, 0, [unit]);
    });
  }

  stop(): Promise<void> {
    return this.#writer.stop();
  }
}

/** A writer of the simulated one, in virtual time. */
class MemoryStore {
  readonly #world: World;
  readonly #tables = new MemoryTables();
  readonly #writer: Writer;
  readonly #waiting = new Map<number, (ack: Ack) => void>();
  readonly #pool: pg.Pool;

  constructor(seed: number) {
    const world = new World(seed);
    const server = new MemoryServer({
      world,
      tables: this.#tables,
      faults: new Faults(calm, new Counts()),
      onBroken() {},
      onCommit() {},
    });
    assert.equal(server.tryRaiseEpoch(1), 1);
    const thread = new Thread('writer');
    this.#world = world;
    this.#pool = memoryPool(server, thread);
    this.#writer = new Writer({
      store: STORE,
      ...commonOptions(this.#waiting),
      connect: () => memoryClient(server, thread, 'store test'),
      applicationName: 'store test',
      clock: world.clockOf(thread),
    });
  }

  start(): Promise<void> {
    return this.#until(this.#writer.start());
  }

  put(unit: UnitEnvelope): Promise<Ack> {
    const outcome = new Promise<Ack>((resolve) => this.#waiting.set(unit.seq, resolve));
    this.#writer.submit(0, 0, [unit]);
    return this.#until(outcome);
  }

  async read(name: string, values: readonly unknown[]): Promise<object[]> {
    const question = { name: `load_${name}`, values: [...values] } as pg.QueryConfig;
    return (await this.#until(this.#pool.query(question))).rows;
  }

  rows(name: string): object[] {
    const { key, columns } = TABLES[name]!;
    const rows = this.#tables
      .matching(new Transaction(), name, () => true)
      .map(([, row]) =>
        Object.fromEntries(
          Object.keys(columns).map((column) => {
            const value = row[column] ?? null;
            const isJson = columnType(TABLES[name]!, column).base === 'json' && value !== null;
            return [column, isJson ? JSON.stringify(value) : value];
          }),
        ),
      );
    return inOrder(rows, key);
  }

  async #until<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    await this.#world.run(() => isSettled);
    return promise;
  }
}

/** Draws no fault. */
const calm = { ...createRandom(1), next: () => 0 };

function commonOptions(waiting: Map<number, (ack: Ack) => void>) {
  const silent = () => undefined;
  return {
    epoch: 1,
    lanes: 1,
    log: { info: silent, warn: silent, error: silent },
    onAcks: (_shard: number, _incarnation: number, acks: readonly Ack[]) => {
      for (const ack of acks) waiting.get(ack.seq)?.(ack);
    },
    onFenced: silent,
    onDatabase: silent,
  } satisfies Partial<WriterOptions>;
}

test('every statement of the loader has found something to compare, and every kind of mutation was written', async () => {
  // No mutation writes the old tables.
  const others = Object.keys(LOAD_SQL).filter((name) => name !== 'tasksToMove');
  const missing = () => [
    ...others.filter((name) => !found.get(name)),
    ...MUTATION_KINDS.filter((kind) => !written.has(kind)),
  ];
  for (let seed = SEEDS.length + 1; missing().length > 0 && seed <= LAST_SEED; seed++) {
    await compare(seed);
  }
  assert.deepEqual(missing(), []);
});
