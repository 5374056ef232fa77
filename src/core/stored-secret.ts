/** The stored form of write-only secrets: encrypted and bound to row and tenant, or plain without a key. Pure. */

import { decodeBase64 } from './sealing/base64.js';
import type { Keyring } from './sealing/keys.js';
import { openWith, type SealContext, seal } from './sealing/sealing.js';

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

export function openSecret(
  place: SecretPlace,
  stored: StoredSecret,
  keyring: Keyring | undefined,
): string | undefined {
  if ('plain' in stored) return stored.plain;
  const sealed = decodeBase64(stored.sealed);
  return sealed && openWith(keyring?.opening ?? [], sealed, contextOf(place))?.toString('utf8');
}

function contextOf({ id, tenant_id }: SecretPlace): SealContext {
  return { tenant_id, continuity_id: id, epoch: 0, allowed_destination_runtime_id: 'secret' };
}
