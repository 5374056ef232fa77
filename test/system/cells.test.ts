/**
 * Cells: engines that share a database, each pair with a schema of its own. Their roles see no other schema than
 * their own, so that a statement that reached for another one would be refused.
 *
 * Cost: 40 s, since it starts the engines of several cells.
 */

import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { LOAD_SQL } from '../../actors/shard/loads.js';
import { STORE } from '../../actors/shard/store.js';
import type { Info } from '../../schema/system.js';
import { parseExposition } from '../../scripts/reference/exposition.js';
import { inSchema } from '../../src/db/database-url.js';
import { ensureSchema } from '../../src/db/engine-schema.js';
import { expectSchema, MIGRATIONS_DIR, migrate, readMigrations } from '../../src/db/migrate.js';
import { createClient } from '../../src/db/pool.js';
import { WriterSession } from '../../src/db/writer-session.js';
import type { Api, Tenant } from '../helpers/api.js';
import { eventually, sleep, startApi, step, tenantThrough } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import type { TestDatabase, TestPostgres } from '../helpers/database.js';
import { startPostgres, withAdmin } from '../helpers/database.js';
import type { Engine } from '../helpers/engine.js';
import { HAS_LATER, makeNewer } from './cells/newer.js';

const CELLS = ['east', 'west'] as const;
type Name = (typeof CELLS)[number];

type Cell = { readonly api: Api; readonly standby: Engine };

let postgres: TestPostgres;
let database: TestDatabase;
let admin: pg.Pool;
let cells: Readonly<Record<Name, Cell>>;

const urlAs = (role: string) =>
  Object.assign(new URL(database.connectionString), { username: role, password: 'secret' }).href;

const envOf = (schema: string) => ({
  ENGINE_DB_SCHEMA: schema,
  ENGINE_ROW_SECURITY: 'required',
  DATABASE_MIGRATION_URL: urlAs(`${schema}_owner`),
});

async function startCell(name: Name): Promise<Cell> {
  await admin.query(`
    create role ${name}_owner login password 'secret';
    create role ${name} login noinherit bypassrls password 'secret';
    grant engine_reader to ${name};
    grant create on database ${database.name} to ${name}_owner;
  `);
  const api = await startApi({
    database: { ...database, connectionString: urlAs(name) },
    env: envOf(name),
  });
  return { api, standby: await api.engine.beside({ waitFor: 'listening' }) };
}

before(async () => {
  postgres = await startPostgres();
  database = await postgres.createDatabase({ isMigrated: false });
  admin = new pg.Pool({ connectionString: database.connectionString, max: 2 });
  admin.on('error', () => undefined);
  await admin.query('create role engine_reader nologin; revoke all on schema public from public');
  cells = { east: await startCell('east'), west: await startCell('west') };
});

after(async () => {
  for (const { api, standby } of Object.values(cells ?? {})) {
    await standby.stop();
    if (api.engine.isRunning()) await api.stop();
    else await Promise.all([api.root.close(), api.sql.end()]);
  }
  await admin?.end();
  await postgres?.stop();
});

/**
 * Everything that is committed in a schema: the rows of each table, but for what a lease and its lanes note, and
 * for counts by minute, which are written a while later.
 */
