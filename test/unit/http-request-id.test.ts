/** Where a request id comes from. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { newRequestId, requestIdFrom } from '../../src/http/request-id.js';
import { check } from '../helpers/properties.js';

const fresh = () => 'fresh';

test('a clean request id is kept as it is', () => {
  assert.equal(requestIdFrom('Ab-9_z', fresh), 'Ab-9_z');
  assert.equal(requestIdFrom('r'.repeat(128), fresh), 'r'.repeat(128));
});

test('unwanted characters go first, then the rest is cut at 128', () => {
  assert.equal(requestIdFrom('a b.c/ü', fresh), 'abc');
  assert.equal(requestIdFrom(`${' '.repeat(100)}${'r'.repeat(200)}`, fresh), 'r'.repeat(128));
});

test('a new id is made when none was sent or nothing is left of it', () => {
  for (const sent of [undefined, '', '///', 'äöü'])
    assert.equal(requestIdFrom(sent, fresh), 'fresh');
});

test('whatever is sent, the id is safe to log and to echo', (t) => {
  check(t, 100, fc.string({ unit: 'binary', maxLength: 300 }), (sent) => {
    assert.match(requestIdFrom(sent, fresh), /^[A-Za-z0-9_-]{1,128}$/);
  });
});

test('a new id is a random UUID of version 4, and no two are alike', () => {
  const ids = Array.from({ length: 2_000 }, newRequestId);
  const form = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  assert.deepEqual(
    ids.filter((id) => !form.test(id)),
    [],
  );
  assert.equal(new Set(ids).size, ids.length);
  for (let at = 0; at < 36; at++) {
    if ([8, 13, 18, 23, 14].includes(at)) continue;
    const digits = new Set(ids.map((id) => id[at]));
    assert.equal(digits.size, at === 19 ? 4 : 16, `digit ${at}`);
  }
});
