/** What servers state to one another: nobody else can have stated it, and nothing of it is changed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ImportReceipt } from '../../schema/handoff.js';
import { createKeyring } from '../../src/core/continuity/keys.js';
import {
  type GrantFacts,
  openStatement,
  signStatement,
} from '../../src/core/continuity/statements.js';
import { check } from '../helpers/properties.js';

const { signing } = createKeyring(Buffer.alloc(32, 1));
const { signing: other } = createKeyring(Buffer.alloc(32, 2));
const TRUSTED = [other.publicKey, signing.publicKey];

const FACTS: GrantFacts = {
  kind: 'ownership_granted',
  tenant_id: 't',
  capsule_id: '01950000-0000-7000-8000-000000000001',
  continuity_id: '01950000-0000-7000-8000-000000000002',
  epoch: 1,
  owner_runtime_id: '01950000-0000-7000-8000-000000000003',
  instance_id: '01950000-0000-7000-8000-000000000004',
  handoff_id: '01950000-0000-7000-8000-000000000005',
  importer_public_key: other.publicKey,
};

test('a statement is what was stated, and is the same whenever it is made', () => {
  const signed = signStatement(signing, FACTS);
  assert.deepEqual(openStatement(signed, TRUSTED), FACTS);
  assert.deepEqual(signStatement(signing, { ...FACTS }), signed);
});

test('a statement counts only by a trusted key', () => {
  const signed = signStatement(signing, FACTS);
  assert.equal(openStatement(signed, []), undefined);
  assert.equal(openStatement(signed, [other.publicKey]), undefined);
  assert.equal(openStatement({ ...signed, public_key: other.publicKey }, TRUSTED), undefined);
  assert.equal(openStatement({ ...signed, public_key: 'AAAA' }, ['AAAA']), undefined);
});

test('a statement of which any character is another one counts no more', (t) => {
  const signed = signStatement(signing, FACTS);
  const part = fc.constantFrom<keyof ImportReceipt>('statement', 'public_key', 'signature');
  check(
    t,
    100,
    fc.tuple(part, fc.nat(), fc.integer({ min: 1, max: 94 })),
    ([name, place, shift]) => {
      const text = signed[name];
      const at = place % text.length;
      const code = 33 + ((text.charCodeAt(at) - 33 + shift) % 94);
      if (code === text.charCodeAt(at)) return;
      const changed = text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
      assert.equal(openStatement({ ...signed, [name]: changed }, TRUSTED), undefined);
    },
  );
});
