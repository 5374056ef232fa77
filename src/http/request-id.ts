/** The id under which a request appears in replies, logs and spans. */

import { randomFillSync } from 'node:crypto';

const REQUEST_ID_CHARS_MAX = 128;
const CLEAN = /^[A-Za-z0-9_-]{1,128}$/;
const UNWANTED = /[^A-Za-z0-9_-]/g;

/** The id that the client sent without other characters than `[A-Za-z0-9_-]`, cut; else a new one. */
export function requestIdFrom(sent: string | undefined, newRequestId: () => string): string {
  if (sent === undefined) return newRequestId();
  if (CLEAN.test(sent)) return sent;
  const kept = sent.replace(UNWANTED, '').slice(0, REQUEST_ID_CHARS_MAX);
  return kept === '' ? newRequestId() : kept;
}

const UUID_BYTES = 16;
const randomBytes = Buffer.allocUnsafeSlow(256 * UUID_BYTES);
let randomAt = randomBytes.length;
const digits = Buffer.from('00000000-0000-4000-8000-000000000000');
/** Where the two digits of each byte stand in a UUID. */
const DIGITS_AT = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const HEX = Buffer.from('0123456789abcdef');

/**
 * A UUID v4. `crypto.randomUUID` takes twice as long and joins its text from twenty pieces, a tenth of what the front
 * allocates for a request.
 */
export function newRequestId(): string {
  if (randomAt === randomBytes.length) {
    randomFillSync(randomBytes);
    randomAt = 0;
  }
  for (let byte = 0; byte < UUID_BYTES; byte++) {
    const value = randomBytes[randomAt + byte]!;
    const at = DIGITS_AT[byte]!;
    digits[at] = HEX[value >> 4]!;
    digits[at + 1] = HEX[value & 15]!;
  }
  digits[14] = 52;
  digits[19] = HEX[8 + (randomBytes[randomAt + 8]! & 3)]!;
  randomAt += UUID_BYTES;
  return digits.toString('latin1');
}
