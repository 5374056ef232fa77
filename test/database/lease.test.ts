/**
 * Ownership of the database, with real processes that are stopped, continued and killed, and clocks
 * that are set. The times of the lease are shortened; what is waited for is seen in the database or said by the processes.
 */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { acquireLease, LEASE_TIMING, type Lease, type LeaseOptions } from '../../src/db/lease.js';
import { startChild, type TestChild } from '../helpers/child.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';
import { shadowClock } from '../helpers/database-clock.js';
import { FaultProxy } from '../helpers/proxy.js';
import { withResolvers } from '../helpers/resolvers.js';
import { leaseOptions } from '../helpers/writer.js';

const TIMING = { ttlMs: 1_000, renewMs: 200, standbyPollMs: 50, statementMs: 400 };

/** A lease whose end no test waits for: who takes over before has seen that the lock is free. */
const LONG = { ...TIMING, ttlMs: 600_000 };

const silent = () => undefined;

let database: TestDatabase;
let admin: pg.Client;
/** Ends everything that still waits for the lease. */
let waiting: AbortController;
let leases: Lease[];
let children: TestChild[];
let proxies: FaultProxy[];

beforeEach(async () => {
  database = await createTestDatabase();
  admin = new pg.Client({ connectionString: database.connectionString });
  await admin.connect();
  waiting = new AbortController();
  leases = [];
  children = [];
  proxies = [];
});

afterEach(async () => {
  waiting.abort(new Error('the test is over'));
  for (const lease of leases) await lease.release();
  for (const child of children) await child.end('SIGKILL');
  for (const proxy of proxies) await proxy.stop();
  await admin.end();
  await database.drop();
});

async function acquire(owner: string, changes: Partial<LeaseOptions> = {}): Promise<Lease> {
  const usual = { signal: waiting.signal, timing: TIMING, ...changes };
  const lease = await acquireLease(leaseOptions(database.connectionString, owner, usual));
  leases.push(lease);
  return lease;
}

function startOwner(owner: string, timing = TIMING): TestChild {
  const child = startChild(new URL('./lease.child.js', import.meta.url), [
    database.connectionString,
    owner,
    JSON.stringify(timing),
  ]);
  children.push(child);
  return child;
}

/** Starts waiting as a standby; resolves when it has seen the owner. `troubled` is its first warning. */
async function startStandby(
  owner: string,
  changes: Partial<LeaseOptions> = {},
): Promise<{ lease: Promise<Lease>; troubled: Promise<unknown> }> {
  const [seen, troubled] = [withResolvers<unknown>(), withResolvers<unknown>()];
  const log = { info: silent, warn: troubled.resolve, error: silent };
  const lease = acquire(owner, { onStandby: seen.resolve, log, ...changes });
  await seen.promise;
  return { lease, troubled: troubled.promise };
}

/** A proxy before the database, as long as the test runs. */
async function proxied(): Promise<FaultProxy & { url: string }> {
  const { proxy, url } = await FaultProxy.before(database.connectionString);
  proxies.push(proxy);
  return Object.assign(proxy, { url });
}

async function nobodyTookOver(): Promise<void> {
  const { rows } = await admin.query('select epoch, owner from engine_lease');
  assert.deepEqual(rows, [{ epoch: '1', owner: 'first' }]);
}

async function untilPast(end: string): Promise<void> {
  const isPast = 'select clock_timestamp() > $1::timestamptz as past';
  await until(async () => (await admin.query(isPast, [end])).rows[0].past);
}

async function lanes(): Promise<string[]> {
  const { rows } = await admin.query<{ text: string }>(
    `select lane || ': epoch ' || epoch as text from lanes order by lane`,
  );
  return rows.map(({ text }) => text);
}

async function sessionPid(applicationName: string): Promise<number> {
  const { rows } = await admin.query<{ pid: number }>(
    'select pid from pg_stat_activity where application_name = $1 and datname = $2',
    [applicationName, database.name],
  );
  return rows[0]!.pid;
}

/** How much of its lease the owner has left, in ms by database time. */
async function leftMs(): Promise<number> {
  const { rows } = await admin.query<{ ms: number }>(
    `select (extract(epoch from expires_at - clock_timestamp()) * 1000)::float as ms
     from engine_lease`,
  );
  return rows[0]!.ms;
}

const SESSION = 'select from pg_stat_activity where application_name = $1';

async function nextRenewal(): Promise<void> {
  const version = async () => (await admin.query('select xmin from engine_lease')).rows[0].xmin;
  const before = await version();
  await until(async () => (await version()) !== before);
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await wait(10);
}

