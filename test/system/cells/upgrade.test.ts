/**
 * Two cells in one database are brought to a newer version one after the other, each with a change of its tables,
 * while both take work: docs/operate/upgrade.md. The newer version is this one with a later migration.
 */

import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Info } from '../../../schema/system.js';
import { readConfig } from '../../../src/config.js';
import { eventually, sleep, step, type Tenant, tenantThrough } from '../../helpers/api.js';
import { createTestDatabase, type TestDatabase } from '../../helpers/database.js';
import { ROOT } from '../../helpers/docs.js';
import { type Engine, startEngine } from '../../helpers/engine.js';

const CELLS = ['east', 'west'] as const;
type Cell = (typeof CELLS)[number];

/** Of the package, what a server reads. */
const SHIPPED = ['dist/server', 'dist/ui', 'src/db/migrations', 'src/cluster', 'package.json'];
const LATER = 9_999;
const TENANT = 'acme';
const HANDLER = 'outside';
/** Clients of each cell, one request at a time each. */
const CLIENTS = 3;
/** Between two requests of a client: both cells share a machine with the test. */
const BETWEEN_MS = 10;
/** What has to be acknowledged before, in and behind an upgrade, so that it happens under load. */
const SOME = 20;

let database: TestDatabase;
let sql: pg.Pool;
/** A folder with the newer version, built. */
let newer: string;
/** By cell, those that are meant to run: where clients ask. */
const engines: Record<Cell, Engine[]> = { east: [], west: [] };
const started: Engine[] = [];
const loads: Load[] = [];

before(async () => {
  newer = makeNewer();
  database = await createTestDatabase({ isMigrated: false });
  sql = new pg.Pool({ connectionString: database.connectionString, max: 1 });
});

after(async () => {
  for (const load of loads) await load.abandon();
  for (const engine of started) await engine.kill();
  await sql?.end();
  await database?.drop();
  rmSync(newer, { recursive: true, force: true });
});

/** What is shipped, and one migration more. */
function makeNewer(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'newer-'));
  for (const part of SHIPPED) {
    cpSync(path.join(ROOT, part), path.join(folder, part), { recursive: true });
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  writeFileSync(
    path.join(folder, `src/db/migrations/${LATER}_later.sql`),
    'alter table instances add column later text;\ncreate index later_names on instances (later, id);\n',
  );
  return folder;
}

interface Start {
  readonly isNewer?: boolean;
  readonly waitFor?: 'ready' | 'listening';
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

async function start(cell: Cell, { isNewer = false, env, ...more }: Start = {}): Promise<Engine> {
  const engine = await startEngine({
    databaseUrl: database.connectionString,
    env: { ENGINE_DB_SCHEMA: cell, ENGINE_SHARDS: '1', ...env },
    ...(isNewer ? { checkout: newer } : {}),
    ...more,
  });
  started.push(engine);
  return engine;
}

const isStandingBy = (engine: Engine) =>
  eventually(() =>
    assert.ok(engine.logs().some(({ msg }) => msg?.startsWith('another engine owns the database'))),
  );

const schemaOf = async ({ url }: Engine) =>
  ((await (await fetch(`${url}/info`)).json()) as Info).storage_schema_version;

const epochOf = async (cell: Cell) =>
  (await sql.query<{ epoch: string }>(`select epoch from ${cell}.engine_lease`)).rows[0]!.epoch;

const hasLater = async (cell: Cell) => {
  const column = [`${cell}.instances`];
  const found = await sql.query(
    "select 1 from pg_attribute where attrelid = $1::regclass and attname = 'later'",
    column,
  );
  return found.rows.length === 1;
};

/** Clients that create instances until they are told to stop, and ask again what was not acknowledged. */
class Load {
  readonly #cell: Cell;
  readonly #sequence: string;
  readonly #clients: Promise<void>[];
  readonly #tenants = new Map<string, Tenant>();
  #isOver = false;
  /** Nothing is asked again any more. */
  #isAbandoned = false;
  #asked = 0;
  /** Ids that were acknowledged. */
  readonly ids = new Set<string>();
  /** Answers and failures that were no acknowledgement. */
  refused = 0;

  constructor(cell: Cell, sequence: string) {
    this.#cell = cell;
    this.#sequence = sequence;
    this.#clients = Array.from({ length: CLIENTS }, () => this.#work());
  }

