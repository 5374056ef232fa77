/** Patterns of rate limits: which keys match, and which pattern is the most specific. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { limitFor } from '../../src/core/rate-patterns.js';
import { byDepth } from '../helpers/depth.js';
import { check } from '../helpers/properties.js';

const found = (key: string, ...limits: readonly string[]) =>
  limitFor(
    limits.map((limit_key) => ({ limit_key })),
    key,
  )?.limit_key;

test('a star stands for any text, also for none, and everything else for itself', () => {
  const matching = [
    ['*', ''],
    ['*', 'a\nb'],
    ['a*', 'a'],
    ['*a', 'ba'],
    ['a*b*c', 'abc'],
    ['a*b*c', 'a-b-b-c'],
    ['a*a', 'aa'],
    ['**', 'x'],
    ['a.*', 'a.b'],
    ['a*', 'a*'],
  ] as const;
  for (const [pattern, key] of matching) assert.equal(found(key, pattern), pattern, key);
  const others = [
    ['a*a', 'a'],
    ['a*b*c', 'acb'],
    ['a*bc*c', 'abc'],
    ['a.*', 'ab'],
    ['A*', 'a'],
    ['a*', 'ba'],
  ] as const;
  for (const [pattern, key] of others) assert.equal(found(key, pattern), undefined, key);
});

test('the own limit comes first, then the longest literal text, then the order of texts', () => {
  assert.equal(found('abc', '*', 'abc', 'ab*'), 'abc');
  assert.equal(found('abc', '*', 'ab*', 'a*', 'x*'), 'ab*');
  assert.equal(found('abc', 'a*c', 'ab*', '*bc'), '*bc');
  assert.equal(found('abc', 'abd', 'b*'), undefined);
});

test('a pattern matches exactly the keys that its regular expression matches', (t) => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 });
  const cases = fc.tuple(text, text, text);
  check(t, byDepth(500, 5_000), cases, ([start, end, key]) => {
    const pattern = `${start}*${end}`;
    const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 's');
    assert.equal(found(key, pattern) !== undefined, expression.test(key), `${pattern} ${key}`);
  });
});