test('the first engine owns the database at once and makes its lanes', async () => {
  const lease = await acquire('first', { onStandby: () => assert.fail('nobody else is there') });
  assert.equal(lease.epoch, 1);
  assert.deepEqual(await lanes(), ['0: epoch 1', '1: epoch 1']);
});

test('an owner renews its lease, and stays the owner beyond the first end of it', async () => {
  await acquire('first');
  const standby = await startStandby('second');
  const { rows } = await admin.query<{ end: string }>('select expires_at as end from engine_lease');
  await untilPast(rows[0]!.end);
  assert.ok((await leftMs()) > 0);
  waiting.abort(new Error('enough'));
  await assert.rejects(standby.lease, /enough/);
});

test('a standby takes over at once when the owner gives the lease up', async () => {
  const owner = await acquire('first', { timing: LONG });
  const standby = await startStandby('second');
  await owner.release();
  assert.equal((await standby.lease).epoch, 2);
});

test('a standby takes over at once when the owner is killed in the middle of a flush', async () => {
  const owner = startOwner('first', LONG);
  await owner.line('epoch');
  const standby = await startStandby('second');
  await owner.end('SIGKILL');
  assert.equal((await standby.lease).epoch, 2);
  assert.deepEqual(await lanes(), ['0: epoch 2', '1: epoch 2']);
});

test('a stopped owner is replaced when its lease ends, and can never commit again', async () => {
  const owner = startOwner('first');
  await owner.line('epoch');
  const standby = await startStandby('second');
  owner.signal('SIGSTOP');
  assert.equal((await standby.lease).epoch, 2);
  owner.signal('SIGCONT');
  const line = await owner.line('lost');
  assert.equal(line.commit, 'refused');
  assert.match(String(line.lost), /another engine/);
  assert.deepEqual(await lanes(), ['0: epoch 2', '1: epoch 2']);
});

test('the default times replace a stopped owner well within 15 s', () => {
  const { ttlMs, standbyPollMs, statementMs, renewMs } = LEASE_TIMING;
  assert.ok(ttlMs + standbyPollMs + 2 * statementMs < 15_000);
  assert.ok(ttlMs >= 3 * renewMs, 'one late renewal must not cost the ownership');
});

test('of many standbys exactly one takes over at a time, and epochs only grow', async () => {
  const first = await acquire('first');
  const rivals = Array.from({ length: 6 }, (_, index) => acquire(`rival-${index}`));
  const epochs: number[] = [];
  let current = first;
  for (let round = 0; round < rivals.length; round += 1) {
    await current.release();
    current = await Promise.race(
      rivals.map((rival) =>
        rival.then((lease) => (epochs.includes(lease.epoch) ? new Promise<never>(silent) : lease)),
      ),
    );
    epochs.push(current.epoch);
  }
  assert.deepEqual(epochs, [2, 3, 4, 5, 6, 7]);
});

test('an owner whose connection is cut goes on in the same epoch', async () => {
  const lease = await acquire('first');
  lease.onLost((reason) => assert.fail(reason));
  const before = await sessionPid('first lease');
  await admin.query('select pg_terminate_backend($1::int, 5000)', [before]);
  await until(async () => {
    const { rows } = await admin.query(
      `select 1 from pg_locks l join pg_stat_activity a using (pid)
       where locktype = 'advisory' and application_name = 'first lease' and datname = $1
         and pid <> $2`,
      [database.name, before],
    );
    return rows.length === 1;
  });
  await until(async () => (await leftMs()) > TIMING.ttlMs / 2);
  await nobodyTookOver();
});

test('an owner that the database kept waiting past the end of its lease goes on', async (t) => {
  if (process.env.TEST_DATABASE_URL) return t.skip('the server is not on this machine');
  const lease = await acquire('first');
  lease.onLost((reason) => assert.fail(reason));
  const pid = await sessionPid('first lease');
  const resume = () => process.kill(pid, 'SIGCONT');
  // Postgres could not end, nor drop a database, beside one that an interrupted run has left stopped.
  process.once('exit', resume);
  process.kill(pid, 'SIGSTOP');
  try {
    await until(async () => (await leftMs()) < -TIMING.statementMs);
  } finally {
    process.off('exit', resume);
    resume();
  }
  await until(async () => (await leftMs()) > TIMING.ttlMs / 2);
});

test('setting the clock of the database ends nobody, and the owner tells how far it was set', async () => {
  const setClock = await shadowClock(admin);
  const owner = await acquire('first', { timing: LONG });
  owner.onLost((reason) => assert.fail(reason));
  const standby = await startStandby('second');
  const unshifted = owner.clockOffsetMs;
  for (const aheadMs of [2 * LONG.ttlMs, -2 * LONG.ttlMs]) {
    const told = new Promise<number>((resolve) => owner.onClock(resolve));
    await setClock(aheadMs);
    assert.ok(Math.abs((await told) - unshifted - aheadMs) < LONG.ttlMs / 2);
    for (let renewals = 0; renewals < 5; renewals++) await nextRenewal();
  }
  waiting.abort(new Error('enough'));
  await assert.rejects(standby.lease, /enough/);
});

