/** What the list of bulk jobs says about each. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BulkJob } from 'durable-workflow-engine-client';
import { outcomeText } from '../src/lib/outcome-text.ts';
import { scopeText } from '../src/pages/jobs/job-texts.ts';

test('a bulk job names the cause, the sequence, or the number of the instances that it changes', () => {
  const texts = [
    { failure_reason: 'no #', failure_code: 'timeout', states: ['failed'], sequence_name: 'order' },
    { failure_code: 'timeout' },
    { states: ['failed', 'paused'] },
    { ids: ['a'], failure_reason: 'no #', states: ['failed'] },
    { ids: ['a', 'b'], states: ['failed'] },
    {},
  ].map((filter: BulkJob['request']) => scopeText({ request: { filter } }));
  assert.deepEqual(texts, [
    'no # · order',
    'timeout',
    'failed or paused',
    'no # · 1 selected instance',
    '2 selected instances',
    '',
  ]);
});

test('what has become of retried instances is never more than were retried', () => {
  const outcome = { completed: 24, failed: 5, cancelled: 0, open: 22 };
  const text = '51 retried · 24 completed · 5 failed again · 22 running';
  assert.equal(outcomeText({ applied: 51, outcome }), text);
  // The last window is not counted yet.
  assert.equal(outcomeText({ applied: 40, outcome }), text);
  assert.equal(outcomeText({ applied: 2, outcome: null }), '2 retried');
});
