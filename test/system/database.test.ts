/**
 * An engine and its database: roles with no more rights than they need, the wall between tenants, a clock that is set,
 * standbys, and a database in trouble. Postgres may stop answering without breaking a connection, as a stalled disk or
 * a paused machine does: every process of the server is stopped by a signal, and continued later. It may answer and
 * not write, or be gone.
 *
 * Cost: 30 s, since it takes the database away from its engines.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type pg from 'pg';
import { STORE } from '../../actors/shard/store.js';
import { LIMITS } from '../../src/base/limits.js';
import { createPool, withClient } from '../../src/db/pool.js';
import { list } from '../../src/db/reads/list.js';
import { createReads, READ_POOL_OPTIONS, type Reads } from '../../src/db/reads.js';
import { prepareRowSecurity, type RowSecurityMode } from '../../src/db/row-security.js';
import type { Table } from '../../src/db/table.js';
import { eventually, newHandler, step, type Tenant, WORKER } from '../helpers/api.js';
import { type Client, createClient, expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import type { Engine } from '../helpers/engine.js';
import { signalTree } from '../helpers/process-tree.js';
import { TABLES } from '../helpers/store.js';
import { describeClock } from './database/clock.js';
import { describeStandbys } from './database/standby.js';
import { cannotChangeTables, DatabaseWorld, told } from './database/world.js';

let world: DatabaseWorld;

before(async () => {
  world = await DatabaseWorld.start();
});
after(() => world?.stop());

test('the log tells of the life of the server, and nothing of single requests', async () => {
  const tenant = world.tenant('logged');
  for (const msg of ['starting', 'listening', 'ready']) {
    // The probe may see that the engine is ready before its line has arrived.
    await eventually(() => assert.ok(told(world.engine).includes(msg), msg));
  }
  for (let i = 0; i < 20; i += 1) expectStatus(await tenant.get('/instances'), 200);
  expectStatus(await tenant.get(`/instances/${randomUUID()}`), 404);
  const ofRequests = world.engine.logs().filter(({ requestId }) => requestId !== undefined);
  assert.deepEqual(ofRequests, []);
});

// ---------------------------------------------------------------- the wall between tenants

describe('reads for a tenant', () => {
  let a: Tenant;
  let b: Tenant;
  let pool: pg.Pool;
  let reads: Reads;

  before(async () => {
    [a, b] = [world.tenant('tenant-a'), world.tenant('tenant-b')];
    for (const tenant of [a, b]) await leaveRows(tenant);
    pool = createPool({
      ...READ_POOL_OPTIONS,
      connectionString: world.given.engineUrl,
      applicationName: 'row-security',
      // Each statement follows those of others on its connection.
      connectionsMax: 1,
      onError: () => undefined,
    });
    reads = createReads(pool);
    reads.wallTenants();
  });
  after(() => pool?.end());

  async function leaveRows(tenant: Tenant): Promise<void> {
    const id = await tenant.run([step('a', 'noop'), step('b', 'outside')]);
    await tenant.task('outside');
    await tenant.signal(id, 'custom:later');
    await tenant.until(await tenant.run([step('a', 'fail', { message: 'no' })]), 'failed');
  }

  const everything = list<{ tenant_id: string }>({
    columns: 'tenant_id',
    from: 'instances',
    order: 'id',
    toText: ({ tenant_id }) => JSON.stringify(tenant_id),
    cheaper: '',
  });

  /** Whose instances are shown by a list without a condition, and by a look-up. */
  async function ownersSeenBy(reader: Reads): Promise<string[]> {
    const listed = JSON.parse((await reader.page(everything({}))).text) as string[];
    const text = 'select tenant_id from instances';
    const rows = await reader.rows<{ tenant_id: string }>({
      name: 'test_owners',
      text,
      values: [],
      cheaper: '',
    });
    const owners = [...new Set(listed)].sort();
    assert.deepEqual([...new Set(rows.map(({ tenant_id }) => tenant_id))].sort(), owners);
    return owners;
  }

  test('a statement without a tenant condition still reads only the rows of its tenant', async () => {
    const both = [a.name, b.name].sort();
    for (let round = 0; round < 2; round += 1) {
      assert.deepEqual(await ownersSeenBy(reads.of(a.name)), [a.name]);
      assert.deepEqual(await ownersSeenBy(reads), both);
      assert.deepEqual(await ownersSeenBy(reads.of(b.name)), [b.name]);
      assert.deepEqual(await ownersSeenBy(reads.of('')), both);
      assert.deepEqual(await ownersSeenBy(reads.of("'; reset role; --")), []);
    }
  });

  test('a statement that fails leaves a connection that is narrowed anew', async () => {
    const fails = { text: 'select 1 / (count(*) - count(*)) from instances', values: [] };
    for (const tenant of [a.name, '', b.name]) {
      await assert.rejects(reads.of(tenant).rowsOf(fails, ''), { code: 'ENG_INTERNAL' });
      await assert.rejects(reads.of(tenant).rowsOf({ text: 'select nothing', values: [] }, ''));
      assert.deepEqual(await ownersSeenBy(reads.of(a.name)), [a.name]);
      assert.equal((await ownersSeenBy(reads)).length, 2);
    }
  });

  test('in every table a tenant sees all of its own rows and no others', async () => {
    const counted = [];
    for (const [name, { columns }] of Object.entries<Table>(TABLES)) {
      if (!('tenant_id' in columns || 'instance_id' in columns)) continue;
      const count = async (reader: Reads) => {
        const query = { text: `select count(*)::integer as n from ${name}`, values: [] };
        return (await reader.rowsOf<{ n: number }>(query, ''))[0]?.n ?? 0;
      };
      const [all, ofA, ofB, ofNobody] = [
        await count(reads),
        await count(reads.of(a.name)),
        await count(reads.of(b.name)),
        await count(reads.of('nobody')),
      ];
      assert.deepEqual([ofA + ofB, ofNobody], [all, 0], name);
      if (ofA > 0 && ofB > 0) counted.push(name);
    }
    for (const name of ['instances', 'worker_tasks', 'block_outputs', 'signals', 'dead_letters']) {
      assert.ok(counted.includes(name), name);
    }
  });

  test('every table that names a tenant or an instance has a policy', async () => {
    const { rows } = await pool.query<{ name: string }>(
      "select polrelid::regclass::text as name from pg_policy where polname = 'own_rows'",
    );
    const guarded = new Set(rows.map(({ name }) => name));
    for (const [name, { columns }] of Object.entries<Table>(TABLES)) {
      if ('tenant_id' in columns || 'instance_id' in columns) assert.ok(guarded.has(name), name);
    }
  });

  test('the server itself reads for its tenants behind the wall', async () => {
    // It concerns nobody but who reads for one tenant.
    await world.given.admin.query(
      "create policy nothing on instances as restrictive using (tenant_id = '')",
    );
    assert.deepEqual((await a.get('/instances')).body, []);
    await world.given.admin.query('drop policy nothing on instances');
    assert.equal((await a.get<unknown[]>('/instances')).body.length, 2);
  });
});

