/** CORS policy: which origins get which headers. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { corsPolicy } from '../../src/http/cors.js';

const A = 'https://a.example';

const named = (headers: readonly (readonly [string, string])[]) => Object.fromEntries(headers);

test('without origins no reply carries a CORS header', () => {
  const cors = corsPolicy([]);
  assert.deepEqual(cors.replyHeaders(A), []);
  assert.deepEqual(cors.replyHeaders(undefined), []);
  assert.deepEqual(cors.preflightHeaders(A), []);
});

test('an origin of the list is named in the reply, and caches are told', () => {
  const headers = named(corsPolicy([A, 'https://b.example']).replyHeaders(A));
  assert.equal(headers['access-control-allow-origin'], A);
  assert.match(headers['access-control-expose-headers'] ?? '', /x-request-id/);
  assert.equal(headers.vary, 'Origin');
});

test('an origin is compared exactly', () => {
  const cors = corsPolicy([A]);
  for (const origin of ['https://A.example', 'http://a.example', `${A}:443`, `${A}.evil`, 'null']) {
    assert.deepEqual(cors.replyHeaders(origin), [['vary', 'Origin']]);
    assert.deepEqual(cors.preflightHeaders(origin), []);
  }
});

test('* allows every origin, and the reply is the same for all of them', () => {
  const cors = corsPolicy(['*']);
  const headers = named(cors.replyHeaders('https://any.example'));
  assert.equal(headers['access-control-allow-origin'], '*');
  assert.equal(headers.vary, undefined);
  assert.notDeepEqual(cors.preflightHeaders('https://any.example'), []);
});

test('a preflight names the methods and headers of the API', () => {
  const headers = named(corsPolicy([A]).preflightHeaders(A));
  assert.equal(headers['access-control-allow-methods'], 'GET, POST, PUT, PATCH, DELETE, OPTIONS');
  assert.equal(
    headers['access-control-allow-headers'],
    'content-type, authorization, x-api-key, x-tenant-id, x-cell, x-trigger-secret, ' +
      'x-trigger-timestamp, x-trigger-nonce, x-engine-signature',
  );
});
