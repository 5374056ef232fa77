/** Values of a text that comes in pieces are counted as those of the whole. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ValueCount } from '../../src/core/json-guard.js';

/** Whether it has more than `most`, in pieces of so many bytes. */
function hasMore(text: string, most: number, piece: number): boolean {
  const bytes = Buffer.from(text);
  const count = new ValueCount(most);
  let isMore = false;
  for (let at = 0; at < bytes.length; at += piece) {
    isMore = count.take(bytes.subarray(at, at + piece));
  }
  return isMore;
}

/** Values and names of members. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  const parts: unknown[] = Array.isArray(value) ? value : Object.entries(value).flat();
  return 1 + parts.reduce<number>((sum, part) => sum + valuesIn(part), 0);
}

test('a text has as many values as what is parsed of it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      const count = valuesIn(value);
      assert.equal(hasMore(text, count, text.length + 1), false);
      assert.equal(hasMore(text, count - 1, Buffer.byteLength(text)), true);
    }),
  );
});

test('strings that are cut anywhere hold no values', () => {
  const text = '{"a":"[,:{\\"],\\\\","b":[1,"\u00fc,",2]}';
  for (let piece = 1; piece < text.length; piece += 1) {
    assert.equal(hasMore(text, 8, piece), false, `${piece}`);
    assert.equal(hasMore(text, 7, piece), true, `${piece}`);
  }
});
