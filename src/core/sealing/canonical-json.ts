/**
 * One text for all JSON values that are equal, and its hash: keys in the order of code points at every level, no spaces,
 * non-ASCII characters as they are.
 */

import { createHash } from 'node:crypto';
import { compareText } from '../../base/bounds.js';

/** Twice what the entry check admits, so that a shape around stored data is still written. */
const DEPTH_MAX = 512;

/** Omits undefined members. @throws RangeError for a value that nests too deeply, TypeError for one that is not JSON */
export function canonicalJson(value: unknown): string {
  return write(value, DEPTH_MAX);
}

/** Lower-case hexadecimal digits. A text is hashed as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

export function canonicalSha256(value: unknown): string {
  return sha256Hex(canonicalJson(value));
}

function write(value: unknown, depthLeft: number): string {
  if (typeof value === 'object' && value !== null) {
    if (depthLeft <= 0) throw new RangeError(`JSON nested deeper than ${DEPTH_MAX} levels`);
    if (!Array.isArray(value)) return writeObject(value, depthLeft);
    return `[${value.map((item) => write(item, depthLeft - 1)).join(',')}]`;
  }
  const isText = typeof value === 'string' || typeof value === 'boolean' || value === null;
  if (!isText && !Number.isFinite(value)) throw new TypeError(`JSON has no ${typeof value} value`);
  return JSON.stringify(value);
}

function writeObject(object: object, depthLeft: number): string {
  const members = Object.entries(object).filter(([, value]) => value !== undefined);
  members.sort(([a], [b]) => compareText(a, b));
  const texts = members.map(
    ([key, value]) => `${JSON.stringify(key)}:${write(value, depthLeft - 1)}`,
  );
  return `{${texts.join(',')}}`;
}
