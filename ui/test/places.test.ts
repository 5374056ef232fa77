/** The places of findings in a text: each path leads to what it names, or to as much of it as there is. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placesIn } from '../src/pages/sequences/places.ts';

const TEXT = `{
  "name": "hello",
  "version": "1",
  "blocks": [
    { "type": "step", "id": "a", "handler": "nop", "retry": { "initialBackoff": 5 } },
    {
      "type": "parallel",
      "id": "p",
      "branches": [[{ "id": "b" }, { "id": "c", "params": { "a.b": [1, null], "a": { "b": 2 } } }]]
    }
  ],
  "k\\u00e9y": true
}`;

const CASES: readonly (readonly [path: string, marked: string, after?: string])[] = [
  ['', '{'],
  ['name', '"name": "hello"'],
  ['version', '"version": "1"'],
  ['blocks', '"blocks"'],
  ['blocks[0].handler', '"handler": "nop"'],
  ['blocks[0].retry', '"retry"'],
  ['blocks[0].retry.initialBackoff', '"initialBackoff": 5'],
  ['blocks[1].branches[0][1].id', '"id": "c"'],
  ['blocks[1].branches[0][1].params.a.b', '"a.b"'],
  ['blocks[1].branches[0][1].params.a.b[1]', 'null'],
  ['kéy', '"k\\u00e9y": true'],
  ['blocks[1]', '{'],
  ['blocks[1].handler', '{', '\n      "type": "parallel"'],
  ['blocks[7].id', '"blocks"'],
  ['blocksmith', '{', '\n  "name"'],
];

for (const [path, marked, after = ''] of CASES) {
  test(`${path || 'nothing'} is at ${marked}`, () => {
    const { from, to } = placesIn(TEXT)(path);
    assert.equal(TEXT.slice(from, to), marked);
    assert.equal(TEXT.slice(to, to + after.length), after);
  });
}

test('a text that is broken or empty has a place for everything all the same', () => {
  assert.deepEqual(placesIn('')('blocks[0]'), { from: 0, to: 0 });
  const broken = '{ "blocks": [ { "id": , "type": ] }';
  const { from, to } = placesIn(broken)('blocks[0].id');
  assert.ok(from >= 0 && to <= broken.length && from <= to);
});
