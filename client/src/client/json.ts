/** Serializes bodies as JSON. Numbers that JSON would change silently are rejected with the server's message. */

import { UnsendableError } from './errors.js';

/**
 * @returns undefined for values without a JSON form, like `JSON.stringify`
 * @throws UnsendableError for a number that JSON cannot represent; TypeError for a bigint or a cyclic value
 */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value);
  // Only then can the text contain such a number: NaN and infinities are written as null.
  if (SUSPICIOUS.test(text)) JSON.stringify(value, keeping());
  return text;
}

/** The server's limit: beyond it, two integers have the same representation. */
const INTEGER_MAX = 2 ** 53;

const SUSPICIOUS = /null|\d{16}/;

/** A replacer that rejects such numbers with their position, as the server reports it. */
function keeping(): (this: unknown, name: string, value: unknown) => unknown {
  const places = new Map<unknown, string>();
  return function (name, value) {
    const within = places.get(this) ?? '';
    const step = Array.isArray(this) ? `[${name}]` : `${within && '.'}${name}`;
    const place = within + step;
    if (typeof value === 'object') places.set(value, place);
    const fault = typeof value === 'number' ? faultOf(value) : undefined;
    if (fault === undefined) return value;
    throw new UnsendableError(`${fault} is not accepted, at ${place || 'the top level'}`);
  };
}

function faultOf(value: number): string | undefined {
  if (Number.isInteger(value) && Math.abs(value) <= INTEGER_MAX) return undefined;
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return `the number ${value}, which is beyond the range of a double`;
  return /^-?\d+$/.test(String(value)) ? `the integer ${value}, which is beyond 2^53` : undefined;
}

/** In UTF-8. */
export const byteLength = (text: string) => ENCODER.encode(text).length;

const ENCODER = new TextEncoder();
