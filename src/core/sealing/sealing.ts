/** Seals capsules and stored secrets with AES-256-GCM. A nonce must never be used twice with one key. */

import { createCipheriv, createDecipheriv } from 'node:crypto';
import type { CapsuleManifest } from '../../../schema/handoff.js';
import { decodeBase64 } from './base64.js';
import type { Keyring, PayloadKey } from './keys.js';

const CIPHER = 'aes-256-gcm';
export const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SEAL_BYTES = NONCE_BYTES + TAG_BYTES;

/** Authenticated with the payload, which can only be opened with the same context. */
export type SealContext = Pick<
  CapsuleManifest,
  'tenant_id' | 'continuity_id' | 'epoch' | 'allowed_destination_runtime_id'
>;

/** @returns nonce, ciphertext and tag, one after the other */
export function seal(plain: Uint8Array, key: Uint8Array, nonce: Uint8Array, context: SealContext) {
  if (nonce.length !== NONCE_BYTES) throw new RangeError(`a nonce has ${NONCE_BYTES} bytes`);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(additionalData(context));
  const body = cipher.update(plain);
  const end = cipher.final();
  return Buffer.concat([nonce, body, end, cipher.getAuthTag()]);
}

/** Undefined if the bytes, the key or the context differ in a single bit. */
export function unseal(sealed: Uint8Array, key: Uint8Array, context: SealContext) {
  if (sealed.length < SEAL_BYTES) return undefined;
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const tag = sealed.subarray(sealed.length - TAG_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(additionalData(context));
  decipher.setAuthTag(tag);
  const body = decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES));
  try {
    return Buffer.concat([body, decipher.final()]);
  } catch {
    // `final` fails only if the tag does not match.
    return undefined;
  }
}

const LABEL = 'engine-capsule-v1';

/** NUL cannot occur inside a part: Postgres stores no text with it. */
function additionalData(context: SealContext): Buffer {
  const { tenant_id, continuity_id, epoch, allowed_destination_runtime_id: allowed } = context;
  const parts = [LABEL, tenant_id, continuity_id, `${epoch}`, allowed ?? 'any'];
  if (parts.some((part) => part.includes('\0'))) throw new RangeError('a part holds U+0000');
  return Buffer.from(parts.join('\0'));
}

/** Tries the keys in order: the payload may have been sealed before a rotation. */
export function openWith(keys: readonly PayloadKey[], sealed: Uint8Array, context: SealContext) {
  for (const { key } of keys) {
    const plain = unseal(sealed, key, context);
    if (plain !== undefined) return plain;
  }
  return undefined;
}

export interface SecretPlace {
  readonly id: string;
  readonly tenant_id: string;
}

/** The two forms of the column: base64, or plain text without keys. */
export type StoredSecret = { readonly sealed: string } | { readonly plain: string };

/** @param nonce 12 random bytes that were never used before */
export function storeSecret(
  place: SecretPlace,
  secret: string,
  keyring: Keyring | undefined,
  nonce: Uint8Array,
): StoredSecret {
  if (keyring === undefined) return { plain: secret };
  const sealed = seal(Buffer.from(secret), keyring.payload.key, nonce, contextOf(place));
  return { sealed: sealed.toString('base64') };
}

export function openSecret(place: SecretPlace, stored: StoredSecret, keyring: Keyring | undefined) {
  if ('plain' in stored) return stored.plain;
  const sealed = decodeBase64(stored.sealed);
  return sealed && openWith(keyring?.opening ?? [], sealed, contextOf(place))?.toString('utf8');
}

function contextOf({ id, tenant_id }: SecretPlace): SealContext {
  return { tenant_id, continuity_id: id, epoch: 0, allowed_destination_runtime_id: 'secret' };
}
