/** The captured headers, and what makes a request refused. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestHead } from '../../src/http/request-head.js';

const LIMITS = { maxBodyBytes: 100, maxHeaderBytes: 1_000 };

function head(headers: readonly (readonly [string, string])[], target = '/') {
  const made = new RequestHead('POST', target, '');
  made.add('host', 'h');
  for (const [name, value] of headers) made.add(name, value);
  return { made, refusal: made.settle(LIMITS, () => 'fresh') };
}

test('the length of the body is 0 without headers, as declared, or unknown if chunked', () => {
  assert.equal(head([]).made.contentLength, 0);
  assert.equal(head([['content-length', '7']]).made.contentLength, 7);
  assert.equal(head([['transfer-encoding', 'Chunked']]).made.contentLength, undefined);
});

test('a length that is not plain digits is a 400', () => {
  for (const length of ['', '-1', '+1', '1.0', '0x1', '1,1', ' 1', '1e3', '9'.repeat(16)]) {
    assert.equal(head([['content-length', length]]).refusal?.status, 400, length);
  }
});

test('a declared length beyond the limit is a 413, the limit itself is not', () => {
  assert.equal(head([['content-length', '100']]).refusal, undefined);
  assert.equal(head([['content-length', '101']]).refusal?.status, 413);
});

test('length beside encoding, and any encoding but chunked, is a 400', () => {
  const both = head([
    ['content-length', '1'],
    ['transfer-encoding', 'chunked'],
  ]);
  assert.equal(both.refusal?.status, 400);
  assert.equal(head([['transfer-encoding', 'chunked, chunked']]).refusal?.status, 400);
});

test('what says who calls, or where the request ends, may come once only', () => {
  const once = ['content-length', 'host', 'authorization', 'x-api-key', 'x-tenant-id'];
  for (const name of once) {
    const refusal = head([
      [name, '1'],
      [name, '1'],
    ]).refusal;
    assert.equal(refusal?.status, 400, name);
    assert.match(refusal?.message ?? '', /^invalid argument: /);
  }
});

test('of a header that may repeat, the first value counts', () => {
  const { made, refusal } = head([
    ['accept', 'a'],
    ['accept', 'b'],
  ]);
  assert.equal(refusal, undefined);
  assert.equal(made.header('accept'), 'a');
});

test('a missing host, or a target that is no plain path, is a 400', () => {
  assert.equal(new RequestHead('GET', '/', '').settle(LIMITS, () => 'id')?.status, 400);
  for (const target of ['', '*', 'a', 'http://h/', '/ä', '/a b', '/a#b', '/a\u0000']) {
    assert.equal(head([], target).refusal?.status, 400, target);
  }
});

test('a refused request has an id too', () => {
  assert.equal(head([['content-length', 'x']]).made.requestId, 'fresh');
});

test('48 headers are served, one more is a 431', () => {
  const many = (count: number) =>
    Array.from({ length: count - 1 }, (_, i) => [`x-${i}`, ''] as const);
  assert.equal(head(many(48)).refusal, undefined);
  assert.equal(head(many(49)).refusal?.status, 431);
});
