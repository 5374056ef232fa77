/**
 * `npm test [-- filter ...]`: install and build when needed, then every test file whose path holds
 * one of the filters, under coverage. `--deep` takes the long forms of what tries many cases. The
 * exit code is that of the tests.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap, root } from './lib/bootstrap.mjs';
import { ownCpu } from './lib/process-cpu.mjs';
import { planTests } from './lib/test-plan.mjs';
import { runUnits } from './lib/test-pool.mjs';
import { Progress } from './lib/test-progress.mjs';

const FOLDERS = ['unit', 'contract', 'database', 'http', 'api', 'survival', 'client', 'cli', 'sim', 'system'];

const COVERAGE = path.join(root, 'coverage');
const RAW_COVERAGE = path.join(COVERAGE, 'tmp');

/** Files wait for one Postgres and at times for the clock: one more than there are processors. */
const AT_ONCE_MAX = 8;
const atOnce = Math.min(AT_ONCE_MAX, availableParallelism() + 1);

await bootstrap();
const filters = process.argv.slice(2).filter((argument) => argument !== '--deep');
if (process.argv.includes('--deep')) process.env.TEST_DEPTH = 'deep';
const files = FOLDERS.flatMap(testFiles).filter(
  (file) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
);
if (files.length === 0) {
  process.stderr.write(`no test file matches ${filters.join(' or ')}\n`);
  process.exit(1);
}

// Whoever interrupts the tests gets their end, not ours: the servers have to be stopped.
const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => interrupted.abort());

rmSync(RAW_COVERAGE, { recursive: true, force: true });
const progress = new Progress(files.length);
process.env.NODE_V8_COVERAGE = RAW_COVERAGE;
try {
  await runTests();
} finally {
  await (await helper('database')).stopSharedServer();
  delete process.env.NODE_V8_COVERAGE;
}
const isReported = interrupted.signal.aborted || !hasCoverage() || (await reportCoverage());
progress.summary(ownCpu());
process.exitCode = progress.hasFailed || interrupted.signal.aborted || !isReported ? 1 : 0;

function testFiles(folder) {
  const relative = path.join('dist/test', folder);
  if (!existsSync(path.join(root, relative))) return [];
  return readdirSync(path.join(root, relative), { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => path.join(relative, name))
    .sort();
}

/** @throws AssertionError when the shared server does not stop cleanly */
async function runTests() {
  const isShared = files.filter(usesSharedServer).length > 1;
  const server = isShared ? await startSharedServer() : undefined;
  const folder = mkdtempSync(path.join(root, 'dist/test-groups-'));
  const { signal } = interrupted;
  try {
    await runUnits(planTests(files, folder), { atOnce, folder, root, signal, on: progress });
  } finally {
    rmSync(folder, { recursive: true });
    await server?.stop();
  }
}

function usesSharedServer(file) {
  return /\b(?:sharedApi|useSharedApi|useTenant)\(\)/.test(
    readFileSync(path.join(root, file), 'utf8'),
  );
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

/** Some files note none, and these may have been all. */
function hasCoverage() {
  return existsSync(RAW_COVERAGE);
}

/** Resolves to whether that worked. */
async function reportCoverage() {
  const reporter = spawn(
    process.execPath,
    [
      path.join(root, 'node_modules/c8/bin/c8.js'),
      'report',
      '--reporter=text-summary',
      '--reporter=lcovonly',
      `--temp-directory=${RAW_COVERAGE}`,
      `--reports-dir=${COVERAGE}`,
      '--include=dist/{src,actors,schema}/**',
    ],
    { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
  );
  const [code] = await once(reporter, 'exit');
  return code === 0;
}
