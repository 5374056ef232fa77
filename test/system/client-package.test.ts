/**
 * The package of the client as a stranger gets it: what is in it, that it needs nothing but what all platforms have,
 * and that it works from a folder without the repository. The long form lets npm install it beside the server.
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { useSharedApi } from '../helpers/api.js';
import { newFolder } from '../helpers/database.js';
import { isDeep } from '../helpers/depth.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NAME = 'durable-workflow-engine-client';
const run = promisify(execFile);

const api = useSharedApi();
const folder = newFolder();
const home = path.join(folder, 'home');
const installed = path.join(home, 'node_modules', NAME);
let tarball: string;
let files: readonly string[];

before(async () => {
  // Built beside the checkout, whose own build others are running.
  const source = path.join(folder, 'client');
  mkdirSync(source);
  for (const name of ['src', 'package.json', 'tsconfig.json', 'README.md', 'LICENSE']) {
    cpSync(path.join(ROOT, 'client', name), path.join(source, name), { recursive: true });
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: source,
  });
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('['))) as [
    { filename: string; files: { path: string }[] },
  ];
  files = packed.files.map((file) => file.path);
  mkdirSync(installed, { recursive: true });
  writeFileSync(path.join(home, 'package.json'), '{"type": "module"}');
  tarball = path.join(folder, packed.filename);
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
});
after(() => rmSync(folder, { recursive: true }));

test('the package holds modules and their types, its licence and its page, and nothing else', () => {
  const code = ['dist/index.js', 'dist/index.d.ts', 'dist/testing/index.js'];
  for (const wanted of [...code, 'README.md', 'LICENSE']) assert.ok(files.includes(wanted), wanted);
  const others = files.filter(
    (file) => !/^(?:dist\/.+\.(?:js|d\.ts)|README\.md|LICENSE|package\.json)$/.test(file),
  );
  assert.deepEqual(others, []);
});

test('the package has the version of the server, and needs no other package', () => {
  const manifest = (place: string) => JSON.parse(readFileSync(path.join(ROOT, place), 'utf8'));
  const { version } = manifest('package.json');
  const client = manifest('client/package.json');
  assert.equal(client.version, version);
  assert.deepEqual(client.peerDependencies, { 'durable-workflow-engine': version });
  assert.equal(client.dependencies, undefined);
});

test('only what starts servers for tests uses anything of Node', () => {
  const modules = readdirSync(path.join(installed, 'dist'), { recursive: true, encoding: 'utf8' });
  const using = modules
    .filter((name) => name.endsWith('.js') && !name.startsWith('testing/'))
    .filter((name) => {
      const text = readFileSync(path.join(installed, 'dist', name), 'utf8');
      const imports = [...text.matchAll(/(?<![.\w'/])(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)];
      const foreign = imports.some(([, from = '']) => !from.startsWith('.'));
      return foreign || /\b(?:process|Buffer|require|__dirname)\b[.(]/.test(text);
    });
  assert.deepEqual(using, []);
});

test('the package runs a sequence from a folder without the repository', async () => {
  const program = `
    import { Client } from '${NAME}';
    const client = new Client(JSON.parse(process.env.SETTINGS));
    await client.sequences.create({ name: 'greet', version: 1, blocks: [
      { type: 'step', id: 'hello', handler: 'transform', params: { to: '{{ context.data.name }}' } },
    ] });
    const { outputs } = await client.instances.run('greet', { name: 'Ada' });
    console.log(outputs.hello.to);
  `;
  const settings = {
    url: api.url,
    apiKey: DEFAULT_API_KEY,
    tenant: `client-package-${process.pid}`,
  };
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
    cwd: home,
    env: { PATH: process.env.PATH, SETTINGS: JSON.stringify(settings) },
  });
  assert.equal(stdout, 'Ada\n');
});

test('npm installs both packages, and a worker runs on the server that its test starts', async (t) => {
  if (!isDeep) return t.skip('npm takes half a minute, and may need a network');
  const place = path.join(folder, 'installed');
  mkdirSync(place);
  // The build is there; the script that makes one would build into what other tests are running.
  const flags = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout: packed } = await run('npm', flags, { cwd: ROOT });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  const install = ['install', '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', [...install, path.join(folder, filename), tarball], { cwd: place });
  const program = path.join(place, 'program.mjs');
  writeFileSync(
    program,
    `
    import { sequence, Worker } from '${NAME}';
    import { startServer } from '${NAME}/testing';
    const { client, stop } = await startServer();
    const worker = new Worker(client, {
      handlers: { greet: ({ params }) => ({ text: 'Hello, ' + params.name }) },
    });
    await worker.start();
    const hello = sequence('hello').step('greet', {
      handler: 'greet',
      params: ({ input }) => ({ name: input.name }),
    });
    await hello.apply(client);
    const { outputs } = await client.instances.run(hello, { name: 'Ada' });
    console.log(outputs.greet.text);
    await worker.stop();
    await stop();
  `,
  );
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, XDG_CACHE_HOME: path.join(folder, 'cache') };
  const { stdout } = await run(process.execPath, [program], { cwd: place, env });
  assert.equal(stdout, 'Hello, Ada\n');
});

test('its types are those that a strict program is checked by', async () => {
  const source = `
    import { Client } from '${NAME}';
    const client = new Client({ url: 'http://localhost:8080' });
    const { state } = await client.instances.get('i');
    export const isOver: boolean = state === 'completed';
    // @ts-expect-error a state that does not exist
    export const isDone: boolean = state === 'done';
  `;
  writeFileSync(path.join(home, 'program.ts'), source);
  mkdirSync(path.join(home, 'node_modules/@types'), { recursive: true });
  for (const name of ['@types/node', 'undici-types', 'typescript']) {
    const place = path.join(home, 'node_modules', name);
    symlinkSync(path.join(ROOT, 'node_modules', name), place);
  }
  const compiler = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  const flags = '--noEmit --strict --module nodenext --target es2022 --types node'.split(' ');
  await run(process.execPath, [compiler, ...flags, 'program.ts'], { cwd: home });
});
