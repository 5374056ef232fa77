/**
 * Cursors of lists: the place behind a row, as text that clients hand back as they got it. A place is
 * the row's keys in the order of its list, so that rows which come or go meanwhile move nothing. What
 * is not one that the same list gave is recognised: by a sum over it and the order. Pure.
 */

import { createHash } from 'node:crypto';
import { INT32_MAX } from '../../schema/common.js';
import { isTimestamp, isUuid } from '../../schema/formats.js';
import { decodeUtf8 } from '../base/json-guard.js';

/** What a row is found by: text, or a number for a whole one. */
export type PlaceKey = string | number;

/** The types that keys of rows have, and what a value of each looks like. */
const IS_KEY = {
  uuid: (value: PlaceKey) => typeof value === 'string' && isUuid(value),
  timestamptz: (value: PlaceKey) => typeof value === 'string' && isTimestamp(value),
  text: (value: PlaceKey) => typeof value === 'string' && !value.includes('\0'),
  integer: (value: PlaceKey) => Number.isInteger(value) && Math.abs(Number(value)) <= INT32_MAX,
} as const;
export type PlaceKeyType = keyof typeof IS_KEY;

const SUM_LENGTH = 8;

/**
 * @param order what tells the order of this list from that of others
 * @param keys of the row behind which the next page begins
 */
export function pageCursor(order: string, keys: readonly PlaceKey[]): string {
  const text = JSON.stringify(keys);
  const sum = createHash('sha256').update(`${order}\n${text}`).digest('base64url');
  return Buffer.from(sum.slice(0, SUM_LENGTH) + text).toString('base64url');
}

/** The keys in a cursor of that order; undefined when the text is none. */
export function placeIn(
  order: string,
  types: readonly PlaceKeyType[],
  cursor: string,
): readonly PlaceKey[] | undefined {
  const text = decodeUtf8(Buffer.from(cursor, 'base64url'));
  const keys = text === undefined ? undefined : parsed(text.slice(SUM_LENGTH));
  if (keys === undefined || pageCursor(order, keys) !== cursor) return undefined;
  const isPlace =
    keys.length === types.length && types.every((type, at) => IS_KEY[type](keys[at] as PlaceKey));
  return isPlace ? keys : undefined;
}

function parsed(text: string): readonly PlaceKey[] | undefined {
  try {
    const keys: unknown = JSON.parse(text);
    return Array.isArray(keys) ? keys : undefined;
  } catch {
    // Whoever asks is told that the text is no cursor.
    return undefined;
  }
}
