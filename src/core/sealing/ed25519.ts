/** Ed25519 (RFC 8032) on raw keys: the 32 bytes of a seed or of a public key, as on the wire. */

import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { decodeBase64Exactly } from './base64.js';

export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
/** The bytes before a key in the DER forms PKCS #8 and SPKI (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** @param seed 32 bytes */
export function privateKeyOf(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([PKCS8_PREFIX, seed]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

/** The raw public key in base64. */
export function publicKeyOf(privateKey: KeyObject): string {
  const der = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  return der.subarray(SPKI_PREFIX.length).toString('base64');
}

/** Undefined unless the text is base64 of 32 bytes that are a point of the curve. */
export function parsePublicKey(base64: string): KeyObject | undefined {
  const raw = decodeBase64Exactly(base64, PUBLIC_KEY_BYTES);
  if (raw === undefined || !isPoint(raw)) return undefined;
  const der = Buffer.concat([SPKI_PREFIX, raw]);
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}

/** @returns the signature over the UTF-8 bytes of the text, in base64 */
export function signText(privateKey: KeyObject, text: string): string {
  return sign(null, Buffer.from(text), privateKey).toString('base64');
}

export function isSignedBy(publicKey: KeyObject, text: string, signature: string): boolean {
  const raw = decodeBase64Exactly(signature, SIGNATURE_BYTES);
  return raw !== undefined && verify(null, Buffer.from(text), publicKey, raw);
}

/** The prime of the field, and the constant of the curve −x² + y² = 1 + d·x²·y². */
const P = 2n ** 255n - 19n;
const D = 37095705934669439343138083508754565189542113879843219016388785533085940283555n;

/**
 * Whether the bytes decode to a point (RFC 8032 §5.1.3), which OpenSSL checks only when it verifies a signature: y is
 * below p, and x² = (y² − 1) / (d·y² + 1) has a root of this sign.
 */
function isPoint(raw: Uint8Array): boolean {
  const bytes = Buffer.from(raw).reverse();
  const isOdd = (bytes[0]! & 0x80) !== 0;
  bytes[0]! &= 0x7f;
  const y = BigInt(`0x${bytes.toString('hex')}`);
  if (y >= P) return false;
  const numerator = (y * y - 1n + P) % P;
  const denominator = (D * y * y + 1n) % P;
  // x is zero, which has no odd twin.
  if (numerator === 0n) return !isOdd;
  // A quotient is a square exactly when the product is: they differ by the square of the divisor.
  return power((numerator * denominator) % P, (P - 1n) / 2n) === 1n;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}
