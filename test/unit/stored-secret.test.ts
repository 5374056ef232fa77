/** Secrets that nobody reads back, as they are stored. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyring } from '../../src/core/continuity/keys.js';
import { openSecret, storeSecret } from '../../src/core/stored-secret.js';

const PLACE = { id: 'row', tenant_id: 'tenant' };
const NONCE = Buffer.alloc(12, 7);
const OLD = Buffer.alloc(32, 1);
const NEW = Buffer.alloc(32, 2);

test('a secret is sealed where the server has a key, and opened by that or by its successor', () => {
  const stored = storeSecret(PLACE, 'sësame', createKeyring(OLD), NONCE);
  assert.ok('sealed' in stored);
  assert.ok(!JSON.stringify(stored).includes('same'));
  assert.equal(openSecret(PLACE, stored, createKeyring(OLD)), 'sësame');
  assert.equal(openSecret(PLACE, stored, createKeyring(NEW, OLD)), 'sësame');
  assert.equal(openSecret(PLACE, stored, createKeyring(NEW)), undefined);
  assert.equal(openSecret(PLACE, stored, undefined), undefined);
});

test('what is sealed for one row or tenant is not opened for another', () => {
  const keyring = createKeyring(OLD);
  const stored = storeSecret(PLACE, 'sesame', keyring, NONCE);
  for (const place of [
    { ...PLACE, id: 'other' },
    { ...PLACE, tenant_id: 'other' },
  ]) {
    assert.equal(openSecret(place, stored, keyring), undefined);
  }
});

test('without a key a secret is stored as it is, and found by a server with one', () => {
  const stored = storeSecret(PLACE, 'sesame', undefined, NONCE);
  assert.deepEqual(stored, { plain: 'sesame' });
  assert.equal(openSecret(PLACE, stored, createKeyring(OLD)), 'sesame');
});
