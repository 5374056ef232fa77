/** The canonical text of a JSON value and its hash: sorted keys, no spaces, non-ASCII characters unescaped. */

import { createHash } from 'node:crypto';
import { compareText } from '../../base/bounds.js';

/** Twice the limit of requests, so that an object around stored data fits. */
const DEPTH_MAX = 512;
/** Omits undefined members. @throws RangeError for a value that nests too deeply, TypeError for one that is not JSON */
export const canonicalJson = (value: unknown): string => write(value, DEPTH_MAX);

/** Lower-case hexadecimal digits. A text is hashed as UTF-8. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

export const canonicalSha256 = (value: unknown): string => sha256Hex(canonicalJson(value));

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
  const texts = members.map(([key, one]) => `${JSON.stringify(key)}:${write(one, depthLeft - 1)}`);
  return `{${texts.join(',')}}`;
}
