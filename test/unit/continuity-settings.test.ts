/** The settings of continuity: what they may be, and what becomes of them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config.js';
import { ConfigError } from '../../src/config-values.js';
import { createKeyring, keyringOf } from '../../src/core/continuity/keys.js';

const TRUSTED = 'ENGINE_CONTINUITY_TRUSTED_SIGNING_KEYS_JSON';
const [PRESENT, FORMER] = ['11'.repeat(32), '22'.repeat(32)];
const stranger = createKeyring(Buffer.alloc(32, 3)).signing;

const read = (env: Record<string, string>) => readConfig({ ENGINE_API_KEY: 'k', ...env }, []);

test('trusted keys that are no JSON object of texts stop the start', () => {
  for (const text of ['{', '[]', '"key"', 'null', '{"a": 1}']) {
    const isNamed = (error: unknown) =>
      error instanceof ConfigError && error.message.startsWith(`${TRUSTED}: `);
    assert.throws(() => read({ [TRUSTED]: text }), isNamed, text);
  }
});

test('keys that are not 64 hexadecimal digits stop the start', () => {
  for (const name of ['ENGINE_ENCRYPTION_KEY', 'ENGINE_OLD_ENCRYPTION_KEY']) {
    for (const text of ['ab', 'xy'.repeat(32)]) {
      assert.throws(() => read({ [name]: text }), ConfigError, `${name}=${text}`);
    }
  }
});

test('the key ring signs with the present key and trusts the former one and those that are named', () => {
  const config = read({
    ENGINE_ENCRYPTION_KEY: PRESENT,
    ENGINE_OLD_ENCRYPTION_KEY: FORMER,
    [TRUSTED]: JSON.stringify({ [stranger.id]: stranger.publicKey }),
  });
  const { encryptionKey, oldEncryptionKey, trustedSigningKeys } = config;
  const keyring = keyringOf({
    master: encryptionKey,
    former: oldEncryptionKey,
    trusted: trustedSigningKeys,
  });
  const [present, former] = [PRESENT, FORMER].map((hex) => createKeyring(Buffer.from(hex, 'hex')));
  assert.equal(keyring?.signing.id, present?.signing.id);
  assert.deepEqual(
    [...(keyring?.trusted.values() ?? [])].sort(),
    [stranger.publicKey, present?.signing.publicKey, former?.signing.publicKey].sort(),
  );
});

test('without a key there is no key ring, whoever is trusted', () => {
  assert.equal(keyringOf({ master: undefined, former: FORMER, trusted: '{}' }), undefined);
});
