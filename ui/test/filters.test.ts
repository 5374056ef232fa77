/** What stands in the address is what the engine is asked with, for the list and for a change of many alike. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bulkFilterOf,
  listQueryOf,
  metadataOf,
  sinceOf,
  statesOf,
} from '../src/pages/instances/filters.ts';

const NOW = Date.parse('2026-05-04T10:20:30.456Z');

const CASES = [
  ['nothing asks for all', {}, {}],
  [
    'several states, in the order of the page',
    { state: 'failed,running' },
    { state: ['running', 'failed'] },
  ],
  ['words that are no states count for nothing', { state: 'broken' }, {}],
  [
    'a sequence and its version',
    { sequence: 'order', version: '3' },
    { sequence: 'order', sequence_version: 3 },
  ],
  ['a version without a sequence says nothing', { version: '3' }, {}],
  [
    'what failed of',
    { failure: 'bank', failure_code: 'timeout', failure_reason: 'order # refused' },
    { failure: 'bank', failure_code: 'timeout', failure_reason: 'order # refused' },
  ],
  ['what it waits for', { waiting_for: 'approval' }, { waiting_for: 'approval' }],
  ['a wait that there is none of', { waiting_for: 'godot' }, {}],
  ['an age, to the minute', { created: '1h' }, { created_after: '2026-05-04T09:20:00.000Z' }],
  [
    'metadata',
    { metadata: 'customer=4711, channel = web' },
    { metadata: { customer: '4711', channel: 'web' } },
  ],
  ['where the list stands is no filter', { cursor: 'abc' }, {}],
] as const;

for (const [name, address, query] of CASES) {
  test(`instances by the address: ${name}`, () => {
    assert.deepEqual(listQueryOf(address, NOW), query);
  });
}

test('a change of many has the filters of the list, with the name that bodies have for states', () => {
  for (const [, address] of CASES) {
    const { state, ...rest } = listQueryOf(address, NOW);
    assert.deepEqual(bulkFilterOf(address, NOW), { ...rest, ...(state && { states: state }) });
  }
});

test('ages are minutes, hours and days', () => {
  assert.equal(sinceOf('15m', NOW), '2026-05-04T10:05:00.000Z');
  assert.equal(sinceOf('7d', NOW), '2026-04-27T10:20:00.000Z');
  for (const none of [undefined, '', '7', 'd', '-7d', '7y'])
    assert.equal(sinceOf(none, NOW), undefined);
});

test('metadata counts once a pair is whole, and may hold an equals sign', () => {
  assert.equal(metadataOf('customer'), undefined);
  assert.equal(metadataOf(''), undefined);
  assert.deepEqual(metadataOf('query=a=b'), { query: 'a=b' });
});

test('states are those that are named', () => {
  assert.deepEqual(statesOf({}), []);
  assert.deepEqual(statesOf({ state: 'paused' }), ['paused']);
});
