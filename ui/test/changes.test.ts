/** What is on the screen must be read again after whatever changed it, and only then. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Changes } from '../src/api/changes.ts';

const AT = 1_000_000;

test('a read is behind when it was begun before a change that it shows', () => {
  const changes = new Changes();
  changes.note('a', AT);
  assert.equal(changes.isBehind('all', AT - 1), true);
  assert.equal(changes.isBehind('a', AT - 1), true);
  assert.equal(changes.isBehind('b', AT - 1), false);
});

test('a read that was begun just after a change may not show all that comes of it', () => {
  const changes = new Changes();
  changes.note('a', AT);
  assert.equal(changes.isBehind('a', AT + 100), true);
  assert.equal(changes.isBehind('a', AT + 10_000), false);
});

test('a read that follows no changes is never behind, and nothing is before the first change', () => {
  const changes = new Changes();
  assert.equal(changes.isBehind('all', 0), false);
  changes.note('a', AT);
  assert.equal(changes.isBehind(undefined, 0), false);
});

test('of very many instances the ones that changed last are remembered', () => {
  const changes = new Changes();
  for (let n = 0; n < 20_000; n++) changes.note(`instance ${n}`, AT + n);
  assert.equal(changes.isBehind('instance 19999', AT), true);
  assert.equal(changes.isBehind('instance 0', AT), false);
});
