/**
 * Preloaded into every test file. The runner ends a file that takes too long with a signal that the
 * file may have a listener for; a file that is still there afterwards ends itself.
 */

import { isMainThread } from 'node:worker_threads';

/** A file that takes longer hangs: the slowest, the kill loop, needs about a minute. */
export const FILE_TIMEOUT_MS = 480_000;

const PATIENCE_MS = 10_000;

// The runner itself has no such variable, and may run for as long as all files together.
if (process.env.NODE_TEST_CONTEXT !== undefined && isMainThread) {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), FILE_TIMEOUT_MS + PATIENCE_MS).unref();
}
