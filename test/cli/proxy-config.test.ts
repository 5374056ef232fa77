/** The command that writes what proxies read, on a directory without engines: files, what it says, how it ends. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Directory, makeDirectory } from '../../src/cluster/directory.js';
import { cliWorld } from '../helpers/cli.js';
import { createTestDatabase, type TestDatabase } from '../helpers/database.js';

const cli = cliWorld(() => ({ url: 'http://127.0.0.1:9', tenant: 'none' }));
let database: TestDatabase;
let directory: Directory;

before(async () => {
  database = await createTestDatabase({ isMigrated: false });
  await makeDirectory(database.connectionString);
  directory = new Directory(database.connectionString, 'test');
  for (const [name, port] of [
    ['east', 1],
    ['west', 2],
  ] as const) {
    const { connectionString: database_url } = database;
    await directory.createCell({
      name,
      database_url,
      engines: [`127.0.0.1:${port}`],
      state: 'open',
    });
  }
  await directory.settle(['acme'], 'west', 'hand');
});

after(async () => {
  await directory?.close();
  await database?.drop();
});

const run = (...args: readonly string[]) =>
  cli.run(['cells', 'proxy-config', ...args], {
    env: { ENGINE_CLUSTER_URL: database.connectionString },
  });

const folder = (name: string) => path.join(cli.home, name);

test('files are written once, and again only when they change', async () => {
  const out = folder('ha');
  const first = await run('--for', 'haproxy', '--out', out);
  assert.deepEqual(
    [first.code, first.out],
    [0, 'Written: haproxy.cfg, tenants.map, buckets.map.\n'],
    first.err,
  );
  assert.deepEqual(readdirSync(out).sort(), ['buckets.map', 'haproxy.cfg', 'tenants.map']);
  assert.equal(readFileSync(path.join(out, 'tenants.map'), 'utf8'), 'acme west\n');
  assert.equal((await run('--for', 'haproxy', '--out', out)).out, 'Nothing has changed.\n');
  await directory.settle(['globex'], 'east', 'hand');
  const { out: said } = await run('--for', 'haproxy', '--out', out, '--json');
  assert.deepEqual(JSON.parse(said), {
    changed: ['tenants.map'],
    applied: false,
    needs_reload: false,
  });
});

test('what is read at a start alone takes a reload: by the command that is given, or by hand', async () => {
  const out = folder('ng');
  const mark = folder('reloaded');
  const args = ['--for', 'nginx', '--out', out, '--listen', '127.0.0.1:8090'];
  await run(...args, '--reload', `touch ${mark}`);
  assert.ok(!readdirSync(cli.home).includes('reloaded'));
  writeFileSync(path.join(out, 'nginx.conf'), 'older');
  const byHand = await run(...args);
  assert.match(byHand.err, /Reload the proxy/);
  writeFileSync(path.join(out, 'nginx.conf'), 'older');
  assert.equal((await run(...args, '--reload', `touch ${mark}`)).code, 0);
  assert.ok(readdirSync(cli.home).includes('reloaded'));
  writeFileSync(path.join(out, 'nginx.conf'), 'older');
  const failed = await run(...args, '--reload', 'exit 3');
  assert.deepEqual([failed.code, failed.err], [1, 'error: exit 3 ended with 3\n']);
});

test('a HAProxy that is not there yet is started with the files, and one that is missed is told of', async () => {
  const out = folder('missed');
  const args = ['--for', 'haproxy', '--out', out, '--apply', folder('nobody.sock')];
  const first = await run(...args);
  assert.equal(first.code, 0, first.err);
  const { code, err } = await run(...args);
  assert.equal(code, 5);
  assert.match(err, /HAProxy is not reached at .*nobody\.sock/);
});

test('what would not be a configuration is refused, and nothing is written', async () => {
  const out = folder('refused');
  const refused = await run('--for', 'envoy', '--out', out, '--listen', 'here');
  assert.equal(refused.code, 6);
  assert.match(refused.err, /the address to listen at is no host:port: "here"/);
  assert.ok(!readdirSync(cli.home).includes('refused'));
  assert.equal((await run('--for', 'envoy', '--out', out, '--default-cell', 'north')).code, 6);
  assert.equal((await run('--for', 'traefik', '--out', out)).code, 2);
  assert.equal((await run('--for', 'envoy')).code, 2);
  const nowhere = await cli.run(['cells', 'proxy-config', '--for', 'envoy', '--out', out]);
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.err, /ENGINE_CLUSTER_URL/);
});
