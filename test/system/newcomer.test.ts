/**
 * The engine as a newcomer has it: the package in a folder without the repository, the demo, and the commands of the
 * manual as they are pasted.
 *
 * Cost: 45 s, since it runs the commands of the documents.
 */

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findPostmaster, stopServer } from '../../src/server/embedded-server.js';
import { type Api, SHARED_MASTER_KEY, startApi, step } from '../helpers/api.js';
import { column } from '../helpers/columns.js';
import { newFolder, startPostgres, type TestPostgres } from '../helpers/database.js';
import { isDeep } from '../helpers/depth.js';
import { hasProgram, type Place, pages, ROOT, runPages } from '../helpers/docs.js';
import { DEFAULT_API_KEY, freePort } from '../helpers/engine.js';

const NAME = 'durable-workflow-engine';
const run = promisify(execFile);

// ---------------------------------------------------------------- the package

const folder = realpathSync(newFolder());
let tarball: string;
let files: readonly string[];

before(async () => {
  // The build is there; the script that makes one would build into what other tests are running.
  const flags = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await run('npm', flags, { cwd: ROOT });
  const [packed] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  tarball = path.join(folder, packed.filename);
  files = packed.files.map((file) => file.path);
});
after(() => rmSync(folder, { recursive: true }));

test('the package holds the program, its licences and its documentation, and nothing else', () => {
  for (const wanted of [
    ...['LICENSE', 'NOTICE', 'THIRD-PARTY-LICENSES.txt', 'README.md', 'CHANGELOG.md'],
    ...['package.json', 'dist/server/cli.js', 'src/db/migrations/0000_engine.sql'],
    ...['docs/openapi.json', 'docs/reference/README.md', 'dist/ui/index.html'],
    'dist/swagger-ui/swagger-ui-bundle.js',
  ]) {
    assert.ok(files.includes(wanted), wanted);
  }
  const others = files.filter(
    (file) =>
      !/^(?:dist\/server\/[^/]+\.js|dist\/(?:swagger-)?ui\/.+|src\/(?:cluster|db\/migrations)\/\w+\.sql|docs\/.+|[A-Z-]+(?:\.md|\.txt)?|package\.json)$/.test(
        file,
      ),
  );
  assert.deepEqual(others, []);
});

test('no file of the package names a folder of this machine', () => {
  const checkout = path.resolve(ROOT);
  const naming = files.filter((file) =>
    readFileSync(path.join(ROOT, file), 'utf8').includes(checkout),
  );
  assert.deepEqual(naming, []);
});

test('the command of the package starts a server in a folder without the repository', async () => {
  const home = path.join(folder, 'linked');
  const installed = path.join(home, 'node_modules', NAME);
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
  for (const name of readdirSync(path.join(ROOT, 'node_modules'))) {
    symlinkSync(path.join(ROOT, 'node_modules', name), path.join(home, 'node_modules', name));
  }
  const { bin } = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')) as {
    bin: Record<string, string>;
  };
  const program = [process.execPath, path.join(installed, bin[NAME] ?? '')];
  await startsAndStops(home, [...program, 'start']);
  await developsIn(home, program);
});

test('npm installs the package with all that it needs, and its command starts a server', async (t) => {
  if (!isDeep) return t.skip('npm takes half a minute, and may need a network');
  const home = path.join(folder, 'installed');
  mkdirSync(home);
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball], {
    cwd: home,
  });
  await startsAndStops(home, [path.join(home, 'node_modules/.bin', NAME), 'start']);
  await developsIn(home, ['npx', NAME]);
});

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Resolves with the program, its end and its output, once it has printed this. It has a group of its own, since npx
 * has the program as its child.
 */
async function startUntil(
  printed: string,
  home: string,
  [program = '', ...args]: readonly string[],
  more: Env,
) {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, ...more };
  const child = spawn(program, args, { cwd: home, env, detached: true });
  let output = '';
  const isThere = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8');
        if (output.includes(printed)) resolve();
      });
    }
  });
  const closed = once(child, 'close');
  await Promise.race([isThere, closed]);
  return { child, closed, output: () => output, env };
}

