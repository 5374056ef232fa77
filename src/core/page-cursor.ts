/**
 * Cursors of lists: the sort keys of the last row of a page, as opaque text, so that inserted or deleted rows do not
 * shift the next page. A checksum over the keys and the order detects cursors of other lists.
 */

import { createHash } from 'node:crypto';
import { INT32_MAX } from '../../schema/common.js';
import { isTimestamp, isUuid } from '../../schema/formats.js';
import { decodeUtf8, parseJson } from '../base/json-guard.js';

export type PlaceKey = string | number;

const IS_KEY = {
  uuid: (value: PlaceKey) => typeof value === 'string' && isUuid(value),
  timestamptz: (value: PlaceKey) => typeof value === 'string' && isTimestamp(value),
  text: (value: PlaceKey) => typeof value === 'string' && !value.includes('\0'),
  integer: (value: PlaceKey) => Number.isInteger(value) && Math.abs(Number(value)) <= INT32_MAX,
} as const;
export type PlaceKeyType = keyof typeof IS_KEY;
const SUM_LENGTH = 8;

/** @param order identifies the sort order of the list @param keys of the last row of the page */
export function pageCursor(order: string, keys: readonly PlaceKey[]): string {
  const text = JSON.stringify(keys);
  const sum = createHash('sha256').update(`${order}\n${text}`).digest('base64url');
  return Buffer.from(sum.slice(0, SUM_LENGTH) + text).toString('base64url');
}

/** The keys in a cursor of this order; undefined when the text is not one. */
export function placeIn(order: string, types: readonly PlaceKeyType[], cursor: string) {
  const text = decodeUtf8(Buffer.from(cursor, 'base64url'));
  const json = parseJson(text?.slice(SUM_LENGTH) ?? '');
  if (!json.ok || !Array.isArray(json.value)) return undefined;
  const keys = json.value as PlaceKey[];
  const isPlace =
    pageCursor(order, keys) === cursor &&
    keys.length === types.length &&
    types.every((type, at) => IS_KEY[type](keys[at]!));
  return isPlace ? keys : undefined;
}
