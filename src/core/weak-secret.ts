/**
 * Secrets that could be guessed (docs/authorization.md): too short, or made of too few signs. They are warned of and
 * taken, because what ran with one goes on. Pure.
 */

const LENGTH_MIN = 16;
/** Random texts of 16 characters have more, even those of digits alone. */
const CHARACTERS_MIN = 5;
/** Of the 32 bytes of a key; random ones have about 30. */
const BYTES_MIN = 12;
const KEY = /^[0-9a-f]{64}$/i;

/** The end of a sentence about it, without anything of it; undefined: it is none. */
export function weaknessOf(secret: string): string | undefined {
  if (secret.length < LENGTH_MIN) return `has fewer than ${LENGTH_MIN} characters`;
  const isKey = KEY.test(secret);
  const signs = new Set(isKey ? secret.toLowerCase().match(/../g) : secret);
  if (signs.size >= (isKey ? BYTES_MIN : CHARACTERS_MIN)) return undefined;
  return `repeats the same few ${isKey ? 'bytes' : 'characters'}`;
}