async function rowsOf(schema: string): Promise<Record<string, string>> {
  const { rows } = await admin.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r'
       and relname not in ('engine_lease', 'lanes', 'lane_flushes', 'activity', 'step_activity',
         'queue_minutes') order by 1`,
    [schema],
  );
  const found: Record<string, string> = {};
  for (const { name } of rows) {
    const { rows: texts } = await admin.query<{ text: string | null }>(
      `select string_agg(t::text, chr(10) order by t::text) as text from ${schema}.${name} t`,
    );
    found[name] = texts[0]?.text ?? '';
  }
  return found;
}

const epochOf = async (schema: string) =>
  (await admin.query<{ epoch: string }>(`select epoch from ${schema}.engine_lease`)).rows[0]!.epoch;

/** The sessions of the engines of a cell, by the role that they alone have. */
const sessionsOf = async (role: string) =>
  column(
    (
      await admin.query<{ pid: number }>(
        "select pid from pg_stat_activity where usename = $1 and application_name ~ '(writer|lease)' order by 1",
        [role],
      )
    ).rows,
    'pid',
  );

async function orderAndTask(tenant: Tenant): Promise<string> {
  const sequence = await tenant.sequence([step('a', 'outside')], { name: 'order' });
  const id = await tenant.create(sequence, { idempotency_key: 'the same' });
  await tenant.until(id, 'waiting');
  return id;
}

test('tenants of one name in two cells see, claim and change nothing of each other', async () => {
  const east = cells.east.api.tenant('acme');
  const west = cells.west.api.tenant('acme');
  const inEast = await orderAndTask(east);
  const before = await rowsOf('east');
  const inWest = await orderAndTask(west);
  // The id of an instance follows from tenant and key: the same in both, and yet two of them.
  assert.equal(inWest, inEast);
  await west.complete(await west.task('outside'), { by: 'west' });
  await west.until(inWest, 'completed');
  assert.equal((await west.poll('outside')).length, 0);
  assert.deepEqual(await rowsOf('east'), before);
  assert.equal((await east.instance(inEast)).state, 'waiting');
  await east.complete(await east.task('outside'), { by: 'east' });
  await east.until(inEast, 'completed');
  assert.deepEqual((await east.outputsOf(inEast)).a, { by: 'east' });
  assert.deepEqual((await west.outputsOf(inWest)).a, { by: 'west' });
  await cells.west.api.tenant('only-west').sequence([step('a', 'noop')]);
  expectStatus(await cells.east.api.root.get('/tenants'), 200);
  const tenants = JSON.stringify((await cells.east.api.root.get('/tenants')).body);
  assert.match(tenants, /acme/);
  assert.doesNotMatch(tenants, /only-west/);
});

test('an owner that is killed is replaced by the standby of its cell, and the other cell goes on untouched', async () => {
  const { api, standby } = cells.east;
  const id = await orderAndTask(api.tenant('killed'));
  const [epoch, sessions, rows] = [
    await epochOf('west'),
    await sessionsOf('west'),
    await rowsOf('west'),
  ];
  await api.engine.kill();
  await standby.waitReady(600_000);
  const heir = tenantThrough(standby.url, 'killed');
  await heir.complete(await heir.task('outside'), {});
  await heir.until(id, 'completed');
  await heir.close();
  assert.equal(await epochOf('east'), '2');
  assert.equal(await epochOf('west'), epoch);
  assert.deepEqual(await sessionsOf('west'), sessions);
  assert.deepEqual(await rowsOf('west'), rows);
  assert.equal(cells.west.standby.isRunning(), true);
});

test('each engine says its cell: in /info, in a metric and in its lines', async () => {
  for (const name of CELLS) {
    const { api, standby } = cells[name];
    const url = name === 'east' ? standby.url : api.url;
    const info = (await (await fetch(`${url}/info`)).json()) as Info;
    assert.equal(info.cell, name);
    const headers = { 'x-api-key': api.engine.apiKey! };
    const text = await (await fetch(`${url}/metrics`, { headers })).text();
    const samples = parseExposition(text).families.get('engine_info')?.samples;
    assert.deepEqual(samples, [
      { name: 'engine_info', labels: { version: info.version, cell: name }, value: 1 },
    ]);
    const lines = standby.logs().filter(({ thread }) => thread !== undefined);
    assert.ok(lines.length > 0 && lines.every(({ cell }) => cell === name));
  }
});

test('a cell may have the tables of an older version, and is brought up to date while others work', async () => {
  const older = readMigrations(MIGRATIONS_DIR).at(-3)!;
  await admin.query('create schema older');
  const url = inSchema(database.connectionString, 'older');
  await migrate(url, MIGRATIONS_DIR, older.version);
  const tenant = cells.west.api.tenant('meanwhile');
  const id = await orderAndTask(tenant);
  await assert.rejects(expectSchema(url), new RegExp(older.name));
  await expectSchema(inSchema(urlAs('west'), 'west'));
  const versions = async (schema: string) =>
    column(
      (await admin.query(`select * from ${schema}.schema_migrations order by version`)).rows,
      'applied_at',
    );
  const before = await versions('west');
  assert.equal((await migrate(url)).length, 2);
  await expectSchema(url);
  assert.deepEqual(await versions('west'), before);
  await tenant.complete(await tenant.task('outside'), {});
  await tenant.until(id, 'completed');
  await admin.query('drop schema older cascade');
});

test('cells hold different locks, also while their tables are changed', async () => {
  const keys = await admin.query<{ space: string; engines: number }>(
    `select classid::text as space, count(*)::int as engines
     from pg_locks join pg_stat_activity using (pid)
     where locktype = 'advisory' and usename in ('east', 'west') group by 1`,
  );
  assert.deepEqual(column(keys.rows, 'engines'), [1, 1]);
  await admin.query('create schema slow');
  const holder = new pg.Client({ connectionString: inSchema(database.connectionString, 'slow') });
  await holder.connect();
  await holder.query('begin; create table schema_migrations (id int)');
  const stuck = migrate(inSchema(database.connectionString, 'slow')).catch(() => undefined);
  await eventually(async () => {
    const { rows } = await admin.query(
      "select 1 from pg_stat_activity where application_name = 'engine-migrate' and wait_event_type = 'Lock'",
    );
    assert.equal(rows.length, 1);
  });
  assert.deepEqual(await migrate(inSchema(urlAs('west_owner'), 'west')), []);
  await holder.query('rollback');
  await holder.end();
  await stuck;
  await admin.query('drop schema slow cascade');
});

test('each statement of the writer and of the actors is understood with rights in one schema only', async () => {
  const connectionString = inSchema(urlAs('west'), 'west');
  const client = createClient({ connectionString, applicationName: 'cells test' });
  // It has all that docs/statements.sql shows parsed, by which names are looked up.
  const session = await WriterSession.open(client, STORE.statements, () => undefined);
  session.destroy();
  await withAdmin(connectionString, async (reader) => {
    for (const [name, text] of Object.entries(LOAD_SQL)) {
      await reader.query(`prepare "${name}" as ${text}`);
    }
    const across = 'prepare across as select from instances join east.timers on true';
    await assert.rejects(reader.query(across), { code: '42501' });
  });
});

test('nothing in a schema is tied to another one, and it holds tables and indexes alone', async () => {
  const ties = await admin.query(
    `select o.type, o.identity, r.identity as to
     from pg_depend d, pg_identify_object(d.classid, d.objid, d.objsubid) o,
       pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) r
     where o.identity ~ '\\mwest\\.' and r.identity ~ '\\m(east|public)\\.'`,
  );
  assert.deepEqual(ties.rows, []);
  const others = await admin.query(
    `select 'function' as kind, proname::text as name from pg_proc where pronamespace = 'west'::regnamespace
     union all select 'extension', extname from pg_extension where extnamespace = 'west'::regnamespace
     union all select 'trigger', tgname from pg_trigger join pg_class c on c.oid = tgrelid
       where not tgisinternal and c.relnamespace = 'west'::regnamespace
     union all select 'type', typname from pg_type
       where typnamespace = 'west'::regnamespace and typrelid = 0 and typelem = 0
     union all select 'relation', relname from pg_class
       where relnamespace = 'west'::regnamespace and relkind not in ('r', 'i', 'S')`,
  );
  assert.deepEqual(others.rows, []);
});

test('an engine that cannot be sure of its cell does not start, and says what to do', async () => {
  const from = (schema: string) => inSchema(database.connectionString, schema);
  const cell = (name: string, more = {}) => ({ name, isChosen: true, mayCreate: true, ...more });
  const ensured = (url: string, of: ReturnType<typeof cell>) => ensureSchema(url, url, of);
  await assert.rejects(
    ensured(from('public'), cell('public', { isChosen: false })),
    /tables of an engine in east, west and none in public: set ENGINE_DB_SCHEMA/,
  );
  await assert.rejects(
    ensured(from('north'), cell('north', { mayCreate: false })),
    /no schema north/,
  );
  await assert.rejects(
    ensured(inSchema(urlAs('west'), 'north'), cell('north')),
    /the schema north cannot be made: permission denied/,
  );
  await assert.rejects(
    ensured(inSchema(urlAs('west'), 'east'), cell('east')),
    /role west of DATABASE_URL may not use the schema east/,
  );
  await assert.rejects(
    ensured(database.connectionString, cell('west')),
    /begin in the schema public, not in west: something between drops their settings/,
  );
  await Promise.all([ensured(from('north'), cell('north')), ensured(from('north'), cell('north'))]);
  await admin.query('drop schema north');
});

const hasLater = async (schema: string) =>
  (await admin.query(HAS_LATER, [`${schema}.instances`])).rows.length === 1;

/** Creates instances until it is told to end, asking again what was not acknowledged; the URLs are tried in turn. */
function load(urls: readonly string[], sequence: string, tenant: string) {
  const clients = urls.map((url) => tenantThrough(url, tenant));
  const ids = new Set<string>();
  let isOver = false;
  let refused = 0;
  const create = async (key: string, at: number): Promise<string> => {
    const client = clients[at % clients.length] as Tenant;
    const body = client.creation(sequence, { idempotency_key: key });
    // What was acknowledged counts; whatever else became of a request, the key makes it harmless to repeat.
    const reply = await client.post<{ id: string }>('/instances', body).catch(() => undefined);
    if (reply?.status === 201) return reply.body.id;
    refused += 1;
    await pause(10);
    return create(key, at + 1);
  };
  const done = (async () => {
    for (let n = 0; !isOver; n += 1) {
      ids.add(await create(`${n}`, 0));
      await pause(10);
    }
  })();
  return {
    more: () => {
      const wanted = ids.size + 20;
      return eventually(() => assert.ok(ids.size >= wanted), 600_000);
    },
    /** Every instance that was acknowledged completes, and there is no other one. */
    end: async (cell: Name) => {
      isOver = true;
      await done;
      for (const client of clients) await client.close();
      await eventually(async () => {
        const { rows } = await admin.query<{ id: string; state: string }>(
          `select id, state from ${cell}.instances where sequence_id = $1`,
          [sequence],
        );
        assert.deepEqual(new Set(column(rows, 'id')), ids);
        assert.ok(rows.every(({ state }) => state === 'completed'));
      });
      return refused;
    },
  };
}

test('a cell is upgraded by its standby, tables and all, while another one works on without a refused request, and an older version does not start on it any more', async (t) => {
  const newer = makeNewer();
  t.after(() => rmSync(newer, { recursive: true }));
  const { api, standby } = cells.west;
  const east = cells.east.standby;
  await standby.stop();
  const heir = await api.engine.beside({ waitFor: 'listening', checkout: newer });
  t.after(() => heir.kill());
  await eventually(() => {
    const lines = heir.logs().map(({ msg }) => msg);
    assert.ok(lines.includes('another engine owns the database: standing by'));
  });
  assert.equal(await hasLater('west'), false);
  const tenant = api.tenant('upgraded');
  const id = await orderAndTask(tenant);
  const task = await tenant.task('outside');
  // Each of them has a timer that the upgrade may fall into.
  const blocks = [step('first', 'noop'), sleep('rest', 100), step('last', 'noop')];
  const inEast = tenantThrough(east.url, tenant.name);
  const loads = [
    load([api.url, heir.url], await tenant.sequence(blocks), tenant.name),
    load([east.url], await inEast.sequence(blocks), tenant.name),
  ] as const;
  await inEast.close();
  const epoch = await epochOf('east');
  const more = () => Promise.all(loads.map((one) => one.more()));
  await more();
  await api.engine.stop();
  await heir.waitReady(600_000);
  await more();
  assert.deepEqual([await hasLater('west'), await hasLater('east')], [true, false]);
  const later = tenantThrough(heir.url, tenant.name);
  await later.complete(task, {});
  await later.until(id, 'completed');
  await later.close();
  await loads[0].end('west');
  assert.equal(await loads[1].end('east'), 0, 'refused by the other cell');
  assert.equal(await epochOf('east'), epoch);
  const older = await api.engine.beside({ waitFor: 'listening' });
  assert.equal((await older.exited).code, 1);
  assert.match(older.output(), /the database is newer than this program: it has 9999_later/);

  // The tables of the other cell are as they were, until a process that only migrates has its turn.
  const args = ['--unsafe-database', '--migrate-only'];
  const job = await east.beside({ waitFor: 'listening', checkout: newer, args });
  await east.stop();
  assert.deepEqual(await job.exited, { code: 0, signal: null });
  assert.equal(await hasLater('east'), true);
});
