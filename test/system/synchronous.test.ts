/**
 * Commits that have to be on a replica before they are acknowledged, on a server that waits for one that never
 * comes: whoever ends or cancels that wait, nobody takes it for a confirmation.
 */

import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { ConfigError } from '../../src/base/config-error.js';
import { checkConnection } from '../../src/db/connection-check.js';
import { acquireLease } from '../../src/db/lease.js';
import { withClient } from '../../src/db/pool.js';
import { column } from '../helpers/columns.js';
import { startPostgres, type TestDatabase, type TestPostgres } from '../helpers/database.js';
import * as replicas from '../helpers/replicas.js';
import { auditPut, harness, leaseOptions, prepareLanes, stopHarnesses } from '../helpers/writer.js';

let postgres: TestPostgres;
let database: TestDatabase;
let admin: pg.Client;

before(async () => {
  postgres = await startPostgres();
  database = await postgres.createDatabase();
  admin = new pg.Client(database.connectionString);
  await admin.connect();
});

after(async () => {
  await admin?.end();
  await postgres?.stop();
});

beforeEach(async () => {
  await admin.query('truncate audit_log');
  await prepareLanes(admin);
});

afterEach(async () => {
  await confirmAll();
  await stopHarnesses();
});

const confirmNone = () => replicas.confirmNone(admin, database.connectionString);
const confirmAll = () => replicas.confirmAll(admin);
const waiting = (name: string, before?: number) => replicas.waiting(admin, name, before);

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await wait(10);
}

const ownedBy = (owner: string) =>
  leaseOptions(database.connectionString, owner, {
    laneCount: 1,
    timing: { ttlMs: 1_000, renewMs: 200, standbyPollMs: 50, statementMs: 400 },
  });

async function audited(): Promise<number> {
  const { rows } = await admin.query('select count(*)::int as n from audit_log');
  return rows[0].n as number;
}

/** Ways in which the wait of a commit ends without a replica, and the options of the session that waits. */
for (const [what, end, options] of [
  ['is cancelled', 'select pg_cancel_backend($1::int)', ''],
  ['ends with its session', 'select pg_terminate_backend($1::int)', ''],
  // Then nobody is warned that the commit is not confirmed.
  [
    'is cancelled for a role that is told of errors alone',
    'select pg_cancel_backend($1::int)',
    '?options=-c%20client_min_messages%3Derror',
  ],
] as const) {
  test(`a commit whose wait for a replica ${what} is acknowledged when the replica has it, and made once`, async () => {
    const applicationName = `writer whose wait ${what}`.slice(0, 60);
    const connectionString = database.connectionString + options;
    if (options !== '')
      await admin.query('alter role current_user set client_min_messages = error');
    try {
      const h = await harness({ connectionString, applicationName });
      await h.put('a', [auditPut(1, 1)]);
      await confirmNone();
      const settled = h.put('a', [auditPut(1, 2)]);
      const first = await waiting(applicationName);
      await admin.query(end, [first]);
      // Whoever reads anew what was committed sees it, and has to wait for the replica as well.
      const next = await Promise.race([waiting(applicationName, first), settled]);
      assert.equal(typeof next, 'number');
      assert.equal(await audited(), 2);
      await confirmAll();
      assert.equal((await settled).outcome, 'committed');
      assert.equal(await audited(), 2);
    } finally {
      await admin.query('alter role current_user reset client_min_messages');
    }
  });
}

test('a writer whose commit waits for a replica says so, and goes on when it is confirmed', async () => {
  const applicationName = 'writer of a slow replica';
  const h = await harness({ connectionString: database.connectionString, applicationName });
  await h.put('a', [auditPut(1, 1)]);
  const newest = await admin.query(
    'select pid from pg_stat_activity where application_name = $1 order by backend_start desc limit 1',
    [applicationName],
  );
  await confirmNone();
  const settled = h.put('a', [auditPut(1, 2)]);
  await h.event('down');
  assert.deepEqual(column(h.troubles, 'kind'), ['replica']);
  await confirmAll();
  assert.equal((await settled).outcome, 'committed');
  await h.event('up');
  const session = 'select from pg_stat_activity where pid = $1 and application_name = $2';
  const kept = await admin.query(session, [newest.rows[0]?.pid, applicationName]);
  assert.equal(kept.rowCount, 1);
});

test('a session without a limit has none, whatever its role has', async () => {
  await admin.query(`alter role current_user set statement_timeout = '1ms'`);
  try {
    const options = { connectionString: database.connectionString, applicationName: 'limits' };
    const limitOf = (statementTimeoutMs: number) =>
      withClient({ ...options, statementTimeoutMs }, async (client) => {
        const { rows } = await client.query('show statement_timeout');
        return rows[0].statement_timeout as string;
      });
    assert.equal(await limitOf(0), '0');
    assert.equal(await limitOf(700), '700ms');
  } finally {
    await admin.query('alter role current_user reset statement_timeout');
  }
});

test('a take-over whose wait for a replica is cancelled is not believed, and is made again', async () => {
  await admin.query('delete from lanes');
  await confirmNone();
  const acquired = acquireLease(ownedBy('first'));
  const first = await Promise.race([waiting('first lease'), acquired]);
  assert.ok(typeof first === 'number');
  await admin.query('select pg_cancel_backend($1::int)', [first]);
  assert.equal(typeof (await Promise.race([waiting('first lease', first), acquired])), 'number');
  await confirmAll();
  const lease = await acquired;
  const { rows } = await admin.query('select epoch::int, owner from engine_lease');
  assert.deepEqual(rows, [{ epoch: lease.epoch, owner: 'first' }]);
  await lease.release();
});

test('an owner renews its lease while no replica confirms anything', async () => {
  await admin.query('delete from lanes');
  await admin.query('update engine_lease set epoch = 0');
  const lease = await acquireLease(ownedBy('second'));
  await confirmNone();
  const version = async () => (await admin.query('select xmin from engine_lease')).rows[0].xmin;
  const before = await version();
  await until(async () => (await version()) !== before);
  await lease.release();
});

test('an engine that requires synchronous replication starts with it alone', async () => {
  const contact = (synchronous: 'auto' | 'required' | 'off') =>
    checkConnection({
      connectionString: database.connectionString,
      ownerUrl: database.connectionString,
      schema: { name: 'public', isChosen: false, mayCreate: false },
      isUnsafeAccepted: true,
      synchronous,
      log: { info: assert.fail, warn: assert.fail, error: assert.fail },
      signal: new AbortController().signal,
      onUnavailable: (error) => assert.fail(String(error)),
    });
  await assert.rejects(contact('required'), (error: Error) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.message, /replication is not synchronous: there is no replica/);
    return true;
  });
  for (const mode of ['auto', 'off'] as const) assert.equal(await contact(mode), undefined);
  await confirmNone();
  assert.equal(await contact('required'), undefined);
});
