/** Random ids, also on plain HTTP, where browsers do not provide `crypto.randomUUID`. */

const BYTES = 16;

/** 128 random bits. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
