/**
 * Two servers that both say that they are the primary, on two timelines, as it is when a standby was promoted and the
 * old primary does not know: once a commit has proven the newer one, nothing of this process is with the older one.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import pg from 'pg';
import { acquireLease } from '../../src/db/lease.js';
import { createPool, withClient, withCursor } from '../../src/db/pool.js';
import { troubleOf } from '../../src/db/trouble.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import { FaultProxy } from '../helpers/proxy.js';
import { confirmNone } from '../helpers/replicas.js';
import {
  auditPut,
  createHarness,
  harness,
  leaseOptions,
  prepareLanes,
  stopHarnesses,
} from '../helpers/writer.js';

const ROLE = 'plain';

/** By the number of its timeline, each the standby of the one before until it was promoted. */
let servers: readonly TestPostgres[];
let urls: readonly [string, string, string, string];

before(async () => {
  const first = await startPostgres();
  const database = await first.createDatabase();
  // As the owner of the tables it sees their rows, and it has no other right that not everybody has.
  await withClient(options(database.connectionString), async (client) => {
    await client.query(`create role ${ROLE} login bypassrls password '${ROLE}'`);
    await client.query(`grant all on all tables in schema public to ${ROLE}`);
  });
  const second = await first.fork();
  const third = await second.fork();
  servers = [first, second, third, await third.fork()];
  urls = servers.map(({ connectionString }) => {
    const url = new URL(connectionString);
    Object.assign(url, { username: ROLE, password: ROLE, pathname: `/${database.name}` });
    return url.href;
  }) as [string, string, string, string];
});

after(async () => {
  await stopHarnesses();
  await Promise.all((servers ?? []).map((server) => server.stop()));
});

function options(connectionString: string) {
  return { connectionString, applicationName: 'timeline' };
}

const PORT = 'select inet_server_port() as port';

const portIn = (url: string): number => Number(new URL(url).port);

const portOf = (connectionString: string): Promise<number> =>
  withClient(options(connectionString), async (client) => (await client.query(PORT)).rows[0].port);

/** Both hosts in one URL. */
const hostsOf = (url: string, other: string): string =>
  url.replace(new URL(url).host, `${new URL(url).host},${new URL(other).host}`);

function assertOlder(error: Error): true {
  const text = error.message;
  assert.match(text, /is on an older timeline, \d, than the primary that has replicas, \d/);
  assert.equal(troubleOf(error).kind, 'unreachable');
  return true;
}

/** A URL of the older and the newer one, of which the first session finds the older one alone. */
async function hostsAtOlder(older: string, newer: string) {
  const { proxy, url } = await FaultProxy.before(newer);
  proxy.refuse();
  return { proxy, hosts: hostsOf(older, url) };
}

test('of two hosts that both say to be the primary the one with the highest timeline is taken', async () => {
  const ports = urls.map(portIn);
  assert.equal(await portOf(hostsOf(urls[0], urls[1])), ports[1]);
  assert.equal(await portOf(hostsOf(urls[1], urls[0])), ports[1]);
  // Nothing is proven yet.
  assert.deepEqual(await Promise.all(urls.map(portOf)), ports);
});

test('a writer whose primary gets no commit confirmed goes to the one that was promoted', async () => {
  for (const url of urls.slice(0, 2)) await withClient(options(url), prepareLanes);
  const { proxy, hosts } = await hostsAtOlder(urls[0], urls[1]);
  const lost = new pg.Client(servers[0]!.connectionString);
  await lost.connect();
  try {
    const h = await harness({ connectionString: hosts });
    proxy.resume();
    await confirmNone(lost, servers[0]!.connectionString);
    assert.equal((await h.put('a', [auditPut(1, 1)])).outcome, 'committed');
    const written = await withClient(options(urls[1]), (client) =>
      client.query('select from audit_log'),
    );
    assert.equal(written.rowCount, 1);
    await assert.rejects(portOf(urls[0]), assertOlder);
  } finally {
    await stopHarnesses();
    await lost.end();
    await proxy.stop();
  }
});

test('once a take-over has proven a timeline, no session of any thread stays on an older one', async () => {
  const { proxy, hosts } = await hostsAtOlder(urls[1], urls[2]);
  const [, olderPort, newerPort] = urls.map(portIn);
  const pool = createPool({ ...options(hosts), connectionsMax: 3, onError: () => undefined });
  const thread = new Worker(new URL('./timeline.thread.js', import.meta.url), {
    workerData: hosts,
  });
  const answer = async () => {
    thread.postMessage('');
    return (await once(thread, 'message'))[0] as unknown;
  };
  try {
    assert.equal((await pool.query(PORT)).rows[0].port, olderPort);
    assert.equal(await answer(), olderPort);
    const rows = 'select n from generate_series(1, 4) as n';
    await assert.rejects(
      withCursor(pool, rows, [], async (reader) => {
        assert.equal((await reader.read(1, 5_000)).length, 1);
        proxy.resume();
        await (await acquireLease(leaseOptions(urls[2] ?? '', 'newer'))).release();
        // What it read before was true then. What it reads from now on may lack what was committed elsewhere.
        await reader.read(1, 5_000);
      }),
      assertOlder,
    );
    // The idle ones are closed before anybody is given one, and the next ones begin at the newer.
    assert.equal((await pool.query(PORT)).rows[0].port, newerPort);
    assert.equal(await answer(), newerPort);
    await assert.rejects(portOf(urls[1]), assertOlder);
    assert.equal(await portOf(hosts), newerPort);
  } finally {
    await thread.terminate();
    await pool.end();
    await proxy.stop();
  }
});

test('a lane that has settled what was committed proves the timeline, and one on an older server writes nothing', async () => {
  const pool = createPool({ ...options(urls[2]), connectionsMax: 2, onError: () => undefined });
  try {
    const held = await pool.connect();
    await pool.query(PORT);
    assert.equal(pool.idleCount, 1);
    await withClient(options(urls[3]), prepareLanes);
    // A thread that does not doubt the primary stays with it, wherever the writer may go.
    assert.equal(await portOf(hostsOf(urls[2], urls[3])), portIn(urls[2]));
    await harness({ connectionString: urls[3] });
    // One that is in use fails with its next answer, whatever it says.
    await assert.rejects(held.query(PORT), assertOlder);
    assert.equal(pool.idleCount, 0);
    held.release(true);
    await assert.rejects(pool.query(PORT), assertOlder);
    const late = createHarness({ connectionString: urls[2] });
    late.writer.start().catch(() => undefined);
    await late.event('down');
    assert.match(late.troubles[0]!.message, /is on an older timeline, 3/);
  } finally {
    await pool.end();
  }
});

test('a database of another number is not compared', async () => {
  const other = await startPostgres();
  try {
    assert.equal(await portOf(other.connectionString), portIn(other.connectionString));
  } finally {
    await other.stop();
  }
});
