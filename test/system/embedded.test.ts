/**
 * The bundled Postgres: first and later starts, engines that are killed or come twice, folders that
 * its user cannot enter. Making a database takes a second, so that most tests share one, stopped
 * between them.
 *
 * Cost: 25 s, since it makes and starts databases.
 */

import assert from 'node:assert/strict';
import {
  chmodSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { after, afterEach, beforeEach, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { withClient } from '../../src/db/pool.js';
import { type EmbeddedPostgres, startEmbedded } from '../../src/server/embedded.js';
import { EmbeddedPostgresError } from '../../src/server/embedded-files.js';
import { ensureRoles } from '../../src/server/embedded-roles.js';
import { findPostmaster, stopServer } from '../../src/server/embedded-server.js';
import { startChild, type TestChild } from '../helpers/child.js';
import { column } from '../helpers/columns.js';
import { newFolder } from '../helpers/database.js';
import { cannotChangeTables } from './database/world.js';

let dataDir: string;
let logged: string[];
let started: EmbeddedPostgres[];
let children: TestChild[];

const note = (_fields: object, message: string) => void logged.push(message);

const sharedDir = newFolder();

beforeEach(() => {
  dataDir = sharedDir;
  logged = [];
  started = [];
  children = [];
});

afterEach(async () => {
  for (const child of children) await child.end('SIGKILL');
  for (const embedded of started) await embedded.stop();
  const left = postmaster();
  if (left !== undefined) await stopServer(left, 'immediate');
  if (dataDir === sharedDir) return;
  rmSync(dataDir, { recursive: true });
});

after(() => rmSync(sharedDir, { recursive: true }));

async function start(major?: 15 | 18): Promise<EmbeddedPostgres> {
  const embedded = await startEmbedded({
    dataDir,
    log: { info: note, warn: note, error: note },
    ...(major === undefined ? {} : { major }),
  });
  started.push(embedded);
  return embedded;
}

function startEngineProcess(): TestChild {
  const child = startChild(new URL('./embedded.child.js', import.meta.url), [dataDir]);
  children.push(child);
  return child;
}

async function query(connectionString: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

const postmaster = () => findPostmaster(path.join(dataDir, 'postgres'));

test('what was stored is there after a stop and a start, on the same port', async () => {
  const first = await start();
  await query(
    first.connectionString,
    'drop table if exists kept; create table kept as select 42 as answer',
  );
  await first.stop();
  assert.equal(postmaster(), undefined);
  const second = await start();
  assert.equal(second.connectionString, first.connectionString);
  assert.deepEqual(await query(second.connectionString, 'table kept'), [{ answer: 42 }]);
});

test('commits are durable, and only the password opens the database', async () => {
  const { connectionString, port } = await start();
  const settings = await query(
    connectionString,
    `select name, setting from pg_settings
     where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums')
     order by name`,
  );
  assert.deepEqual(column(settings, 'setting'), ['on', 'on', 'on', 'on']);
  assert.equal(statSync(path.join(dataDir, 'postgres.password')).mode & 0o777, 0o600);
  const wrong = `postgresql://postgres:guess@127.0.0.1:${port}/postgres`;
  await assert.rejects(query(wrong, 'select 1'), /password authentication failed/);
});

test('tables of an older folder change hands with their rows, and later ones are usable', async () => {
  const { connectionString } = await start();
  await query(
    connectionString,
    'drop table if exists older, later; create table older (id int primary key); insert into older values (1)',
  );
  const urls = await ensureRoles(connectionString);
  assert.deepEqual(await ensureRoles(connectionString), urls);
  await query(urls.owner, 'alter table older add column more int; create table later (id int)');
  await query(urls.engine, 'insert into later values (1); update older set more = 2');
  assert.deepEqual(await query(urls.engine, 'select id, more from older'), [{ id: 1, more: 2 }]);
  const session = { connectionString: urls.engine, applicationName: 'roles' };
  for (const table of ['older', 'later']) {
    await withClient(session, (client) => cannotChangeTables(client, table));
  }
});

test('a second engine on the folder is refused with the process that has it', async () => {
  const engine = startEngineProcess();
  await engine.line('port');
  await assert.rejects(
    start(),
    (error) =>
      error instanceof EmbeddedPostgresError &&
      error.message.includes(`process ${engine.pid}`) &&
      error.message.includes('DATABASE_URL'),
  );
  const second = startEngineProcess();
  assert.match(String((await second.line('refused')).refused), /in use by another engine/);
});

test('a killed engine leaves a server that the next one goes on with', async () => {
  const engine = startEngineProcess();
  const { port } = await engine.line('port');
  const pid = postmaster();
  await engine.end('SIGKILL');
  assert.equal(postmaster(), pid);
  const next = await start();
  assert.equal(postmaster(), pid, logged.join('\n'));
  assert.equal(next.port, port);
});

test('of two engines that start together on a folder one is refused', async () => {
  const engines = [startEngineProcess(), startEngineProcess()];
  const lines = await Promise.all(
    engines.map((engine) => Promise.race([engine.line('port'), engine.line('refused')])),
  );
  assert.deepEqual(
    lines.map((line) => Object.keys(line)[0]).sort(),
    ['port', 'refused'],
    JSON.stringify(lines),
  );
});

test('process ids that belong to strangers by now, in the lock and of the server, do not stop the start', async () => {
  const first = await start();
  await first.stop();
  const lock = { pid: process.pid, start: 'at another time' };
  writeFileSync(path.join(dataDir, 'engine.lock'), JSON.stringify(lock));
  writeFileSync(path.join(first.location, 'postmaster.pid'), `${process.ppid}\n`);
  await start();
});

test('an interrupt from the terminal does not reach the server', async () => {
  const engine = startEngineProcess();
  await engine.line('port');
  if (process.platform === 'linux') {
    const sessionOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[5];
    assert.notEqual(sessionOf(postmaster()!), sessionOf(engine.pid));
  }
  engine.signal('SIGINT');
  assert.equal((await engine.line('answer')).answer, 42);
});

test('a server that dies is brought back on the same port with what was committed', async () => {
  const { connectionString } = await start();
  await query(
    connectionString,
    'drop table if exists kept; create table kept as select 42 as answer',
  );
  const pid = postmaster()!;
  process.kill(pid, 'SIGKILL');
  for (;;) {
    const rows = await query(connectionString, 'table kept').catch(() => undefined);
    if (rows !== undefined) break;
    await wait(10);
  }
  assert.notEqual(postmaster(), pid);
  assert.ok(logged.some((message) => message.includes('died')));
});

test('a database of Postgres 15 works with 15 and is refused by 18', async () => {
  dataDir = newFolder();
  const old = await start(15);
  const rows = await query(old.connectionString, 'show server_version_num');
  assert.match(String(rows[0]!.server_version_num), /^15/);
  await old.stop();
  await assert.rejects(start(), /made by Postgres 15, this program brings 18/);
});

test('under root the database is in its data folder even where its own user has no access to the path', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('not root');
  dataDir = newFolder();
  chmodSync(dataDir, 0o700);
  const first = await start();
  assert.equal(first.location, path.join(realpathSync(dataDir), 'postgres'));
  assert.equal(statSync(first.location).mode & 0o777, 0o700);
  assert.notEqual(postmaster(), undefined);
  await query(first.connectionString, 'create table kept as select 42 as answer');
  await first.stop();
  assert.deepEqual(await query((await start()).connectionString, 'table kept'), [{ answer: 42 }]);
});

test('a database that an earlier version put elsewhere is used there, and said where', async () => {
  dataDir = newFolder();
  const first = await start();
  await first.stop();
  const elsewhere = path.join(realpathSync(newFolder()), 'moved');
  renameSync(first.location, elsewhere);
  writeFileSync(path.join(dataDir, 'postgres.location'), elsewhere);
  const second = await start();
  assert.equal(second.location, elsewhere);
  assert.ok(logged.some((message) => message.includes(elsewhere)));
  await second.stop();
  rmSync(path.dirname(elsewhere), { recursive: true });
  await assert.rejects(start(), /bring it back, or remove that file/);
});
