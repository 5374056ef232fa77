/** Entry of each process of test files: runs the files of its arguments one after the other, each as a suite. */

import { after, describe } from 'node:test';
import { enginesStarted } from '../../dist/test/helpers/engine.js';
import { cpuSeconds } from './test-report.mjs';

const now = () => [performance.now() / 1_000, cpuSeconds(), enginesStarted()];

for (const file of process.argv.slice(2)) {
  await describe(file, async () => {
    const start = now();
    await import(`../../dist/test/${file.replace(/\.ts$/, '.js')}`);
    // Registered last, to run after the hooks of the file, which stop what it has started.
    after(() => {
      const cost = now().map((value, at) => Number((value - start[at]).toFixed(1)));
      process.send(['cost', [file], cost]);
    });
  });
}
