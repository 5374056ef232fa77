/** Entry of each process of test files: runs the files of its arguments one after the other, each as a suite. */

import { after, describe } from 'node:test';
import { cpuSeconds } from '../../dist/test/helpers/cpu-time.js';
import { openNow, serversStarted, untilClosed } from './left-behind.mjs';

const now = () => [performance.now() / 1_000, cpuSeconds(), serversStarted()];
let isOver = false;
// A test that waits for what never comes has ended the run: the files behind it are for another process.
process.once('beforeExit', () => (isOver = true));
// A death by signal runs no listener of `exit`, which end what the tests have started.
process.once('SIGTERM', () => process.exit(143));

for (const file of process.argv.slice(2)) {
  if (isOver) break;
  await describe(file, async () => {
    process.send(['begin', [file]]);
    const [start, open] = [now(), openNow()];
    await import(`../../dist/test/${file.replace(/\.ts$/, '.js')}`);
    // Registered last, to run after the hooks of the file, which stop what it has started.
    after(async () => {
      const cost = now().map((value, at) => Number((value - start[at]).toFixed(1)));
      process.send(['cost', [file], cost]);
      await untilClosed(open);
    });
  });
}
// With something open a process has no end by itself, at which it tells what has failed behind a test.
setTimeout(() => process.emit('beforeExit'), 5_000).unref();
setTimeout(() => process.exit(1), 6_000).unref();
