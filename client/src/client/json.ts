/** Bodies as JSON. A number that JSON would change without a word is refused, in the words of the server. */

/**
 * @returns undefined for what has no form in JSON at all, as `JSON.stringify`
 * @throws TypeError for a number that JSON cannot hold, a bigint, and what contains itself
 */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value);
  // Only then can there be such a number: NaN and infinite ones come out as null.
  if (SUSPICIOUS.test(text)) JSON.stringify(value, expectKept);
  return text;
}

const SUSPICIOUS = /null|\d{16}/;

function expectKept(name: string, value: unknown): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const text = String(value);
  if (Number.isNaN(value)) throw new TypeError(`NaN is not accepted, at ${name}`);
  if (!Number.isFinite(value)) {
    throw new TypeError(
      `the number ${text}, which is beyond the range of a double is not accepted, at ${name}`,
    );
  }
  if (/^-?\d+$/.test(text)) {
    throw new TypeError(`the integer ${text}, which is beyond 2^53 is not accepted, at ${name}`);
  }
  return value;
}

/** In UTF-8. */
export const byteLength = (text: string) => ENCODER.encode(text).length;

const ENCODER = new TextEncoder();
