/** The Map for entries that come and go: what it holds, and what the collector may take. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { ChurningMap } from '../../src/base/churning-map.js';
import { check } from '../helpers/properties.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;

test('a ChurningMap holds what a Map would, in the same order', (t) => {
  const kind = fc.constantFrom('set', 'set', 'set', 'delete', 'delete', 'clear');
  const steps = fc.array(fc.tuple(kind, fc.integer({ min: 0, max: 8 })), { maxLength: 60 });
  check(t, 100, steps, (taken) => {
    const model = new Map<number, object>();
    const map = new ChurningMap<number, object>();
    for (const [word, key] of taken) {
      const value = {};
      if (word === 'set') for (const each of [model, map]) each.set(key, value);
      else if (word === 'delete') assert.equal(map.delete(key), model.delete(key));
      else for (const each of [model, map]) each.clear();
      assert.equal(map.size, model.size);
      assert.equal(map.has(key), model.has(key));
      assert.equal(map.get(key), model.get(key));
      assert.deepEqual([...map], [...model]);
      assert.deepEqual([...map.keys()], [...model.keys()]);
      assert.deepEqual([...map.values()], [...model.values()]);
    }
  });
});

test('a minor collection takes the values that have left a ChurningMap whose table is old', () => {
  const HELD = 64;
  const VALUES = 2_000;
  const WORDS = 1_000;
  const map = new ChurningMap<number, number[]>();
  let next = 0;
  const pass = () => {
    map.set(next, new Array<number>(WORDS).fill(next));
    map.delete(next - HELD);
    next += 1;
  };
  while (next < HELD) pass();
  // The table becomes old.
  collect();
  collect();
  const before = getHeapStatistics().used_heap_size;
  while (next < VALUES) pass();
  collect({ type: 'minor' });
  collect({ type: 'minor' });
  const more = getHeapStatistics().used_heap_size - before;
  const all = VALUES * WORDS * 8;
  assert.ok(more < all / 4, `${more} bytes of ${all} are left`);
});
