/** How an engine tells how far its writer is behind. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WriterLag } from '../../src/cluster/writer-lag.js';

test('lag is what waits at the rate of late, and the time without a commit while there is none', () => {
  const readings = [
    { at: 0, backlog: 0, committed: 0 },
    { at: 1_000, backlog: 0, committed: 50 },
    { at: 2_000, backlog: 20, committed: 150 },
    { at: 3_000, backlog: 20, committed: 150 },
    { at: 4_000, backlog: 20, committed: 150 },
    { at: 5_000, backlog: 0, committed: 170 },
  ];
  let at = 0;
  const lag = new WriterLag(() => readings[at++]!);
  assert.deepEqual(
    readings.slice(1).map(() => lag.ms()),
    [0, 200, 1_000, 2_000, 0],
  );
});
