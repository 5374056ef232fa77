/** What stands in the address is what the engine is asked with, for the list and for a change of many alike. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chipsOf,
  filterWords,
  metadataOf,
  selectionOf,
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
  [
    'a sequence and its version',
    { sequence: 'order', version: '3' },
    { sequence: 'order', sequence_version: 3 },
  ],
  [
    'version 0, too',
    { sequence: 'order', version: '0' },
    { sequence: 'order', sequence_version: 0 },
  ],
  [
    'what failed of',
    { failure: 'bank', failure_code: 'timeout', failure_reason: 'order # refused' },
    { failure: 'bank', failure_code: 'timeout', failure_reason: 'order # refused' },
  ],
  ['the namespace', { namespace: 'eu' }, { namespace: 'eu' }],
  ['what it waits for', { waiting_for: 'approval' }, { waiting_for: 'approval' }],
  [
    'when it last changed and when it failed, by age or by instant',
    { changed: '1h', failed_before: '2026-05-03T00:00:00Z', sort: '-changed', columns: 'state' },
    { updated_after: '2026-05-04T09:20:00.000Z', failed_before: '2026-05-03T00:00:00.000Z' },
  ],
  ['an age, to the minute', { created: '1h' }, { created_after: '2026-05-04T09:20:00.000Z' }],
  [
    'instants, in any zone',
    { created_after: '2026-05-01T02:00:00+02:00', updated_before: '2026-05-03T00:00:00Z' },
    { created_after: '2026-05-01T00:00:00.000Z', updated_before: '2026-05-03T00:00:00.000Z' },
  ],
  [
    'an age and an instant: the later one',
    { created: '1h', created_after: '2026-05-04T10:00:00Z' },
    { created_after: '2026-05-04T10:00:00.000Z' },
  ],
  [
    'metadata',
    { metadata: 'customer=4711, channel = web' },
    { metadata: { customer: '4711', channel: 'web' } },
  ],
  ['where the list stands is no filter', { cursor: 'abc' }, {}],
] as const;

for (const [name, address, query] of CASES) {
  test(`instances by the address: ${name}`, () => {
    const selection = selectionOf(address, NOW);
    assert.deepEqual(selection.query, query);
    assert.deepEqual(selection.wrong, {});
  });
}

test('a change of many has the filters of the list, with the name that bodies have for states', () => {
  for (const [, address] of CASES) {
    const { query, bulk } = selectionOf(address, NOW);
    const { state, ...rest } = query;
    assert.deepEqual(bulk, { ...rest, ...(state && { states: state }) });
  }
});

const WRONG = [
  ['a version that is no number', { sequence: 'order', version: 'v2' }, 'version'],
  ['a version with a fraction', { sequence: 'order', version: '1.5' }, 'version'],
  ['a version larger than any', { sequence: 'order', version: '3000000000' }, 'version'],
  ['a version of no sequence', { version: '3' }, 'version'],
  ['a state that there is none of', { state: 'failed,broken' }, 'state'],
  ['a wait that there is none of', { waiting_for: 'godot' }, 'waiting_for'],
  ['an age that is none', { created: 'yesterday' }, 'created'],
  ['an instant that is none', { created_before: 'noon' }, 'created_before'],
  ['metadata without a value', { metadata: 'acme' }, 'metadata'],
  ['a filter that there is none of', { sequence_name: 'order' }, 'sequence_name'],
] as const;

for (const [name, address, where] of WRONG) {
  test(`what cannot be read is told, not left out: ${name}`, () => {
    assert.deepEqual(Object.keys(selectionOf(address, NOW).wrong), [where]);
  });
}

test('what has no field can be taken away, and so can what is wrong and shown by none', () => {
  const times = { updated_after: '2026-05-04', failure_code: 'timeout' };
  const address = { sequence: 'order', version: 'v2', ...times, cursor: 'abc' };
  assert.deepEqual(chipsOf(address, selectionOf(address, NOW).wrong), ['failure_code']);
  const lost = {
    version: '2',
    state: 'broken',
    metadata: 'acme',
    failed_after: 'x',
    order: 'name',
  };
  const chips = chipsOf(lost, selectionOf(lost, NOW).wrong);
  assert.deepEqual(chips, ['version', 'state', 'failed_after', 'order']);
  assert.deepEqual(chipsOf({ state: 'failed' }, {}), []);
});

test('ages are minutes, hours and days', () => {
  assert.equal(sinceOf('15m', NOW)?.toISOString(), '2026-05-04T10:05:00.000Z');
  assert.equal(sinceOf('7d', NOW)?.toISOString(), '2026-04-27T10:20:00.000Z');
  for (const none of ['', '7', 'd', '-7d', '7y']) assert.equal(sinceOf(none, NOW), undefined);
});

test('metadata counts when every pair is whole, and may hold an equals sign', () => {
  assert.deepEqual(metadataOf('query=a=b'), { query: 'a=b' });
  assert.deepEqual(metadataOf('customer=4711, '), { customer: '4711' });
  for (const broken of ['customer', '=4711', ',', 'customer=1, acme', 'customer=1, customer=2']) {
    assert.equal(typeof metadataOf(broken), 'string');
  }
});

test('states are those that are named', () => {
  assert.deepEqual(statesOf({}), []);
  assert.deepEqual(statesOf({ state: 'paused' }), ['paused']);
});

test('a change of many says every filter that it goes by', () => {
  const words = filterWords({ state: 'failed', failure_code: 'timeout', cursor: 'abc' });
  assert.deepEqual(words, [
    ['State', 'failed'],
    ['Failure code', 'timeout'],
  ]);
});
