/**
 * The throw-away server that applications start in their tests.
 *
 * Cost: 5 s, since it starts a server, as those tests do.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { startServer } from '../../client/src/testing/index.js';
import { createTestDatabase } from '../helpers/database.js';

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
  const session = new pg.Client({ connectionString });
  await session.connect();
  const { rows } = await session.query(
    `select datname from pg_database where datname like 'engine\\_test\\_${process.pid}\\_%'`,
  );
  await session.end();
  await drop();
  assert.deepEqual(rows, []);
});

test('a server that cannot start says why', async () => {
  const options = { databaseUrl: undefined, env: { ENGINE_SHARDS: 'many' } };
  await assert.rejects(startServer(options), /ENGINE_SHARDS/);
});
