/**
 * The command that writes what proxies read, on a directory without engines: files, what it says, how
 * it ends.
 *
 * Cost: 10 s, since each of its 40 commands is a process.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { makeDirectory } from '../../src/cluster/directory.js';
import { CLI, cliWorld } from '../helpers/cli.js';
import { tenantLedTo, useDirectory } from '../helpers/cluster.js';

const cli = cliWorld(() => ({ url: 'http://127.0.0.1:9', tenant: 'none' }));
/** Whose bucket leads elsewhere than where it is. */
const STRAY = tenantLedTo('east', ['east', 'west'], 'acme');
const { database, directory } = useDirectory(async () => {
  await makeDirectory(database.connectionString);
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
  await directory.settle([STRAY], 'west', 'hand');
});

const run = (...args: readonly string[]) =>
  cli.run(['cells', 'proxy-config', ...args], {
    env: { ENGINE_CLUSTER_URL: database.connectionString },
  });

const folder = (name: string) => path.join(cli.home, name);

test('files are written once, and again only when they change', async () => {
  const out = folder('ha');
  const first = await run('--out', out);
  assert.deepEqual(
    [first.code, first.out],
    [0, 'Written: haproxy.cfg, tenants.map, buckets.map.\n'],
    first.err,
  );
  assert.deepEqual(readdirSync(out).sort(), ['buckets.map', 'haproxy.cfg', 'tenants.map']);
  assert.equal(readFileSync(path.join(out, 'tenants.map'), 'utf8'), `${STRAY} west\n`);
  assert.equal((await run('--out', out)).out, 'No changes.\n');
  await directory.settle([tenantLedTo('west', ['east', 'west'], 'globex')], 'east', 'hand');
  const { out: said } = await run('--out', out, '--json');
  assert.deepEqual(JSON.parse(said), {
    changed: ['tenants.map'],
    applied: false,
    reloaded: false,
    needs_reload: false,
  });
});

test('what is read at a start alone takes a reload: by the command that is given, or by hand', async () => {
  const out = folder('ng');
  const mark = folder('reloaded');
  const args = ['--out', out, '--listen', '127.0.0.1:8090'];
  await run(...args, '--reload', `touch ${mark}`);
  assert.ok(!readdirSync(cli.home).includes('reloaded'));
  writeFileSync(path.join(out, 'haproxy.cfg'), 'older');
  assert.match((await run(...args)).err, /Reload the proxy/);
  writeFileSync(path.join(out, 'haproxy.cfg'), 'older');
  assert.equal((await run(...args, '--reload', `touch ${mark}`)).code, 0);
  assert.ok(readdirSync(cli.home).includes('reloaded'));
  writeFileSync(path.join(out, 'haproxy.cfg'), 'older');
  const failed = await run(...args, '--reload', 'exit 3');
  assert.deepEqual([failed.code, failed.err], [1, 'error: exit 3 ended with 3\n']);
});

test('a reload that failed is tried again until one succeeds, and not after that', async () => {
  const out = folder('owed');
  const counted = folder('counted');
  const args = ['--out', out];
  await run(...args);
  writeFileSync(path.join(out, 'haproxy.cfg'), 'older');
  const reload = `echo >>${counted}; test $(wc -l <${counted}) -ge 3`;
  const codes = [];
  for (let at = 0; at < 4; at++) codes.push((await run(...args, '--reload', reload)).code);
  assert.deepEqual(codes, [1, 1, 0, 0]);
  assert.equal(readFileSync(counted, 'utf8').length, 3);
});

test('who follows the directory tries a reload again that failed, also one that another run was to do', async () => {
  const out = folder('followed');
  const counted = folder('times');
  const args = ['--out', out];
  await run(...args);
  writeFileSync(path.join(out, 'haproxy.cfg'), 'older');
  assert.equal((await run(...args, '--reload', 'exit 3')).code, 1);
  const reload = `echo >>${counted}; test $(wc -l <${counted}) -ge 2`;
  const words = ['cells', 'proxy-config', ...args, '--watch', '--reload', reload];
  const child = spawn(process.execPath, [CLI, ...words], {
    env: { ...cli.env, ENGINE_CLUSTER_URL: database.connectionString },
  });
  const ended = once(child, 'exit');
  let said = '';
  child.stderr.on('data', (text) => {
    said += text;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'The proxy was reloaded.') break;
  }
  child.kill('SIGINT');
  await ended;
  assert.match(said, /ended with 1\n/);
  assert.equal((await run(...args, '--reload', 'exit 3')).code, 0);
});

test('an address that is none is told of once, and nobody waits for it', async () => {
  const { connectionString: database_url } = database;
  const engines = ['nowhere', '127.0.0.1:4'];
  await directory.createCell({ name: 'odd', database_url, engines, state: 'closed' });
  const out = folder('odd');
  const { code, err } = await run('--out', out);
  const said = 'Left out: an engine of the cell odd is no host:port: "nowhere".\n';
  assert.deepEqual([code, err], [0, said]);
  const text = readFileSync(path.join(out, 'haproxy.cfg'), 'utf8');
  assert.match(text, /server odd_1 127\.0\.0\.1:4\n/);
  await directory.removeCell('odd');
});

test('a HAProxy that does not run is left to read the files when it starts', async () => {
  const out = folder('missed');
  const args = ['--out', out, '--apply', folder('nobody.sock')];
  const first = await run(...args);
  assert.equal(first.code, 0, first.err);
  writeFileSync(path.join(out, 'servers.state'), 'of another process');
  const { code, err } = await run(...args);
  assert.equal(code, 0);
  assert.match(
    err,
    /HAProxy is not reached at .*nobody\.sock.* HAProxy reads the files when it starts/,
  );
  assert.equal(readFileSync(path.join(out, 'servers.state'), 'utf8'), '1\n');
});

test('a HAProxy that does not say what it runs is missed', async () => {
  const socket = folder('silent.sock');
  const server = createServer((connection) => connection.end('\n'));
  await once(server.listen(socket), 'listening');
  const args = ['--out', folder('silent'), '--apply', socket];
  await run(...args);
  const { code, err } = await run(...args);
  server.close();
  assert.equal(code, 5);
  assert.match(err, /HAProxy does not know the cell east yet: reload it/);
});

test('what would not be a configuration is refused, and nothing is written', async () => {
  const out = folder('refused');
  const refused = await run('--out', out, '--listen', 'here');
  assert.equal(refused.code, 6);
  assert.match(refused.err, /the address to listen at is no host:port: "here"/);
  assert.ok(!readdirSync(cli.home).includes('refused'));
  assert.equal((await run('--out', out, '--default-cell', 'north')).code, 6);
  assert.equal((await run('--for', 'traefik', '--out', out)).code, 2);
  assert.equal((await run()).code, 2);
  const nowhere = await cli.run(['cells', 'proxy-config', '--out', out]);
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.err, /ENGINE_CLUSTER_URL/);
});
