/** Secrets in rows that are never shown: sealed, or plain without an encryption key. */

import type { Keyring } from '../../src/core/sealing/keys.js';
import {
  NONCE_BYTES,
  type SecretPlace,
  type StoredSecret,
  storeSecret,
} from '../../src/core/sealing/sealing.js';
import { weaknessOf } from '../../src/core/weak-secret.js';
import type { Kernel } from './kernel.js';

export interface RowSecretsDeps extends Pick<Kernel, 'random' | 'log'> {
  /** Undefined without an encryption key. */
  readonly keyring: Keyring | undefined;
}

export function storedSecret(
  { keyring, random }: RowSecretsDeps,
  place: SecretPlace,
  secret: string,
): StoredSecret {
  return storeSecret(place, secret, keyring, randomBytes(random, NONCE_BYTES));
}

export function warnIfWeak({ log }: RowSecretsDeps, secret: string, fields: object): void {
  const why = weaknessOf(secret);
  if (why !== undefined) log.warn({ ...fields, why }, 'a secret can be guessed');
}

export function randomBytes(random: () => number, count: number): Buffer {
  return Buffer.from(Array.from({ length: count }, () => Math.floor(random() * 256)));
}
