/** The places of the items of a list in the text of an object. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { listIn } from '../../src/core/json-items.js';

function itemsOf(text: string): unknown[] | undefined {
  return listIn(text, 'list')?.items.map(([from, to]) => JSON.parse(text.slice(from, to)));
}

test('every item of any list is found where it stands', () => {
  const inner = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 });
  const space = fc.constantFrom(undefined, 1, '\t', ' \n\r');
  const law = fc.property(fc.array(fc.jsonValue()), inner, inner, space, (list, a, b, gap) => {
    const text = JSON.stringify({ ...a, list, ...b, list_: [1] }, undefined, gap);
    const expected = JSON.parse(text).list;
    assert.deepEqual(itemsOf(text), Array.isArray(expected) ? expected : undefined);
    const spans = listIn(text, 'list');
    if (spans === undefined) return;
    const [start, end] = spans.list;
    const rest = JSON.parse(`${text.slice(0, start)}null${text.slice(end)}`);
    assert.deepEqual(rest, { ...JSON.parse(text), list: null });
  });
  fc.assert(law, { numRuns: 300 });
});

test('what is no list in an object has no items', () => {
  for (const text of [
    '[]',
    '1',
    '{}',
    '{"list":{"a":[1]}}',
    '{"a":{"list":[1]}}',
    '{"list":"[1]"}',
  ]) {
    assert.equal(itemsOf(text), undefined, text);
  }
  assert.deepEqual(itemsOf(' {"list":[1],"li\\u0073t" : [ 2 , "],}" ] } '), [2, '],}']);
});