test('a stopped owner is replaced, although the clock of the database was set back', async () => {
  const setClock = await shadowClock(admin);
  const owner = startOwner('first');
  await owner.line('epoch');
  const standby = await startStandby('second');
  owner.signal('SIGSTOP');
  await setClock(-3_600_000);
  assert.equal((await standby.lease).epoch, 2);
});

test('a standby that could not look for longer than the lease does not take the owner for gone', async () => {
  const owner = await acquire('first', { timing: { ...TIMING, renewMs: 600_000 } });
  const proxy = await proxied();
  const standby = await startStandby('second', { connectionString: proxy.url });
  proxy.refuse();
  await standby.troubled;
  const ended = await admin.query<{ end: string }>("select now() + interval '1 s' as end");
  await untilPast(ended.rows[0]!.end);
  const resumedAt = performance.now();
  proxy.resume();
  assert.equal((await standby.lease).epoch, owner.epoch + 1);
  assert.ok(performance.now() - resumedAt >= TIMING.ttlMs, 'it watched for a whole lease again');
});

test('a lock that is free because the server began anew is left to the owner, for a while', async () => {
  const [around, before] = [await proxied(), await proxied()];
  // Renewals never end, and the owner has all the time there is to come back.
  const timing = { ...LONG, statementMs: 600_000 };
  const owner = await acquire('first', { connectionString: around.url });
  const standby = await startStandby('second', { connectionString: before.url, timing });
  void standby.lease.catch(silent);
  for (const proxy of [around, before]) proxy.refuse();
  await standby.troubled;
  before.resume();
  await until(async () => (await admin.query(SESSION, ['second lease'])).rows.length > 0);
  around.resume();
  await nextRenewal();
  assert.equal(owner.epoch, 1);
  await nobodyTookOver();
});

test('an owner that does not come back with its server is replaced', async () => {
  const [around, before] = [await proxied(), await proxied()];
  await acquire('first', { connectionString: around.url, timing: LONG });
  const standby = await startStandby('second', { connectionString: before.url, timing: LONG });
  around.refuse();
  before.cut();
  assert.equal((await standby.lease).epoch, 2);
});

test('a standby that was paused with the owner gives it a whole lease to come back', async () => {
  const owner = startOwner('first');
  await owner.line('epoch');
  const standby = startOwner('second');
  await standby.line('standby');
  for (const child of [owner, standby]) child.signal('SIGSTOP');
  await until(async () => (await leftMs()) < -TIMING.ttlMs);
  const continuedAt = performance.now();
  standby.signal('SIGCONT');
  assert.equal((await standby.line('epoch')).epoch, 2);
  assert.ok(performance.now() - continuedAt >= TIMING.ttlMs);
});

test('a lease whose row is lost is put back above every epoch there was', async () => {
  const owner = await acquire('first');
  const lost = new Promise<string>((resolve) => owner.onLost(resolve));
  await admin.query('delete from engine_lease');
  assert.match(await lost, /another engine/);
  assert.equal((await acquire('second')).epoch, 2);
  await admin.query('update lanes set epoch = 7');
  await admin.query('delete from engine_lease');
  assert.equal((await acquire('third')).epoch, 8);
});

test('a lease that is older than the lanes is refused with what to do', async () => {
  await (await acquire('first')).release();
  await admin.query('update lanes set epoch = 7');
  await assert.rejects(acquire('second'), (error: Error) => {
    assert.equal(error.name, 'SchemaError');
    const text = error.message;
    assert.match(text, /epoch 1, but lanes were owned at epoch 7: .* "delete from engine_lease"/);
    return true;
  });
  const { rows } = await admin.query('select epoch from engine_lease');
  assert.deepEqual(rows, [{ epoch: '1' }]);
  await admin.query('delete from engine_lease');
  assert.equal((await acquire('second')).epoch, 8);
});

test('taking over raises every lane, and adds those that are missing', async () => {
  const owner = await acquire('first', { laneCount: 1 });
  await owner.release();
  await acquire('second', { laneCount: 3 });
  assert.deepEqual(await lanes(), ['0: epoch 2', '1: epoch 2', '2: epoch 2']);
});

test('a standby waits on while the database cuts its connections', async () => {
  const owner = await acquire('first');
  const standby = await startStandby('second');
  const pid = await sessionPid('second lease');
  await admin.query('select pg_terminate_backend($1::int, 5000)', [pid]);
  await owner.release();
  assert.equal((await standby.lease).epoch, 2);
});
