/** The judge of releases in chaos runs, on rows made by hand. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type RoutedRow, routingViolations } from '../chaos/releases.js';

const RELEASE = '01890a5d-ac96-774b-bcce-b302099a8057';

/** The key is in bucket 13. */
const GOOD: RoutedRow = {
  id: 'i',
  sequence_id: 'candidate',
  key: 'ключ-1',
  state: 'completed',
  release_id: RELEASE,
  release_variant: 'candidate',
  stamp: { release_id: RELEASE, variant: 'candidate' },
  baseline_sequence_id: 'baseline',
  candidate_sequence_id: 'candidate',
  outcome: 'completed candidate',
};

test('an instance on the side of its key, stamped and counted, is as it should be', () => {
  assert.deepEqual(routingViolations(GOOD), []);
  assert.deepEqual(routingViolations({ ...GOOD, state: 'paused', outcome: null }), []);
});

test('an instance on either side is as it should be when it has no key', () => {
  const baseline = {
    ...GOOD,
    key: null,
    sequence_id: 'baseline',
    release_variant: 'baseline',
    stamp: { release_id: RELEASE, variant: 'baseline' },
    outcome: 'completed baseline',
  };
  assert.deepEqual(routingViolations({ ...GOOD, key: null }), []);
  assert.deepEqual(routingViolations(baseline), []);
  assert.equal(routingViolations({ ...baseline, key: GOOD.key }).length, 1);
});

test('each thing that disagrees is told', () => {
  const wrong: Partial<RoutedRow>[] = [
    { release_id: null },
    { key: 'customer-42' },
    { stamp: null },
    { stamp: { release_id: RELEASE, variant: 'baseline' } },
    { outcome: null },
    { outcome: 'failed candidate' },
    { state: 'waiting' },
  ];
  for (const change of wrong) {
    assert.equal(routingViolations({ ...GOOD, ...change }).length, 1, JSON.stringify(change));
  }
  const elsewhere = { ...GOOD, sequence_id: 'baseline', outcome: 'completed baseline' };
  assert.equal(routingViolations(elsewhere).length, 1);
});
