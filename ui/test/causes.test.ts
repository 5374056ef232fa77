/** How groups of failures become causes, and the periods that they are counted in. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FailureGroup } from 'durable-workflow-engine-client';
import { causesOf } from '../src/pages/failures/causes.ts';
import { periodOf, startOf } from '../src/pages/failures/periods.ts';

const group = (more: Partial<FailureGroup>): FailureGroup => ({
  namespace: 'shop',
  sequence_id: 's1',
  sequence_name: 'order',
  version: 1,
  block_id: 'charge',
  handler: 'charge_card',
  code: 'worker_failed',
  reason: 'order # refused',
  count: 1,
  first_at: '2026-01-01T10:00:00.000Z',
  last_at: '2026-01-01T11:00:00.000Z',
  example_instance_id: 'i1',
  example_message: 'order 1 refused',
  counts: [0, 1],
  new: true,
  runs: { finished: 10, failed: 1 },
  ...more,
});

test('groups of several versions and sequences with the same reason are one cause', () => {
  const [cause, ...others] = causesOf([
    group({}),
    group({
      sequence_id: 's2',
      version: 2,
      count: 3,
      counts: [1, 2],
      last_at: '2026-01-01T12:00:00.000Z',
      example_instance_id: 'i2',
    }),
    group({
      sequence_id: 's3',
      sequence_name: 'refund',
      block_id: 'pay',
      runs: { finished: 5, failed: 1 },
    }),
    group({ reason: 'no paper' }),
  ]);
  assert.equal(others.length, 1);
  assert.deepEqual([cause?.count, cause?.counts, cause?.example.id], [5, [1, 4], 'i2']);
  assert.deepEqual(cause?.affected, [
    { name: 'order', versions: [1, 2], blocks: ['charge'], count: 4 },
    { name: 'refund', versions: [1], blocks: ['pay'], count: 1 },
  ]);
  assert.equal(cause?.share, 3 / 25);
});

test('two blocks of a version share its runs, and unknown runs give no share', () => {
  const [cause] = causesOf([group({}), group({ block_id: 'refund' })]);
  assert.equal(cause?.share, 0.2);
  assert.equal(causesOf([group({ runs: null })])[0]?.share, undefined);
  assert.equal(causesOf([group({ new: null })])[0]?.isNew, undefined);
});

test('an unknown period is the last day, and all time has no start', () => {
  assert.equal(periodOf('2w').name, '24h');
  assert.equal(startOf(periodOf('15m'), 900_000), '1970-01-01T00:00:00.000Z');
  assert.equal(startOf(periodOf('all'), 0), undefined);
});
