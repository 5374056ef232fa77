/**
 * The package as a stranger gets it: what is in it, that nothing of this machine is, and that its command
 * starts a server in an empty folder. Its dependencies are those of the checkout; the long form lets npm
 * install all of it.
 */

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { isDeep } from '../helpers/depth.js';
import { makeDataDir } from '../helpers/engine.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NAME = 'durable-workflow-engine';
const run = promisify(execFile);

const folder = realpathSync(makeDataDir());
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
  ]) {
    assert.ok(files.includes(wanted), wanted);
  }
  const others = files.filter(
    (file) =>
      !/^(?:dist\/server\/[^/]+\.js|dist\/ui\/.+|src\/(?:cluster|db\/migrations)\/\w+\.sql|docs\/.+|[A-Z-]+(?:\.md|\.txt)?|package\.json)$/.test(
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

/** On the embedded database under the folder itself, which is where the program is told nothing else. */
async function startsAndStops(
  home: string,
  [program = '', ...args]: readonly string[],
): Promise<void> {
  const inherited = Object.entries(process.env).filter(([name]) => /^(PATH|HOME)$/.test(name));
  const child = spawn(program, args, {
    cwd: home,
    env: { ...Object.fromEntries(inherited), ENGINE_HTTP_ADDR: '127.0.0.1:0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const isReady = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8');
        if (output.includes('"msg":"ready"')) resolve();
      });
    }
  });
  const closed = once(child, 'close');
  await Promise.race([isReady, closed]);
  const [, url = ''] = /"url":"([^"]+)"/.exec(output) ?? [];
  assert.notEqual(url, '', output);
  const key = readFileSync(path.join(home, 'data/root-key'), 'utf8').trim();
  const headers = { 'x-api-key': key, 'x-tenant-id': 'demo' };
  for (const address of ['/api/v1/instances', '/swagger-ui', '/swagger-ui/swagger-ui-bundle.js']) {
    assert.equal((await fetch(`${url}${address}`, { headers })).status, 200, address);
  }
  child.kill('SIGTERM');
  assert.deepEqual(await closed, [0, null], output);
  assert.ok(existsSync(path.join(home, 'data/postgres/PG_VERSION')));
}

/** `dev`, as a newcomer says it: a definition is saved, and an instance of it runs to its end. */
async function developsIn(home: string, [program = '', ...args]: readonly string[]): Promise<void> {
  const inherited = Object.entries(process.env).filter(([name]) => /^(PATH|HOME)$/.test(name));
  const env = { ...Object.fromEntries(inherited), XDG_CONFIG_HOME: home };
  mkdirSync(path.join(home, 'sequences'));
  writeFileSync(
    path.join(home, 'sequences/hello.yaml'),
    'name: hello\nblocks:\n  - { type: step, id: greet, handler: log, params: { message: hi } }\n',
  );
  // A group of its own: npx has the program as its child.
  const child = spawn(program, [...args, 'dev', '--port', '0'], { cwd: home, env, detached: true });
  let output = '';
  const isApplied = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8');
        if (output.includes('hello v1: created')) resolve();
      });
    }
  });
  const closed = once(child, 'close');
  await Promise.race([isApplied, closed]);
  const [, url = ''] = /ENGINE_URL=(\S+)/.exec(output) ?? [];
  assert.notEqual(url, '', output);
  const start = [...args, 'instances', 'start', 'hello', '--wait'];
  const { stdout } = await run(program, start, {
    cwd: home,
    env: { ...env, ENGINE_URL: url, ENGINE_TENANT: 'demo' },
  });
  assert.match(stdout, /completed/);
  process.kill(-(child.pid ?? 0), 'SIGINT');
  await closed;
}
