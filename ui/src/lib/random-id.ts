/** Ids that nobody else has, also where `crypto.randomUUID` is not: on plain HTTP. */

const BYTES = 16;

/** 128 random bits. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
