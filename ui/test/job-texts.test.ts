/** What the list of bulk jobs says about each. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BulkJob } from 'durable-workflow-engine-client';
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
