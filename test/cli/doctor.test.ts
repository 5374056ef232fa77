/** What the doctor finds, and what it says of what it finds. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Check } from '../../cli/doctor/check.js';
import { type ClusterFacts, clusterFindings } from '../../cli/doctor/cluster-checks.js';
import {
  databaseFindings,
  diskFinding,
  distributedFindings,
} from '../../cli/doctor/database-checks.js';
import {
  clockCheck,
  fleetFindings,
  infoFindings,
  loadFindings,
  readyFinding,
} from '../../cli/doctor/server-checks.js';
import type { WorkerInfo } from '../../client/src/index.js';
import { beforeWith, step, useSharedApi } from '../helpers/api.js';
import { cliWorld } from '../helpers/cli.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();
const cli = cliWorld(() => ({ url: api.url, tenant: tenant.name }));

beforeWith(api, async () => await tenant.run([step('a', 'nobody-serves-this')]));

const about = (checks: readonly Check[], name: string) => checks.find((one) => one.about === name);

test('a server is examined through its API, and its database where that can be reached', async () => {
  const DATABASE_URL = api.database.connectionString;
  const { code, out } = await cli.run(['doctor', '--json'], { env: { DATABASE_URL } });
  const checks = JSON.parse(out) as Check[];
  for (const name of ['server', 'clock', 'ready', 'version', 'schema', 'connections']) {
    assert.equal(about(checks, name)?.health, 'ok', name);
  }
  assert.match(about(checks, 'database')?.found ?? '', /^Postgres \d/);
  assert.match(about(checks, 'permissions')?.found ?? '', /manage keys/);
  assert.equal(about(checks, 'workers')?.health, 'bad');
  assert.match(about(checks, 'workers')?.found ?? '', /nobody-serves-this \(1\)/);
  assert.equal(code, 1);
});

test('each finding says what to do', async () => {
  const { code, out } = await cli.run(['doctor']);
  assert.equal(code, 1);
  assert.match(out, /^bad +workers +.*nobody-serves-this \(1\)\n +Start a worker for them/m);
  assert.match(out, /^unknown +database +not checked\n +Set DATABASE_URL/m);
});

test('a key that is wrong, and one that may little, are told apart', async () => {
  const wrong = await cli.run(['doctor'], { env: { ENGINE_API_KEY: 'wrong' } });
  assert.equal(wrong.code, 1);
  assert.match(wrong.out, /^bad +permissions +the key of ENGINE_API_KEY is not valid/m);
  assert.match(wrong.out, /^warn +key +the key of ENGINE_API_KEY has fewer than 16 characters/m);
  const secret = (await cli.ok(['keys', 'create', 'poor', '--can', 'starter'])).trim();
  const poor = await cli.run(['doctor'], { env: { ENGINE_API_KEY: secret } });
  assert.match(
    poor.out,
    /^ok +permissions +allowed: read instances; not allowed: see workers, .*manage keys/m,
  );
});

test('a server that does not answer is the one finding about it', async () => {
  const { code, out } = await cli.run(['doctor'], { env: { ENGINE_URL: 'http://127.0.0.1:9' } });
  assert.equal(code, 5);
  assert.match(out, /^bad +server +http:\/\/127\.0\.0\.1:9 does not answer/m);
});

test('a database that does not answer is named without its password', async () => {
  const DATABASE_URL = 'postgres://me:hidden@127.0.0.1:9/orders';
  const { code, out } = await cli.run(['doctor'], { env: { DATABASE_URL } });
  assert.equal(code, 1);
  assert.match(out, /the database orders on 127\.0\.0\.1:9 cannot be used/);
  assert.ok(!out.includes('hidden'));
});

const FACTS = {
  version: 18,
  version_text: '18.4',
  fsync: 'on',
  full_page_writes: 'on',
  wal_level: 'replica',
  names: '',
  commit: 'on',
  replicas: 0,
  is_read_only: false,
  wal_bytes: 2 ** 32,
  connections_max: 100,
  connections: 5,
  bytes: 10,
  now_ms: 1_000_000,
  oldest_transaction_ms: 0,
  folder: null,
  may_write: true,
};

test('settings of the database that lose or slow things are found', () => {
  const healthOf = (changes: Partial<typeof FACTS>) =>
    databaseFindings({ ...FACTS, ...changes }, 1_000_000, undefined)
      .filter(({ health }) => health !== 'ok')
      .map(({ about: name, health }) => `${name} ${health}`);
  assert.deepEqual(healthOf({}), []);
  assert.deepEqual(healthOf({ fsync: 'off' }), ['durability bad']);
  assert.deepEqual(healthOf({ version: 14 }), ['database bad']);
  assert.deepEqual(healthOf({ is_read_only: true, may_write: false }), ['database bad']);
  assert.deepEqual(healthOf({ connections: 95 }), ['connections warn']);
  assert.deepEqual(healthOf({ now_ms: 0 }), ['clock warn']);
  assert.deepEqual(healthOf({ oldest_transaction_ms: 3_600_000 }), ['sessions warn']);
  assert.deepEqual(healthOf({ may_write: false }), ['rights warn']);
  assert.deepEqual(healthOf({ wal_bytes: 2 ** 29 }), ['settings warn']);
  assert.deepEqual(healthOf({ commit: 'off' }), ['durability warn']);
  assert.deepEqual(healthOf({ replicas: 2 }), ['replication warn']);
  assert.deepEqual(healthOf({ names: '"pg-b"', replicas: 2, commit: 'local' }), [
    'replication warn',
  ]);
  assert.deepEqual(healthOf({ names: '"pg-b"' }), ['replication bad']);
  assert.deepEqual(healthOf({ names: '"pg-b"', replicas: 2 }), []);
  const levels = ['logical', 'replica'].map((wal_level) => distributedFindings({ wal_level }));
  assert.deepEqual(
    levels.map((found) => column(found, 'health')),
    [['ok'], ['ok', 'warn']],
  );
  assert.match(levels[0]?.[0]?.found ?? '', /row-level security is off/);
  const vacuum = databaseFindings(FACTS, 1_000_000, { name: 'instances', dead: 2e6, live: 1e6 });
  assert.match(about(vacuum, 'vacuum')?.found ?? '', /2000000 dead rows in instances/);
});

test('a clock that differs, a disk that is full and a server that does not keep up are found', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  assert.equal(clockCheck('Thu, 01 Jan 2026 00:00:00 GMT', now).health, 'ok');
  assert.match(clockCheck('Thu, 01 Jan 2026 00:01:00 GMT', now).found, /1m ahead of this machine/);
  assert.equal(clockCheck(null, now).health, 'unknown');
  assert.equal(diskFinding('/x', 100 * 2 ** 30, 200 * 2 ** 30).health, 'ok');
  assert.equal(diskFinding('/x', 2 ** 30, 200 * 2 ** 30).health, 'warn');
  assert.equal(loadFindings('engine_oldest_pending_seconds 1\n')[0]?.health, 'ok');
  assert.equal(loadFindings('engine_oldest_pending_seconds 90\n')[0]?.health, 'warn');
});

test('tasks that nobody takes and workers that are silent are found', () => {
  const worker = (alive: boolean, in_flight: number): WorkerInfo => ({
    worker_id: 'w',
    handlers: ['charge'],
    queues: [],
    version: null,
    last_seen_at: '2026-01-01T00:00:00Z',
    alive,
    in_flight,
  });
  const stats = {
    by_state: { pending: 2 },
    by_handler: { charge: { pending: 2 } },
    active_workers: [],
  };
  assert.equal(fleetFindings(stats, [worker(true, 0)])[0]?.health, 'ok');
  assert.equal(fleetFindings(stats, [])[0]?.health, 'bad');
  assert.deepEqual(column(fleetFindings(stats, [worker(false, 1)]), 'health'), ['bad', 'warn']);
});

test('a directory that does not answer is named', async () => {
  const ENGINE_CLUSTER_URL = 'postgres://me@127.0.0.1:9/directory';
  const { out } = await cli.run(['doctor'], { env: { ENGINE_CLUSTER_URL } });
  assert.match(out, /^bad +cluster +cluster directory: .*ECONNREFUSED/m);
});

test('of a cluster it tells what nobody serves, what differs and what stands still', () => {
  const now = Date.UTC(2031, 0, 1);
  const owner = (cell: string, more: Partial<ClusterFacts['engines'][number]> = {}) =>
    ({ cell, role: 'owner', silent_ms: 10, migration: 32, key_ids: ['k1'], ...more }) as const;
  const cells = [{ name: 'east' }, { name: 'west' }];
  const move = { tenant_id: 'acme', from_cell: 'east', to_cell: 'west', error: null };
  const moving = { ...move, updated_at: new Date(now - 5_000).toISOString() };
  const engines = [owner('east'), owner('west')];
  const well = clusterFindings({ cells, engines, moves: [moving] }, now);
  const seen = well.map(({ health, found }) => [health, found]);
  assert.deepEqual(seen, [['ok', 'all 2 cells are served; moves in progress: 1']]);
  const trouble = clusterFindings(
    {
      cells: [...cells, { name: 'north' }],
      engines: [
        owner('east'),
        owner('west', { migration: 31, key_ids: ['k2'] }),
        owner('north', { silent_ms: 60_000 }),
      ],
      moves: [
        { ...moving, updated_at: new Date(now - 300_000).toISOString(), error: 'cut off' },
        moving,
      ],
    },
    now,
  );
  assert.deepEqual(
    trouble.map(({ health, about: what, found }) => `${health} ${what}: ${found}`),
    [
      'bad cells: no engine serves north',
      'warn migrations: east has 32, west has 31',
      'warn keys: cells have different encryption keys',
      'bad moves: the move of acme from east to west has stalled for 5m: cut off',
    ],
  );
});

test('a standby is healthy, and a server without the key of its secrets is not', () => {
  const lease = { kind: 'lease' as const };
  assert.equal(readyFinding({ error: 'a standby', reason: lease }).health, 'ok');
  assert.equal(readyFinding({ error: 'away', reason: { kind: 'unreachable' } }).health, 'bad');
  const keyOf = (encryption_key: 'none' | 'fits' | 'former' | 'other') =>
    infoFindings({ encryption_key }).find((one) => one.about === 'secrets')?.health;
  const told = (['none', 'fits', 'former', 'other'] as const).map(keyOf);
  assert.deepEqual(told, [undefined, 'ok', 'warn', 'bad']);
});