test('it is switched off on request, and on again', async () => {
  const { connectionString, drop } = await world.given.postgres.createDatabase();
  const prepare = (mode: RowSecurityMode, mayChange = true) =>
    prepareRowSecurity({
      store: STORE,
      mode,
      connectionString,
      ownerUrl: mayChange ? connectionString : undefined,
    });
  assert.equal(await prepare('required', false), undefined);
  assert.match(String(await prepare('off')), /ENGINE_ROW_SECURITY is off/);
  assert.match(String(await prepare('auto', false)), /ENGINE_RUN_MIGRATIONS is false/);
  await assert.rejects(prepare('required', false), /cannot be had: ENGINE_RUN_MIGRATIONS/);
  assert.equal(await prepare('auto'), undefined);
  await drop();
});

// ---------------------------------------------------------------- roles

test('a server makes its tables, works and is killed and replaced with nothing but the documented rights', async () => {
  const handler = newHandler();
  const before = world.tenant('roles');
  const id = await before.run([step('a', handler)]);
  const task = await before.task(handler);
  await world.restart();
  const tenant = world.tenant('roles');
  await tenant.complete(task, { done: true });
  await tenant.until(id, 'completed');
  assert.equal((await tenant.tasks(handler)).length, 1);
  const sessions = await world.given.admin.query<{ rolname: string; rolsuper: boolean }>(
    `select distinct rolname, rolsuper from pg_stat_activity join pg_roles on rolname = usename
     where datname = current_database() and application_name like 'engine-%'`,
  );
  assert.deepEqual(sessions.rows, [{ rolname: 'engine', rolsuper: false }]);
  const session = { connectionString: world.given.engineUrl, applicationName: 'roles' };
  await withClient(session, (client) => cannotChangeTables(client, 'instances'));
});