  /** For a test that has failed: nobody may be there to acknowledge. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    await this.stop();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    for (const tenant of this.#tenants.values()) await tenant.close();
    this.#tenants.clear();
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      const key = `${this.#sequence} ${this.#asked++}`;
      for (let at = 0; !this.#isAbandoned; at++) {
        const id = await this.#ask(key, at);
        if (id !== undefined) {
          this.ids.add(id);
          break;
        }
        this.refused++;
        await pause(BETWEEN_MS);
      }
      await pause(BETWEEN_MS);
    }
  }

  async #ask(key: string, at: number): Promise<string | undefined> {
    const all = engines[this.#cell];
    const engine = all[at % all.length];
    if (engine === undefined) return undefined;
    const tenant = this.#tenants.get(engine.url) ?? tenantThrough(engine.url, TENANT);
    this.#tenants.set(engine.url, tenant);
    const body = tenant.creation(this.#sequence, { idempotency_key: key });
    // What was acknowledged counts; whatever else became of a request, the key makes it harmless to repeat.
    const reply = await tenant.post<{ id: string }>('/instances', body).catch(() => undefined);
    return reply !== undefined && reply.status < 300 ? reply.body.id : undefined;
  }

  /** Until so many more were acknowledged. */
  async more(count = SOME): Promise<void> {
    const wanted = this.ids.size + count;
    await eventually(() => assert.ok(this.ids.size >= wanted), 600_000);
  }

  /** Every instance that was acknowledged completes, and there is no other one. */
  async expectAll(): Promise<void> {
    await this.stop();
    await eventually(async () => {
      const { rows } = await sql.query<{ id: string; state: string }>(
        `select id, state from ${this.#cell}.instances where sequence_id = $1`,
        [this.#sequence],
      );
      assert.deepEqual(new Set(rows.map(({ id }) => id)), this.ids);
      assert.equal(this.ids.size, this.#asked);
      assert.ok(rows.every(({ state }) => state === 'completed'));
    });
  }
}

async function loadOf(cell: Cell): Promise<Load> {
  const tenant = tenantThrough(engines[cell][0]!.url, TENANT);
  // Each of them has a timer that an upgrade may fall into.
  const blocks = [step('first', 'noop'), sleep('rest', 100), step('last', 'noop')];
  const sequence = await tenant.sequence(blocks);
  await tenant.close();
  const load = new Load(cell, sequence);
  loads.push(load);
  return load;
}

test('a cell is upgraded by its standby, tables and all, while another one works on without a refused request', async () => {
  for (const cell of CELLS) {
    engines[cell] = [await start(cell), await start(cell, { waitFor: 'listening' })];
  }
  const [owner, standby] = engines.east as [Engine, Engine];
  const worker = tenantThrough(owner.url, TENANT);
  const claimedIn = await worker.run([step('a', HANDLER)]);
  const claim = await worker.task(HANDLER);
  await worker.close();
  const [west, east] = [await loadOf('west'), await loadOf('east')];
  const epoch = await epochOf('west');
  await Promise.all([west.more(), east.more()]);

  await standby.stop();
  const heir = await start('east', { isNewer: true, waitFor: 'listening' });
  await isStandingBy(heir);
  assert.equal(await hasLater('east'), false);
  engines.east = [owner, heir];
  await owner.stop();
  await heir.waitReady(600_000);
  engines.east = [heir, await start('east', { isNewer: true, waitFor: 'listening' })];
  await Promise.all([west.more(), east.more()]);

  assert.deepEqual([await hasLater('east'), await hasLater('west')], [true, false]);
  assert.equal(await schemaOf(heir), (await schemaOf(engines.west[0]!)) + 1);
  const heirs = tenantThrough(heir.url, TENANT);
  await heirs.complete(claim, { done: true });
  await heirs.until(claimedIn, 'completed');
  await heirs.close();
  await Promise.all([west.expectAll(), east.expectAll()]);
  assert.equal(west.refused, 0);
  assert.equal(await epochOf('west'), epoch);
});

test('an older version does not start on the tables of the upgraded cell, and still does on those of the other', async () => {
  const starting = await start('east', { waitFor: 'listening' });
  const { code } = await starting.exited;
  assert.equal(code, 1);
  assert.match(starting.output(), /the database is newer than this program: it has 9999_later/);
  const older = await start('west', { waitFor: 'listening' });
  await isStandingBy(older);
  await older.stop();
});

test('a process is not told both to migrate and not to', () => {
  const env = { ENGINE_RUN_MIGRATIONS: 'false', ENGINE_API_KEY: 'key' };
  assert.throws(() => readConfig(env, ['--migrate-only']), /exclude one another/);
});

test('a process that only migrates waits for the engines of its cell, changes their tables, and ends', async () => {
  const env = { ENGINE_RUN_MIGRATIONS: 'false' };
  const [east, west] = [await loadOf('east'), await loadOf('west')];
  await Promise.all([west.more(), east.more()]);
  const args = ['--unsafe-database', '--migrate-only'];
  const job = await start('west', { isNewer: true, waitFor: 'listening', args });
  await isStandingBy(job);
  const older = engines.west;
  engines.west = [];
  for (const engine of older.reverse()) await engine.stop();
  assert.deepEqual(await job.exited, { code: 0, signal: null });
  assert.equal(await hasLater('west'), true);
  const first = await start('west', { isNewer: true, env });
  engines.west = [first, await start('west', { isNewer: true, waitFor: 'listening', env })];
  await Promise.all([west.more(), east.more()]);
  assert.equal(await schemaOf(first), await schemaOf(engines.east[0]!));
  await Promise.all([west.expectAll(), east.expectAll()]);
  assert.equal(east.refused, 0);
});
