/**
 * Sessions of the engine begin on the primary alone: on a real standby they are refused, and of several hosts the
 * one that is the primary is found, also after another one has become it.
 */

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { databaseChecks } from '../../cli/doctor/database-checks.js';
import { createPool, withClient } from '../../src/db/pool.js';
import { isUnavailable, troubleOf } from '../../src/db/trouble.js';
import { startPostgres, type TestPostgres } from '../helpers/database.js';
import * as loopback from '../helpers/loopback.js';
import { FaultProxy } from '../helpers/proxy.js';

let primary: TestPostgres;
let standby: TestPostgres;
let primaryUrl: string;
let standbyUrl: string;

before(async () => {
  [primary, standby] = await Promise.all([startPostgres(), startPostgres()]);
  // As replicas of one primary have it.
  for (const { connectionString } of [primary, standby]) {
    await withClient(options(connectionString), (client) =>
      client.query(`create role engine superuser login password 'the same'`),
    );
  }
  await standby.demote();
  [primaryUrl, standbyUrl] = [urlOf(primary), urlOf(standby)];
});

after(async () => {
  await primary?.stop();
  await standby?.stop();
});

const options = (connectionString: string) => ({ connectionString, applicationName: 'primary' });

/** The port of the server where a session begins. */
const portOf = (connectionString: string): Promise<number> =>
  withClient(options(connectionString), async (client) => {
    const { rows } = await client.query<{ port: number }>('select inet_server_port() as port');
    return rows[0]!.port;
  });

const urlOf = ({ connectionString }: TestPostgres): string =>
  connectionString.replace(/\/\/.*@/, '//engine:the%20same@');

const portIn = (url: string): number => Number(new URL(url).port);

/** One URL with the hosts of all. */
function hostsOf(...urls: readonly string[]): string {
  const [first, ...others] = urls.map((url) => new URL(url));
  const places = [first!, ...others].map(({ host }) => host).join(',');
  return first!.href.replace(first!.host, places);
}

test('a session does not begin on a standby, and says why', async () => {
  const refused = /is a standby, not the primary/;
  await assert.rejects(portOf(standbyUrl), (error: Error) => {
    assert.match(error.message, refused);
    assert.equal(troubleOf(error).kind, 'unreachable');
    return true;
  });
  const pool = createPool({ ...options(standbyUrl), connectionsMax: 2, onError: () => undefined });
  const asked = [1, 2, 3, 4].map(() => pool.query('select 1'));
  for (const result of await Promise.allSettled(asked)) {
    assert.match(String(result.status === 'rejected' && result.reason), refused);
  }
  await pool.end();
});

test('doctor tells that the database is a standby', async () => {
  const [found] = await databaseChecks(standbyUrl);
  assert.equal(found?.health, 'bad');
  assert.match(found?.found ?? '', /only reads: DATABASE_URL must name the primary/);
});

test('of several hosts the primary is found, and again when another one has become it', async (t) => {
  const { proxy, url: first } = await FaultProxy.before(primaryUrl);
  const { proxy: other, url: second } = await FaultProxy.before(primaryUrl);
  t.after(() => Promise.all([proxy.stop(), other.stop()]));
  const hosts = hostsOf(first, standbyUrl, primaryUrl.replace(/:\d+\//, ':9/'), second);
  const place = portIn(primaryUrl);
  other.refuse();
  assert.equal(await portOf(hosts), place);
  proxy.refuse();
  await assert.rejects(portOf(hosts));
  await assert.rejects(portOf(hosts), /no host is the primary: .*is a standby/);
  other.resume();
  assert.equal(await portOf(hosts), place);
  const pool = createPool({ ...options(hosts), connectionsMax: 2, onError: () => undefined });
  const { rows } = await pool.query('select inet_server_port() as port');
  assert.equal(rows[0].port, place);
  await pool.end();
});

const coded = (code: string) => (error: Error & { code?: string }) => error.code === code;

test('a refusal that all hosts give is told as it is', async () => {
  const url = primaryUrl.replace(/:[^:@]*@/, ':wrong@');
  await assert.rejects(portOf(hostsOf(url, standbyUrl)), coded('28P01'));
  const tls = hostsOf(primaryUrl, standbyUrl).concat('?sslmode=require');
  await assert.rejects(portOf(tls), (error: Error) => {
    assert.match(error.message, /does not support SSL/);
    assert.ok(!isUnavailable(error));
    return true;
  });
});

test('a host that refuses among others that are not the primary is waited for', async (t) => {
  const stranger = await startPostgres();
  t.after(() => stranger.stop());
  const hosts = hostsOf(standbyUrl, stranger.connectionString);
  await assert.rejects(portOf(hosts), (error: Error) => {
    assert.match(error.message, /no host is the primary: .*password authentication failed/);
    assert.ok(isUnavailable(error));
    return true;
  });
});

test('a session that the server ends as it begins fails, and nothing else', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      const failure = 'SFATAL\0C57P01\0Mended\0\0';
      const messages = [message('R', '\0\0\0\0'), message('Z', 'I'), message('E', failure)];
      socket.end(messages.join(''), 'latin1');
    });
  });
  const connectionString = `postgres://engine@127.0.0.1:${await loopback.portOf(server)}/engine`;
  const pool = createPool({
    ...options(connectionString),
    connectionsMax: 1,
    onError: () => undefined,
  });
  try {
    await assert.rejects(pool.query('select 1'));
  } finally {
    await pool.end();
    server.close();
  }
});

/** As the server writes one. */
function message(type: string, body: string): string {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return type + length.toString('latin1') + body;
}
