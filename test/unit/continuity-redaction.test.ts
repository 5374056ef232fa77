/** What changed between two checkpoints, without what nobody should see. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  DIFF_CHANGES_MAX,
  REDACTED,
  redacted,
  redactedStateDiff,
} from '../../src/core/continuity/redaction.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { check } from '../helpers/properties.js';

test('changed paths are listed with both sides, null where there is nothing', () => {
  const before = { same: 1, a: { b: 1, gone: [1] }, list: [1, 2] };
  const after = { same: 1, a: { b: 2, new: { c: 1 } }, list: [1, 3] };
  assert.deepEqual(redactedStateDiff(before, after), [
    { path: 'a.b', before: 1, after: 2 },
    { path: 'a.gone', before: [1], after: null },
    { path: 'a.new', before: null, after: { c: 1 } },
    { path: 'list', before: [1, 2], after: [1, 3] },
  ]);
});

test('against an empty object every member is a change', () => {
  assert.deepEqual(redactedStateDiff({}, { b: 1, a: { c: 2 } }), [
    { path: 'a', before: null, after: { c: 2 } },
    { path: 'b', before: null, after: 1 },
  ]);
  assert.deepEqual(redactedStateDiff({}, [1]), [{ path: '', before: {}, after: [1] }]);
});

test('what stands under a sensitive name is hidden on both sides, whatever it is', () => {
  for (const name of [
    'password',
    'Passwd',
    'client_secret',
    'apiKey',
    'x-api-key',
    'access.token',
    'Authorization',
    'credentials',
    'private_key',
    'Set-Cookie',
  ]) {
    for (const value of ['x', 1, true, ['x'], { user: 'x' }]) {
      assert.deepEqual(redactedStateDiff({ [name]: null }, { [name]: value }), [
        { path: name, before: null, after: REDACTED },
      ]);
    }
    assert.deepEqual(redactedStateDiff({ a: { [name]: 'old' } }, { a: { [name]: 'new' } }), []);
  }
});

test('what has the shape of a secret is hidden under any name', () => {
  for (const text of [
    'Bearer abcdef123456',
    'basic dXNlcjpwYXNz',
    `sk_${'0123456789abcdef'.repeat(4)}`,
    'sk-proj-abcdefghijklmnop',
    `ghp_${'a1'.repeat(18)}`,
    'xoxb-123456789012-abcdef',
    'AKIAIOSFODNN7EXAMPLE',
    'see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl',
    '-----BEGIN RSA PRIVATE KEY-----\nMIIE',
    'postgres://user:hunter2@db.internal:5432/x',
  ]) {
    assert.deepEqual(redacted({ a: [text] }), { a: [REDACTED] }, text);
  }
});

test('ordinary values are shown', () => {
  const value = {
    name: 'Ada',
    url: 'https://example.org:8080/path?q=a:b@c',
    note: 'the bearer of this letter',
    id: '0198c0de-0000-7000-8000-000000000001',
    hash: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    risk_score: 3,
    desk: 'sk_1',
  };
  assert.deepEqual(redacted(value), value);
});

test('at most a thousand changes are listed', () => {
  const after = Object.fromEntries(Array.from({ length: 1_500 }, (_, i) => [`k${i}`, i]));
  assert.equal(redactedStateDiff({}, after).length, DIFF_CHANGES_MAX);
});

test('deeper than 32 levels values are compared as a whole', () => {
  const nest = (levels: number, inner: JsonValue): JsonValue =>
    levels === 0 ? inner : { n: nest(levels - 1, inner) };
  assert.deepEqual(redactedStateDiff(nest(33, { x: 1 }), nest(33, { x: 2 })), [
    { path: Array(32).fill('n').join('.'), before: { n: { x: 1 } }, after: { n: { x: 2 } } },
  ]);
  assert.equal(JSON.stringify(redacted(nest(600, 'x'))).includes('"x"'), false);
  let list: JsonValue = 'x';
  for (let i = 0; i < 600; i += 1) list = [list];
  assert.equal(JSON.stringify(redacted(list)).includes('"x"'), false);
});

test('inherited names are keys like any other', () => {
  const after = JSON.parse('{"__proto__":{"a":1},"constructor":2}') as JsonObject;
  assert.deepEqual(redactedStateDiff({}, after), [
    { path: '__proto__', before: null, after: { a: 1 } },
    { path: 'constructor', before: null, after: 2 },
  ]);
});

test('a value does not differ from itself, and a secret is nowhere in a difference', (t) => {
  const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<JsonValue>;
  check(t, 300, fc.tuple(json, json), ([a, b]) => {
    assert.deepEqual(redactedStateDiff(a, a), []);
    const secret = 'Bearer 0123456789';
    const text = JSON.stringify(redactedStateDiff({ a, secret }, { b, x: [secret], inner: { a } }));
    assert.ok(!text.includes('0123456789'));
  });
});

test('a long text of false beginnings is searched in no time that grows with its square', () => {
  // A quadratic search of these would take minutes.
  for (const piece of ['eyJ', 'eyJaaaaaaaa.', '://a:', 'sk-', 'bearer ', '-----BEGIN ']) {
    const text = piece.repeat(200_000);
    assert.ok(typeof redacted(text) === 'string');
  }
});
