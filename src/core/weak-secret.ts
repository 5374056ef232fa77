/** Detects secrets that could be guessed, which only cause a warning (docs/authorization.md). Pure. */

const LENGTH_MIN = 16;
/** Random texts of 16 characters have more, even if they are all digits. */
const CHARACTERS_MIN = 5;
/** For the 32 bytes of a key; random ones have about 30 different ones. */
const BYTES_MIN = 12;
const KEY = /^[0-9a-f]{64}$/i;

/** The weakness as the end of a sentence, without any of the secret. */
export function weaknessOf(secret: string): string | undefined {
  if (secret.length < LENGTH_MIN) return `has fewer than ${LENGTH_MIN} characters`;
  const isKey = KEY.test(secret);
  const signs = new Set(isKey ? secret.toLowerCase().match(/../g) : secret);
  if (signs.size >= (isKey ? BYTES_MIN : CHARACTERS_MIN)) return undefined;
  return `repeats the same few ${isKey ? 'bytes' : 'characters'}`;
}