test('without what it takes the wall comes down, since the engine could not copy rows in', async (t) => {
  const { admin, engineUrl: connectionString, ownerUrl } = world.given;
  const states = async () => {
    const { rows } = await admin.query<{ on: boolean }>(
      "select distinct relrowsecurity as on from pg_class where relname in ('instances', 'signals')",
    );
    return column(rows, 'on');
  };
  assert.deepEqual(await states(), [true]);
  t.after(() => admin.query('alter role engine bypassrls'));
  await admin.query('alter role engine nobypassrls');
  const options = { store: STORE, mode: 'auto', connectionString } as const;
  await assert.rejects(prepareRowSecurity({ ...options, ownerUrl: undefined }), /BYPASSRLS/);
  assert.match(String(await prepareRowSecurity({ ...options, ownerUrl })), /BYPASSRLS/);
  assert.deepEqual(await states(), [false]);
  const required = prepareRowSecurity({ ...options, mode: 'required', ownerUrl });
  await assert.rejects(required, /ENGINE_ROW_SECURITY is required/);
});

// ---------------------------------------------------------------- time, and who is the owner

describe('the clock of the database', () => describeClock(() => world));

describe('standbys', () => describeStandbys(() => world));

// ---------------------------------------------------------------- trouble

describe('a database in trouble', () => {
  const RECOVERY_MS = 100_000;

  let engine: Engine;
  let admin: pg.Client;
  let tenant: Tenant;
  let client: Client;
  /** With connections of its own: those of `client` wait for the database. */
  let probe: Client;
  let sequence: string;

  before(async () => {
    ({ engine } = world);
    ({ admin } = world.given);
    tenant = world.tenant('outage');
    client = world.client(tenant.name, 64);
    probe = world.client(tenant.name, 4);
    sequence = await tenant.sequence([step('a', 'noop')]);
  });

  const signalPostgres = (signal: NodeJS.Signals): void =>
    signalTree(world.given.postgres.pid, signal);

  const create = (through = client) =>
    through.post<{ id: string }>('/instances', tenant.creation(sequence));

  /** What metrics say of the engine and of its database; they are answered without it, to who has a key. */
  async function gauges({ url, apiKey }: Engine): Promise<readonly unknown[]> {
    const asking = createClient({ url, apiKey });
    const { text } = await asking.get('/metrics');
    expectStatus(await asking.with({ apiKey: null }).get('/metrics'), 401);
    await asking.close();
    return ['engine_ready', 'engine_database_up'].map(
      (name) => new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1],
    );
  }

  async function untilReady(status: number, withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const reply = await probe.get('/health/ready');
      if (reply.status === status) return;
      assert.ok(performance.now() < deadline, `readiness stayed ${reply.status}`);
    }
  }

  test('an engine with nothing to do sees that Postgres is silent', async (t) => {
    if (process.platform !== 'linux') return t.skip('the processes are found through /proc');
    await untilReady(200, RECOVERY_MS);
    signalPostgres('SIGSTOP');
    try {
      await untilReady(503, LIMITS.databaseSilenceMs + RECOVERY_MS);
      assert.equal((await probe.get('/health/live')).status, 200);
      assert.deepEqual(await gauges(engine), ['0', '0']);
    } finally {
      signalPostgres('SIGCONT');
    }
    await untilReady(200, RECOVERY_MS);
    assert.deepEqual(await gauges(engine), ['1', '1']);
  });

  test('while Postgres does not answer, the engine stays up, reports it, and loses nothing', async (t) => {
    if (process.platform !== 'linux') return t.skip('the processes are found through /proc');
    const resident = (await create()).body.id;
    const acknowledged: string[] = [];
    const note = async () => {
      const reply = await create();
      if (reply.status === 201) acknowledged.push(reply.body.id);
      else assert.equal(reply.status, 503, reply.text);
    };
    const before = Array.from({ length: 100 }, note);
    await Promise.race(before);
    signalPostgres('SIGSTOP');
    let during: Promise<void>[] = [];
    try {
      during = Array.from({ length: 100 }, note);
      await untilReady(503, LIMITS.databaseSilenceMs + RECOVERY_MS);
      assert.equal((await probe.get('/health/live')).status, 200);
      // Reads of an instance in memory need no database.
      assert.equal((await probe.get(`/instances/${resident}`)).status, 200);
      const refused = await create(probe);
      assert.equal(refused.status, 503);
      assert.ok(refused.headers['retry-after'] !== undefined);
    } finally {
      signalPostgres('SIGCONT');
    }
    await untilReady(200, RECOVERY_MS);
    await Promise.all([...before, ...during]);
    assert.ok(acknowledged.length > 0, 'what was accepted before the outage is committed after it');
    const replies = await Promise.all(acknowledged.map((id) => client.get(`/instances/${id}`)));
    const seen = replies.filter(({ status }) => status !== 200);
    assert.deepEqual(seen, []);
    assert.equal((await create()).status, 201);
    assert.ok(engine.isRunning());
  });

  /** The body of the first refusal of readiness, which must come. */
  async function refusal(): Promise<unknown> {
    await untilReady(503, RECOVERY_MS);
    return (await probe.get<unknown>('/health/ready')).body;
  }

  test('when only writes fail, reads continue, writes wait, and the reason is reported', async () => {
    const instance = (await create()).body.id;
    const waits = await tenant.run([step('a', newHandler())]);
    const shown = await client.get(`/instances/${waits}`);
    const changes = await client.get('/changes?limit=500');
    await admin.query(`
    create function no_room() returns trigger language plpgsql as $$
    begin
      raise exception 'no space left on device' using errcode = '53100';
    end $$;
    create trigger no_room before insert or update on instances execute function no_room()`);
    const began = performance.now();
    const waiting = [
      create(probe),
      probe.patch(`/instances/${waits}/context`, { context: { data: { x: 1 } } }),
    ];
    const early = probe.get(`/instances/${waits}`);
    const error = 'unavailable: the database takes no writes: its disk is full (53100)';
    try {
      assert.deepEqual(await refusal(), {
        error,
        reason: { kind: 'disk-full', sql_state: '53100' },
      });
      for (const { status, text } of await Promise.all(waiting)) {
        assert.equal(status, 503);
        assert.match(text, /takes no writes: its disk is full .*may still be made: ask again/);
      }
      for (const { status, text } of [await early, await probe.get(`/instances/${waits}`)]) {
        assert.deepEqual([status, text], [200, shown.text], 'what is committed');
      }
      const late = await probe.get('/changes?limit=500');
      assert.deepEqual([late.status, late.text], [200, changes.text]);
      assert.ok(performance.now() - began < 10_000);
      for (const path of ['/instances', `/instances/${instance}`, '/workers', '/sequences']) {
        assert.equal((await probe.get(path)).status, 200, path);
      }
      const refused = await create(probe);
      assert.deepEqual([refused.status, refused.body], [503, { error }]);
    } finally {
      await admin.query('drop function no_room cascade');
    }
    await untilReady(200, RECOVERY_MS);
    await eventually(async () => assert.equal((await tenant.instance(waits)).context.data.x, 1));
    const line = engine.logs().find(({ msg }) => msg === 'the database takes no writes');
    assert.deepEqual([line?.kind, line?.sqlState], ['disk-full', '53100']);
  });

  test('while a column is renamed no task, instance or request fails', async () => {
    const handler = newHandler();
    const instance = await tenant.run([step('a', handler)]);
    const { id } = await tenant.task(handler);
    await admin.query('alter table worker_tasks rename column output to output_gone');
    const body = { worker_id: WORKER, output: { ok: true } };
    const completed = client.post(`/workers/tasks/${id}/complete`, body);
    try {
      const { reason } = (await refusal()) as { readonly reason: unknown };
      assert.deepEqual(reason, { kind: 'schema', sql_state: '42703' });
    } finally {
      await admin.query('alter table worker_tasks rename column output_gone to output');
    }
    assert.equal((await completed).status, 200);
    await untilReady(200, RECOVERY_MS);
    await tenant.until(instance, 'completed');
  });

  test('without a database the log tells of a 5xx which request and instance, and of the end', async () => {
    const lines = engine.logs().length;
    await world.stopDatabase();
    await eventually(() => {
      const news = engine.logs().slice(lines);
      assert.ok(news.some(({ msg }) => msg === 'the database is away'));
    });
    const late = await world.beside();
    for (const one of [engine, late]) assert.deepEqual(await gauges(one), ['0', '0']);
    const instance = randomUUID();
    const headers = { 'x-request-id': `r-${randomUUID()}` };
    const options = { body: { signal_type: 'resume' }, headers };
    expectStatus(await client.request('POST', `/instances/${instance}/signals`, options), 503);
    const line = await eventually(() => {
      const found = engine.logs().find(({ requestId }) => requestId === headers['x-request-id']);
      assert.ok(found);
      return found;
    });
    const { level, msg, route, status, instanceId, code } = line;
    assert.deepEqual(
      { level, msg, route, status, instanceId, code },
      {
        ...{ level: 40, msg: 'request failed', route: 'instances.signal', status: 503 },
        ...{ instanceId: instance, code: 'ENG_DATABASE_DOWN' },
      },
    );
    await engine.stop();
    await eventually(() => {
      for (const end of ['stopping', 'stopped']) assert.ok(told(engine).includes(end), end);
    });
  });
});
