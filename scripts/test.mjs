/**
 * `npm test [-- filter ...]`: install and build when needed, then every test file whose path holds
 * one of the filters, under coverage. The exit code is that of the tests.
 */

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap, root } from './lib/bootstrap.mjs';
import { planTests } from './lib/test-plan.mjs';

const FOLDERS = ['unit', 'contract', 'integration', 'sim', 'fuzz', 'chaos'];

const COVERAGE = path.join(root, 'coverage');
const RAW_COVERAGE = path.join(COVERAGE, 'tmp');

await bootstrap();
const filters = process.argv.slice(2);
const files = FOLDERS.flatMap(testFiles).filter(
  (file) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
);
if (files.length === 0) {
  process.stderr.write(`no test file matches ${filters.join(' or ')}\n`);
  process.exit(1);
}

// Whoever interrupts the tests gets their end, not ours: the servers have to be stopped.
let child;
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => (child === undefined ? process.exit(1) : child.kill(signal)));
}

rmSync(RAW_COVERAGE, { recursive: true, force: true });
process.env.NODE_V8_COVERAGE = RAW_COVERAGE;
try {
  process.exitCode = await runTests();
} finally {
  await (await helper('database')).stopSharedServer();
}
delete process.env.NODE_V8_COVERAGE;
const reported = await node(
  path.join(root, 'node_modules/c8/bin/c8.js'),
  'report',
  '--reporter=text-summary',
  '--reporter=lcovonly',
  `--temp-directory=${RAW_COVERAGE}`,
  `--reports-dir=${COVERAGE}`,
  '--include=dist/{src,actors,schema}/**',
);
process.exitCode ||= reported;

function testFiles(folder) {
  const relative = path.join('dist/test', folder);
  if (!existsSync(path.join(root, relative))) return [];
  return readdirSync(path.join(root, relative), { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => path.join(relative, name))
    .sort();
}

/** Resolves to the exit code. @throws AssertionError when the shared server does not stop cleanly */
async function runTests() {
  const isShared = files.filter(usesSharedServer).length > 1;
  const server = isShared ? await startSharedServer() : undefined;
  const groups = mkdtempSync(path.join(root, 'dist/test-groups-'));
  try {
    return await node(
      '--enable-source-maps',
      `--import=${new URL('./lib/test-watchdog.mjs', import.meta.url)}`,
      path.join(root, 'scripts/lib/test-runner.mjs'),
      ...planTests(files, groups),
    );
  } finally {
    rmSync(groups, { recursive: true });
    await server?.stop();
  }
}

function usesSharedServer(file) {
  return readFileSync(path.join(root, file), 'utf8').includes('await sharedApi()');
}

/** One server for all files that stay within their own tenants: starting one takes two seconds. */
async function startSharedServer() {
  const { SHARED_SERVER, startApi } = await helper('api');
  const server = await startApi(SHARED_SERVER);
  process.env.TEST_API_URL = server.engine.url;
  process.env.TEST_API_DATABASE = server.database.connectionString;
  return server;
}

function helper(name) {
  return import(pathToFileURL(path.join(root, `dist/test/helpers/${name}.js`)).href);
}

/** Runs Node with these arguments; resolves to the exit code. */
function node(...args) {
  child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
