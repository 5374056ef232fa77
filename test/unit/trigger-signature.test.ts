/** Which webhooks from outside are taken for what they say they are. */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { isSameText, signatureOf, signatureProblem } from '../../src/core/trigger-signature.js';

const NOW = Date.UTC(2026, 10, 22, 12);
const SECRET = 'correct horse';
const BODY = Buffer.from('{"amount":12}');
const NONCE = 'n'.repeat(16);
const at = (ms: number) => String(Math.floor((NOW + ms) / 1_000));

function problemOf(changes: Partial<Record<'timestamp' | 'nonce' | 'signature', string>> = {}) {
  const { timestamp = at(0), nonce = NONCE } = changes;
  const signature = changes.signature ?? signatureOf(SECRET, timestamp, nonce, BODY);
  return signatureProblem({ timestamp, nonce, signature }, BODY, SECRET, NOW);
}

test('a signature is the HMAC of time, nonce and body, in base64url', () => {
  const mac = createHmac('sha256', SECRET).update(`1.${NONCE}.{"amount":12}`).digest('base64url');
  assert.equal(signatureOf(SECRET, '1', NONCE, BODY), `v1=${mac}`);
  assert.equal(problemOf(), undefined);
});

for (const [what, changes, isGood] of [
  ['300 s old', { timestamp: at(-300_000) }, true],
  ['301 s old', { timestamp: at(-301_000) }, false],
  ['60 s ahead', { timestamp: at(60_000) }, true],
  ['61 s ahead', { timestamp: at(61_000) }, false],
  ['with a time in words', { timestamp: 'now' }, false],
  ['with a time below zero', { timestamp: '-1' }, false],
  ['with a nonce of 15 characters', { nonce: 'n'.repeat(15) }, false],
  ['with a nonce of 128 characters', { nonce: 'n'.repeat(128) }, true],
  ['with a nonce of 129 characters', { nonce: 'n'.repeat(129) }, false],
  ['with a blank in its nonce', { nonce: `${'n'.repeat(16)} n` }, false],
  ['without a signature', { signature: '' }, false],
  [
    'signed without the version',
    { signature: signatureOf(SECRET, at(0), NONCE, BODY).slice(3) },
    false,
  ],
  ['signed with another secret', { signature: signatureOf('x', at(0), NONCE, BODY) }, false],
  [
    'signed for another body',
    { signature: signatureOf(SECRET, at(0), NONCE, Buffer.alloc(1)) },
    false,
  ],
  ['signed for another nonce', { signature: signatureOf(SECRET, at(0), `${NONCE}x`, BODY) }, false],
] as const) {
  test(`a webhook ${what} is ${isGood ? 'taken' : 'refused'}`, () => {
    assert.equal(problemOf(changes) === undefined, isGood, problemOf(changes));
  });
}

test('one without time or nonce is refused', () => {
  const signature = signatureOf(SECRET, at(0), NONCE, BODY);
  const without = { timestamp: undefined, nonce: undefined, signature };
  assert.notEqual(signatureProblem(without, BODY, SECRET, NOW), undefined);
  const noNonce = { timestamp: at(0), nonce: undefined, signature };
  assert.notEqual(signatureProblem(noNonce, BODY, SECRET, NOW), undefined);
});

test('texts of different lengths are not the same', () => {
  assert.deepEqual(
    [isSameText('a', 'a'), isSameText('a', 'ab'), isSameText('', 'a')],
    [true, false, false],
  );
});
