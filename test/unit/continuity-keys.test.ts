/** The keys that come from a master key, and the forms in which keys travel. */

import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, hkdfSync } from 'node:crypto';
import { test } from 'node:test';
import { base64Length, decodeBase64 } from '../../src/core/continuity/base64.js';
import {
  isSignedBy,
  parsePublicKey,
  privateKeyOf,
  publicKeyOf,
  signText,
} from '../../src/core/continuity/ed25519.js';
import {
  createKeyring,
  parseMasterKey,
  parseTransferKey,
  parseTrustedKeys,
  signingKeyId,
} from '../../src/core/continuity/keys.js';
import { column } from '../helpers/rows.js';

const MASTER = Buffer.alloc(32, 7);
const FORMER = Buffer.alloc(32, 8);

const raw = (key: string) => Buffer.from(key, 'base64');

test('keys and ids are the same after every start, and others for another master key', () => {
  const a = createKeyring(MASTER);
  const b = createKeyring(Buffer.from(MASTER));
  assert.equal(a.signing.id, b.signing.id);
  assert.equal(a.signing.publicKey, b.signing.publicKey);
  assert.deepEqual(a.payload, b.payload);
  const c = createKeyring(FORMER);
  assert.notEqual(a.signing.publicKey, c.signing.publicKey);
  assert.notEqual(a.signing.id, c.signing.id);
  assert.notEqual(a.payload.id, c.payload.id);
  assert.ok(!a.payload.key.equals(c.payload.key));
});

test('the signing and the payload key are derived under labels of their own', () => {
  const { signing, payload } = createKeyring(MASTER);
  const derived = (label: string) => Buffer.from(hkdfSync('sha256', MASTER, '', label, 32));
  const seed = derived('engine-continuity-signing-v1');
  assert.equal(signing.publicKey, publicKeyOf(privateKeyOf(seed)));
  assert.deepEqual(payload.key, derived('engine-continuity-payload-v1'));
  assert.ok(!payload.key.equals(seed) && !payload.key.equals(MASTER));
});

test('ids tell keys apart and say nothing about the master key', () => {
  const { signing, payload } = createKeyring(MASTER);
  assert.match(signing.id, /^continuity-signing-[0-9a-f]{16}$/);
  assert.match(payload.id, /^continuity-payload-[0-9a-f]{16}$/);
  assert.equal(signing.id, signingKeyId(signing.publicKey));
  const transfer = parseTransferKey(MASTER.toString('base64'));
  assert.match(transfer?.id ?? '', /^continuity-transfer-[0-9a-f]{16}$/);
  const direct = createHash('sha256').update(MASTER).digest('hex').slice(0, 16);
  for (const { id } of [signing, payload]) assert.ok(!id.endsWith(direct));
});

test('after a rotation the former key still opens, and its signatures are still believed', () => {
  const former = createKeyring(FORMER);
  const rotated = createKeyring(MASTER, FORMER);
  assert.deepEqual(column(rotated.opening, 'id'), [
    createKeyring(MASTER).payload.id,
    former.payload.id,
  ]);
  assert.equal(rotated.signing.publicKey, createKeyring(MASTER).signing.publicKey);
  assert.equal(rotated.trusted.get(former.signing.id), former.signing.publicKey);
});

test('a configured key cannot take the place of an own one', () => {
  const own = createKeyring(MASTER).signing;
  const { trusted } = createKeyring(
    MASTER,
    undefined,
    new Map([
      [own.id, 'else'],
      ['x', 'y'],
    ]),
  );
  assert.equal(trusted.get(own.id), own.publicKey);
  assert.equal(trusted.get('x'), 'y');
});

test('a master key is 64 hexadecimal digits', () => {
  const parsed = parseMasterKey('0A'.repeat(32));
  assert.ok(parsed.ok && parsed.value.equals(Buffer.alloc(32, 10)));
  for (const text of [
    '',
    '0a'.repeat(31),
    '0a'.repeat(33),
    'zz'.repeat(32),
    `${'0a'.repeat(32)}\n`,
  ]) {
    assert.ok(!parseMasterKey(text).ok, text);
  }
  assert.throws(() => createKeyring(Buffer.alloc(31)), RangeError);
});