/** On the embedded database under the folder itself, which is where the program is told nothing else. */
async function startsAndStops(home: string, command: readonly string[]): Promise<void> {
  const address = { ENGINE_HTTP_ADDR: '127.0.0.1:0' };
  const { child, closed, output } = await startUntil('"msg":"ready"', home, command, address);
  const [, url = ''] = /"url":"([^"]+)"/.exec(output()) ?? [];
  assert.notEqual(url, '', output());
  const key = readFileSync(path.join(home, 'data/root-key'), 'utf8').trim();
  const headers = { 'x-api-key': key, 'x-tenant-id': 'demo' };
  for (const address of ['/api/v1/instances', '/swagger-ui', '/swagger-ui/swagger-ui-bundle.js']) {
    const reply = await fetch(`${url}${address}`, { headers });
    assert.equal(reply.status, 200, address);
    // Until a large body is read, its connection stays open, even behind the end of the server.
    await reply.arrayBuffer();
  }
  child.kill('SIGTERM');
  assert.deepEqual(await closed, [0, null], output());
  assert.ok(existsSync(path.join(home, 'data/postgres/PG_VERSION')));
}

/** `dev`, as a newcomer says it: a definition is saved, and an instance of it runs to its end. */
async function developsIn(home: string, command: readonly string[]): Promise<void> {
  mkdirSync(path.join(home, 'sequences'));
  writeFileSync(
    path.join(home, 'sequences/hello.yaml'),
    'name: hello\nblocks:\n  - { type: step, id: greet, handler: log, params: { message: hi } }\n',
  );
  const dev = [...command, 'dev', '--port', '0'];
  const config = { XDG_CONFIG_HOME: home };
  const { child, closed, output, env } = await startUntil('hello v1: created', home, dev, config);
  const [, url = ''] = /ENGINE_URL=(\S+)/.exec(output()) ?? [];
  assert.notEqual(url, '', output());
  const [program = '', ...args] = [...command, 'instances', 'start', 'hello', '--wait'];
  const { stdout } = await run(program, args, {
    cwd: home,
    env: { ...env, ENGINE_URL: url, ENGINE_TENANT: 'demo' },
  });
  assert.match(stdout, /completed/);
  process.kill(-(child.pid ?? 0), 'SIGINT');
  await closed;
}

// ---------------------------------------------------------------- the demo

const DEMO = fileURLToPath(new URL('../../examples/demo.js', import.meta.url));

test('the demo survives its crash, says what that did, and fits 80 columns', async () => {
  const { stdout } = await run(process.execPath, [DEMO, '--kill']);
  const seen = stdout.split('\n').filter((line) => line.length > 80);
  assert.deepEqual(seen, []);
  assert.match(stdout, /^every order is right$/m);
  const told = /(\d+) steps had ended before it: (\d+) are as they were, (\d+) ran again/.exec(
    stdout,
  );
  assert.ok(told, stdout);
  const [, ended, kept, again] = told.map(Number);
  assert.ok((ended ?? 0) >= 2, stdout);
  assert.deepEqual([kept, again], [ended, 0]);
  assert.match(
    stdout,
    /^ {2}order-100\d was being charged: that try was reported to the new server$/m,
  );
});

// ---------------------------------------------------------------- pages that start a server

/** Those that start a server themselves. */
const STARTING = pages().filter(({ fences }) =>
  fences.some(({ marks: [mark] }) => mark === 'server'),
);

/** Of the terminal that they are pasted into. */
const COLUMNS = 80;

/**
 * A folder in which `npm start` starts the server that was built for the tests: without a look at the
 * sources, since a build would take it away from the others that run.
 */
async function checkout(t: TestContext): Promise<Required<Place>> {
  const folder = newFolder();
  t.after(async () => {
    const left = findPostmaster(path.join(folder, 'data/postgres'));
    if (left !== undefined) await stopServer(left, 'immediate');
    rmSync(folder, { recursive: true });
  });
  symlinkSync(path.join(ROOT, 'package.json'), path.join(folder, 'package.json'));
  mkdirSync(path.join(folder, 'scripts'));
  const server = JSON.stringify(path.join(ROOT, 'dist/server/main.js'));
  writeFileSync(path.join(folder, 'scripts/start.mjs'), `await import(${server});\n`);
  const port = await freePort();
  const env = {
    ENGINE_HTTP_ADDR: `127.0.0.1:${port}`,
    ENGINE_SHARDS: '1',
    npm_config_update_notifier: 'false',
  };
  return { folder, env, url: `http://localhost:${port}`, receiverPort: await freePort() };
}

describe('the commands of these pages work from the first to the last, and give what is shown', {
  concurrency: true,
}, () => {
  for (const { file } of STARTING) {
    test(file, async (t) => {
      const place = await checkout(t);
      const wrong = await runPages([file], place);
      assert.ok(wrong === undefined, `${wrong}\n${serverLog(place)}`);
    });
  }
});

