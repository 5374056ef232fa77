/** One object over another is to every reader what spreading the two into one gives. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sizeWithin } from '../../src/core/expression/bounds.js';
import { follow } from '../../src/core/expression/scope.js';
import type { JsonObject } from '../../src/core/json.js';
import { layered } from '../../src/core/layered.js';
import { check } from '../helpers/properties.js';

const key = fc.oneof(
  fc.constantFrom('a', 'b', '1', '0', '__proto__', 'constructor', 'toJSON', 'length', ''),
  fc.string({ maxLength: 3 }),
);
const object = fc
  .array(fc.tuple(key, fc.jsonValue({ maxDepth: 2 })), { maxLength: 8 })
  .map((entries) => Object.fromEntries(entries) as JsonObject);

test('whatever looks at it sees the merged object', (t) => {
  check(t, 100, fc.tuple(object, object, fc.array(key)), ([under, over, asked]) => {
    const layers = layered(under, over);
    const merged: JsonObject = { ...under, ...over };
    assert.deepEqual(Object.keys(layers), Object.keys(merged));
    assert.equal(JSON.stringify(layers), JSON.stringify(merged));
    assert.deepEqual({ ...layers }, merged);
    assert.deepEqual(sizeWithin(layers, 1_000), sizeWithin(merged, 1_000));
    for (const name of [...asked, ...Object.keys(merged)]) {
      assert.equal(Object.hasOwn(layers, name), Object.hasOwn(merged, name));
      assert.equal(name in layers, name in merged);
      assert.deepEqual(layers[name], merged[name]);
      assert.deepEqual(follow(layers, [name, '0'], 0), follow(merged, [name, '0'], 0));
    }
  });
});

test('a layer lies over a layer', () => {
  const inner = layered({ a: 1, b: 1, c: 1 }, { b: 2 });
  assert.deepEqual({ ...layered(inner, { c: 3 }) }, { a: 1, b: 2, c: 3 });
});

test('looking up a key looks at no other', () => {
  let lists = 0;
  const counted = new Proxy<JsonObject>(
    { a: 1 },
    {
      ownKeys(target) {
        lists += 1;
        return Reflect.ownKeys(target);
      },
    },
  );
  const layers = layered(counted, { item: 2 });
  assert.deepEqual([layers.a, layers.item, layers.b], [1, 2, undefined]);
  assert.equal(lists, 0);
  assert.equal(JSON.stringify([layers, layers]), '[{"a":1,"item":2},{"a":1,"item":2}]');
  assert.equal(lists, 1);
});
