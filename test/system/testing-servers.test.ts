/**
 * Throw-away servers that applications start in their tests: on a database that is given, or on their own, which are
 * copies of a prepared one.
 *
 * Cost: 45 s, since it starts seven of them, nearly each with a Postgres.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { startServer, type TestServer } from '../../client/src/testing/index.js';
import { createTestDatabase, newFolder, withAdmin } from '../helpers/database.js';
import { childrenOf, signalTree } from '../helpers/process-tree.js';

test('a server of one own is there for a test, and leaves nothing behind', async () => {
  const { connectionString, drop } = await createTestDatabase({ isMigrated: false });
  const server = await startServer({ databaseUrl: connectionString });
  const { client } = server;
  await client.sequences.create({
    name: 'greet',
    version: 1,
    blocks: [{ type: 'step', id: 'hello', handler: 'transform', params: { to: 'Ada' } }],
  });
  const { outputs } = await client.instances.run<{ hello: { to: string } }>('greet');
  assert.equal(outputs.hello.to, 'Ada');
  await Promise.all([server.stop(), server.stop()]);
  await assert.rejects(client.info({ retries: 0 }), { code: 'CLIENT_UNREACHABLE' });
  const left = `select datname from pg_database where datname like 'engine\\_test\\_${process.pid}\\_%'`;
  const { rows } = await withAdmin(connectionString, (admin) => admin.query(left));
  await drop();
  assert.deepEqual(rows, []);
});

test('a server that cannot start says why', async () => {
  const options = { databaseUrl: undefined, env: { ENGINE_SHARDS: 'many' } };
  await assert.rejects(startServer(options), /ENGINE_SHARDS/);
});

test('the log goes where the option says, and its end is in the error of a server that dies', async () => {
  const lines: string[] = [];
  const server = await startServer({ clock: 'manual', log: (line) => lines.push(line) });
  assert.ok(lines.some((line) => line.includes('"msg":"ready"')));
  for (const pid of childrenOf(process.pid)) signalTree(pid, 'SIGKILL');
  const isTold = /ended.*"msg":"ready"/s;
  await assert.rejects(server.advance('1h'), isTold);
  await assert.rejects(server.stop(), isTold);
});

test('servers of their own are copies of one prepared database, which is given up when it is broken', async (t) => {
  const shelf = useCache(t);
  const servers = await Promise.all([startServer(), startServer()]);
  const [first, second] = servers as [TestServer, TestServer];
  await store(first, 'only here');
  assert.deepEqual((await second.client.sequences.list()).items, []);
  await Promise.all(servers.map((server) => server.stop()));
  const [name = '', ...others] = shelf.names();
  assert.deepEqual(others, [], 'two that are made at once are one in the end');
  const file = path.join(shelf.folder, name, 'data/postgres/PG_VERSION');

  rmSync(file);
  await startsAnyway();
  assert.deepEqual(shelf.names(), [], 'a copy that is not whole is seen by its size');

  await startsAnyway();
  assert.deepEqual(shelf.names(), [name], 'it is made anew');
  // No other length: only Postgres can tell.
  writeFileSync(file, readFileSync(file, 'utf8').replace(/\d/g, '9'));
  await startsAnyway();
  assert.deepEqual(shelf.names(), []);
});

async function startsAnyway(): Promise<void> {
  const server = await startServer();
  try {
    await store(server, 'works');
  } finally {
    await server.stop();
  }
}

/** An empty folder for what is prepared, as long as the test runs. */
function useCache(t: TestContext) {
  const cache = newFolder();
  const folder = path.join(cache, 'durable-workflow-engine');
  const { XDG_CACHE_HOME } = process.env;
  process.env.XDG_CACHE_HOME = cache;
  t.after(() => {
    if (XDG_CACHE_HOME === undefined) delete process.env.XDG_CACHE_HOME;
    else process.env.XDG_CACHE_HOME = XDG_CACHE_HOME;
    rmSync(cache, { recursive: true });
  });
  return { folder, names: () => readdirSync(folder) };
}

const store = ({ client }: TestServer, name: string) =>
  client.sequences.create({
    name,
    version: 1,
    blocks: [{ type: 'step', id: 'a', handler: 'noop' }],
  });
