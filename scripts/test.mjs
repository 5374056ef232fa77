/**
 * `npm test [-- filter ...]`: install and build when needed, then every test file whose path holds
 * one of the filters, under coverage. Node 20 takes no globs, so the files are listed here. The
 * exit code is that of the tests.
 */

import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap, root } from './lib/bootstrap.mjs';
import { FILE_TIMEOUT_MS } from './lib/test-watchdog.mjs';

const FOLDERS = ['unit', 'contract', 'integration', 'sim', 'fuzz', 'chaos'];

/** Files share one Postgres and mostly wait for it; more at once only makes timings unsteady. */
const FILES_AT_ONCE = 2;

await bootstrap();
const filters = process.argv.slice(2);
const files = FOLDERS.flatMap(testFiles).filter(
  (file) => filters.length === 0 || filters.some((filter) => file.includes(filter)),
);
if (files.length === 0) {
  process.stderr.write(`no test file matches ${filters.join(' or ')}\n`);
  process.exit(1);
}

try {
  process.exitCode = await runTests(files);
} finally {
  await stopTestServer();
}

function testFiles(folder) {
  const relative = path.join('dist/test', folder);
  if (!existsSync(path.join(root, relative))) return [];
  return readdirSync(path.join(root, relative), { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => path.join(relative, name))
    .sort();
}

/** Resolves to the exit code; an interrupt is passed on, and the tests' answer to it awaited. */
function runTests(files) {
  const coverage = [
    path.join(root, 'node_modules/c8/bin/c8.js'),
    '--reporter=text-summary',
    '--reporter=lcovonly',
    '--reports-dir=coverage',
    '--include=dist/{src,actors,schema}/**',
  ];
  const runner = [
    '--enable-source-maps',
    `--import=${new URL('./lib/test-watchdog.mjs', import.meta.url)}`,
    '--test',
    '--test-reporter=spec',
    `--test-concurrency=${FILES_AT_ONCE}`,
    `--test-timeout=${FILE_TIMEOUT_MS}`,
  ];
  const child = spawn(process.execPath, [...coverage, process.execPath, ...runner, ...files], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const passOn = (signal) => child.kill(signal);
  process.on('SIGINT', passOn).on('SIGTERM', passOn);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** The files share one Postgres server that outlives each of them; the last one out ends it. */
async function stopTestServer() {
  const helper = path.join(root, 'dist/test/helpers/database.js');
  const { stopSharedServer } = await import(pathToFileURL(helper).href);
  await stopSharedServer();
}
