/** Counts by names: bounded, kept when their thread dies, and added up over the threads. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Meter } from '../../src/metrics/meter.js';
import { NAMES_MAX } from '../../src/metrics/named.js';
import { MetricMemory } from '../../src/metrics.js';

const COMPLETED = 'engine_sequence_instances_completed_total';
const FAILED = 'engine_sequence_instances_failed_total';
const SUCCEEDED = 'engine_handler_attempts_succeeded_total';

const countsOf = (meter: Meter, counter: Parameters<Meter['named']>[0]) =>
  Object.fromEntries(meter.named(counter));

test('each name counts apart, for each counter, and sequences apart from handlers', () => {
  const meter = new Meter();
  meter.countNamed(COMPLETED, 'orders');
  meter.countNamed(COMPLETED, 'orders', 2);
  meter.countNamed(FAILED, 'orders');
  meter.countNamed(COMPLETED, 'größe');
  meter.countNamed(SUCCEEDED, 'charge');
  assert.deepEqual(countsOf(meter, COMPLETED), { other: 0, orders: 3, größe: 1 });
  assert.deepEqual(countsOf(meter, FAILED), { other: 0, orders: 1 });
  assert.deepEqual(countsOf(meter, SUCCEEDED), { other: 0, charge: 1 });
});

test('names beyond the bound count together as other, and so does what has no usable name', () => {
  const meter = new Meter();
  for (let i = 0; i < NAMES_MAX + 5; i++) meter.countNamed(COMPLETED, `s${i}`);
  meter.countNamed(COMPLETED, 's1');
  meter.countNamed(COMPLETED, '');
  meter.countNamed(COMPLETED, 'x'.repeat(2_000));
  const counts = countsOf(meter, COMPLETED);
  assert.equal(Object.keys(counts).length, NAMES_MAX + 1);
  assert.deepEqual([counts.s0, counts.s1, counts.other], [1, 2, 7]);
  assert.equal(counts[`s${NAMES_MAX}`], undefined);
});

test('a successor of the thread counts on under the names it finds', () => {
  const first = new Meter();
  first.countNamed(COMPLETED, 'orders');
  const second = new Meter(first.memory);
  second.countNamed(COMPLETED, 'orders');
  second.countNamed(COMPLETED, 'refunds');
  assert.deepEqual(countsOf(first, COMPLETED), { other: 0, orders: 2, refunds: 1 });
});

test('the threads are added up by name', () => {
  const memory = new MetricMemory(2, 1);
  memory.shards[0]!.countNamed(SUCCEEDED, 'charge', 2);
  memory.shards[1]!.countNamed(SUCCEEDED, 'charge', 3);
  memory.shards[1]!.countNamed(SUCCEEDED, 'refund');
  assert.deepEqual(Object.fromEntries(memory.named(SUCCEEDED)), { other: 0, charge: 5, refund: 1 });
});
