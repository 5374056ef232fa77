/** Detects secrets that could be guessed; they only cause a warning (docs/authorization.md). */

const LENGTH_MIN = 16;
/** Random texts of 16 characters have more distinct characters, even if all are digits. */
const CHARACTERS_MIN = 5;
/** For keys of 32 bytes; random keys have about 30 distinct bytes. */
const BYTES_MIN = 12;
const KEY = /^[0-9a-f]{64}$/i;

/** The weakness as the end of a sentence, without parts of the secret. */
export function weaknessOf(secret: string): string | undefined {
  if (secret.length < LENGTH_MIN) return `has fewer than ${LENGTH_MIN} characters`;
  const isKey = KEY.test(secret);
  const signs = new Set(isKey ? secret.toLowerCase().match(/../g) : secret);
  if (signs.size >= (isKey ? BYTES_MIN : CHARACTERS_MIN)) return undefined;
  return `repeats the same few ${isKey ? 'bytes' : 'characters'}`;
}
