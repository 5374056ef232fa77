/** How webhooks are signed, and what follows from each kind of outcome. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ATTEMPTS_MAX,
  type AttemptOutcome,
  type DeliveryErrorClass,
  nextWaitMs,
  webhookSignature,
} from '../../src/core/webhook.js';

type Failure = Extract<AttemptOutcome, { delivered: false }>;

const failure = (errorClass: DeliveryErrorClass, status?: number): Failure => ({
  delivered: false,
  errorClass,
  status,
  excerpt: '',
});
const answer = (status: number) => failure('http_status', status);

test('the signature is the HMAC-SHA256 over timestamp, dot and body in hexadecimal digits', () => {
  // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
  const seen = webhookSignature('secret', 1_700_000_000, '{"a":1}');
  assert.equal(seen, 'sha256=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686');
});

test('waits are 500 ms, one second and two, and there is no fifth attempt', () => {
  assert.equal(ATTEMPTS_MAX, 4);
  const waits = [1, 2, 3, 4, 5].map((attempts) => nextWaitMs(attempts, answer(503)));
  assert.deepEqual(waits, [500, 1_000, 2_000, null, null]);
});

test('408, 429, 5xx and errors on the way are tried again, everything else is final', () => {
  const retried = [
    ...[408, 429, 500, 502, 503, 504, 599].map(answer),
    ...(['dns', 'connect', 'tls', 'timeout', 'response_too_large', 'other'] as const).map(
      (errorClass) => failure(errorClass),
    ),
  ];
  const final = [
    ...[400, 401, 403, 404, 405, 409, 410, 413, 422, 431, 451, 499].map(answer),
    failure('internal_policy'),
    failure('redirect_rejected'),
    failure('serialization'),
    failure('signature_configuration'),
  ];
  const wrong = retried.filter((outcome) => nextWaitMs(1, outcome) === null);
  assert.deepEqual(wrong, []);
  assert.deepEqual(
    final.filter((outcome) => nextWaitMs(1, outcome) !== null),
    [],
  );
});
