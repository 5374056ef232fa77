/** Bodies as JSON. A number that JSON would change without a word is refused, in the words of the server. */

import { UnsendableError } from './errors.js';

/**
 * @returns undefined for what has no form in JSON at all, as `JSON.stringify`
 * @throws UnsendableError for a number that JSON cannot hold; TypeError for a bigint, and what contains itself
 */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value);
  // Only then can there be such a number: NaN and infinite ones come out as null.
  if (SUSPICIOUS.test(text)) JSON.stringify(value, keeping());
  return text;
}

/** As the server has it: one more, and two integers have the same number. */
const INTEGER_MAX = 2 ** 53;

const SUSPICIOUS = /null|\d{16}/;

/** With the place of what is refused, as the server tells it. */
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
