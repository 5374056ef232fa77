/**
 * Runs the test files that are named in the arguments, in that order, which `node --test` would not
 * keep. The exit code is that of the tests; a signal ends the files that run.
 */

import { setMaxListeners } from 'node:events';
import { run } from 'node:test';
import { spec as Spec } from 'node:test/reporters';
import { FILE_TIMEOUT_MS } from './test-watchdog.mjs';

/** Files share two cores and one Postgres: each waits for them, and at times for the clock. */
const FILES_AT_ONCE = 3;

const files = process.argv.slice(2);
const interrupted = new AbortController();
// Each file listens, from the beginning on.
setMaxListeners(0, interrupted.signal);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort());

run({
  files,
  concurrency: FILES_AT_ONCE,
  timeout: FILE_TIMEOUT_MS,
  signal: interrupted.signal,
})
  .on('test:fail', ({ todo }) => {
    if (todo === undefined || todo === false) process.exitCode = 1;
  })
  .compose(new Spec())
  .pipe(process.stdout);