const serverLog = ({ folder }: Place) => readFileSync(path.join(folder, 'server.log'), 'utf8');

test('their lines fit into a terminal', () => {
  const long = STARTING.flatMap(({ file, fences }) =>
    fences
      .flatMap(({ text }) => text.split('\n'))
      .filter((line) => line.length > COLUMNS)
      .map((line) => `${file}: ${line}`),
  );
  assert.deepEqual(long, []);
});

test('the README and the tutorial are such pages', () => {
  assert.deepEqual(column(STARTING, 'file'), ['README.md', 'docs/tutorial.md']);
});

// ---------------------------------------------------------------- pages for a server that runs

/**
 * Of the blocks that are marked `sh run`, each of which names the programs that it needs; where one is missing, the
 * block is left out. In this order: what one page makes, a later one may use.
 */
const OPERATING = 'deploy backup upgrade sizing managed-postgres alerts troubleshooting';
const PAGES = [
  ...OPERATING.split(' ').map((name) => `operate/${name}`),
  ...[
    'releases',
    'secrets',
    'triggers',
    'events',
    'providers',
    'idempotency',
    'money',
    'concurrency',
    'push-workers',
    'search',
    'actions',
    'reference/instances',
    'reference/workers',
  ],
].map((name) => `docs/${name}.md`);

/** The page whose function and variables all of them use. */
const SAMPLES = 'docs/README.md';

/** The tenant that every sample names. */
const TENANT = 'demo';

/** Old enough for the `pg_dump` of most machines. */
const POSTGRES_MAJOR = 15;

describe('the commands of the manual', () => {
  let postgres: TestPostgres;
  let api: Api;
  let folder: string;
  let env: Record<string, string>;

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'docs-commands-'));
    postgres = await startPostgres({ major: POSTGRES_MAJOR });
    const database = await postgres.createDatabase();
    api = await startApi({ database, env: { ENGINE_ENCRYPTION_KEY: SHARED_MASTER_KEY } });
    env = {
      KEY: DEFAULT_API_KEY,
      DATABASE_URL: database.connectionString,
      ADMIN_URL: postgres.connectionString,
      RESTORED_URL: postgres.connectionString.replace(/\/postgres$/, '/restored'),
      ...(await tellStory()),
    };
  });
  after(async () => {
    await api.stop();
    await postgres.stop();
    rmSync(folder, { recursive: true });
  });

  /** An instance that waits for the worker with its task, one that has failed, and a schedule. */
  async function tellStory(): Promise<{ ID: string; FAILED: string; TASK: string }> {
    const tenant = api.tenant(TENANT);
    const sequence = await tenant.sequence([step('only', 'decide')]);
    const waiting = await tenant.create(sequence);
    const task = await tenant.task('decide');
    const failed = await tenant.run([step('only', 'fail')]);
    await tenant.until(failed, 'failed');
    const schedule = { ...tenant.creation(sequence), cron_expr: '0 0 9 1 1 ? *' };
    assert.equal((await tenant.post('/cron', schedule)).status, 201);
    return { ID: waiting, FAILED: failed, TASK: task.id };
  }

  test('no page with such commands is left out', () => {
    const marked = pages().filter(({ fences }) =>
      fences.some(({ marks: [mark] }) => mark === 'run'),
    );
    const isStarting = ({ fences }: (typeof marked)[number]) =>
      fences.some(({ marks: [mark] }) => mark === 'server');
    const found = marked.filter((found) => !isStarting(found)).map(({ file }) => file);
    assert.deepEqual(found.sort(), [SAMPLES, ...PAGES].sort());
  });

  describe('the commands of each page work, and their answers are what it says', () => {
    for (const file of PAGES) {
      test(file, async () => {
        assert.equal(await runPages([SAMPLES, file], { folder, env, url: api.url }), undefined);
      });
    }

    test('an engine that is started on the restored database serves what was dumped', async (t) => {
      if (!hasProgram('pg_dump')) return t.skip('there is no pg_dump on this machine');
      const { RESTORED_URL = '', ID = '' } = env;
      const database = { ...api.database, connectionString: RESTORED_URL };
      const restored = await startApi({ database });
      t.after(() => restored.stop());
      assert.equal((await restored.tenant(TENANT).instance(ID)).state, 'waiting');
    });
  });
});
