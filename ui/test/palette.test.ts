/** What the palette offers for a text, and how its keys move. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matching, stepFrom } from '../src/app/palette-entries.ts';

const ENTRIES = [
  { key: 'workers', label: 'Workers and queues', words: 'Operate' },
  { key: 'failures', label: 'Failures', words: 'Run' },
  { key: 'start', label: 'Start an instance', words: 'run new' },
];
const found = (query: string) => matching(ENTRIES, query).map(({ key }) => key);

test('an entry is found by the beginnings of its words, in any order', () => {
  assert.deepEqual(found('QUE wor'), ['workers']);
  assert.deepEqual(found('operate'), ['workers']);
  assert.deepEqual(found('ailures'), []);
  assert.deepEqual(found('  '), []);
});

test('entries whose label begins with the text come first', () => {
  assert.deepEqual(found('run'), ['failures', 'start']);
  assert.deepEqual(found('s'), ['start']);
  assert.deepEqual(matching([...ENTRIES, { key: 'runs', label: 'Runs' }], 'run')[0]?.key, 'runs');
});

test('the keys move from entry to entry, and around the end', () => {
  const keys = ['a', 'b', 'c'];
  assert.equal(stepFrom(keys, 'a', 1), 'b');
  assert.equal(stepFrom(keys, 'c', 1), 'a');
  assert.equal(stepFrom(keys, 'a', -1), 'c');
  assert.equal(stepFrom(keys, 'gone', 1), 'a');
  assert.equal(stepFrom(keys, undefined, -1), 'c');
  assert.equal(stepFrom([], undefined, 1), undefined);
});