test('a transfer key is base64 of 32 bytes', () => {
  assert.ok(parseTransferKey(MASTER.toString('base64'))?.key.equals(MASTER));
  for (const bytes of [0, 31, 33]) {
    assert.equal(parseTransferKey(Buffer.alloc(bytes).toString('base64')), undefined);
  }
  assert.equal(parseTransferKey(MASTER.toString('hex')), undefined);
});

test('trusted keys are a JSON object of texts', () => {
  const parsed = parseTrustedKeys('{"a":"k1","__proto__":"k2"}');
  assert.ok(parsed.ok);
  assert.deepEqual(
    [...parsed.value],
    [
      ['a', 'k1'],
      ['__proto__', 'k2'],
    ],
  );
  const empty = parseTrustedKeys(' ');
  assert.ok(empty.ok && empty.value.size === 0);
  for (const text of ['{', '[]', 'null', '"a"', '{"a":1}', '{"a":null}']) {
    assert.ok(!parseTrustedKeys(text).ok, text);
  }
});

test('base64 has one text for each sequence of bytes', () => {
  for (const length of [0, 1, 2, 3, 32, 64]) {
    const text = Buffer.alloc(length, 0xfe).toString('base64');
    assert.equal(text.length, base64Length(length));
    assert.deepEqual(decodeBase64(text), Buffer.alloc(length, 0xfe));
  }
  // Spare bits that are not zero, no padding, too much of it, the other alphabet, white space.
  for (const text of ['/v==', '/g', '/g=', '/g===', '_g==', ' /g==', '/g==\n', 'a', '====', 'é']) {
    assert.equal(decodeBase64(text), undefined, text);
  }
});

test('keys and signatures are those of RFC 8032', () => {
  const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
  const publicKey = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
  const signature =
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555' +
    'fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b';
  const privateKey = privateKeyOf(Buffer.from(seed, 'hex'));
  assert.equal(raw(publicKeyOf(privateKey)).toString('hex'), publicKey);
  assert.equal(raw(signText(privateKey, '')).toString('hex'), signature);
  const key = parsePublicKey(publicKeyOf(privateKey));
  assert.ok(key !== undefined);
  assert.ok(isSignedBy(key, '', signText(privateKey, '')));
  assert.ok(!isSignedBy(key, 'x', signText(privateKey, '')));
  assert.ok(!isSignedBy(key, '', ''));
});

test('a public key is the encoding of a point of the curve', () => {
  for (let i = 0; i < 20; i += 1) {
    const { publicKey } = generateKeyPairSync('ed25519');
    const der = publicKey.export({ format: 'der', type: 'spki' }).subarray(12);
    assert.ok(parsePublicKey(der.toString('base64')) !== undefined);
  }
  const point = (hex: string) => parsePublicKey(Buffer.from(hex, 'hex').toString('base64'));
  // The base point and the neutral element.
  assert.ok(point(`58${'66'.repeat(31)}`) !== undefined);
  assert.ok(point(`01${'00'.repeat(31)}`) !== undefined);
  // y = 0, whose numerator is negative before it is reduced.
  assert.ok(point('00'.repeat(32)) !== undefined);
  // y = 2 has no x; the neutral element has no twin; y must be below the prime.
  assert.equal(point(`02${'00'.repeat(31)}`), undefined);
  assert.equal(point(`01${'00'.repeat(30)}80`), undefined);
  assert.equal(point(`ed${'ff'.repeat(30)}7f`), undefined);
  assert.equal(point('ff'.repeat(32)), undefined);
  assert.equal(parsePublicKey(Buffer.alloc(31).toString('base64')), undefined);
  assert.equal(parsePublicKey('no key'), undefined);
});
