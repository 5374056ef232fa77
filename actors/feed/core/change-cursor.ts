/** Positions in the change feed (docs/changes.md), in the order of (time, id). */

import { toUnixMs } from '../../../schema/common.js';
import { isJsonObject } from '../../../src/base/json.js';
import { decodeUtf8, parseJson } from '../../../src/base/json-guard.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';

/** The position after this entry, which need not exist. */
export interface ChangePlace {
  readonly at: UnixMs;
  /** Lower case. */
  readonly id: string;
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
export const FEED_START: ChangePlace = { at: 0, id: FIRST_ID };

/** Before the first entry at that time. */
export function placeBefore(at: UnixMs): ChangePlace {
  return { at: at - 1, id: LAST_ID };
}

/** base64url of `{"created_at", "id"}` without padding. */
export function cursorOf({ at, id }: ChangePlace): string {
  return Buffer.from(`{"created_at":"${isoTime(at)}","id":"${id}"}`).toString('base64url');
}

const BASE64URL = /^[A-Za-z0-9_-]+$/;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const FINER_THAN_MS = /\.\d{3}\d*[1-9]/;

/** Undefined for an invalid cursor. */
export function placeOf(cursor: string): ChangePlace | undefined {
  if (!BASE64URL.test(cursor) || cursor.length % 4 === 1) return undefined;
  const text = decodeUtf8(Buffer.from(cursor, 'base64url'));
  const parsed = parseJson(text ?? '');
  if (!parsed.ok || !isJsonObject(parsed.value)) return undefined;
  const { created_at, id: named } = parsed.value;
  if (typeof created_at !== 'string' || typeof named !== 'string') return undefined;
  const at = toUnixMs(created_at);
  const id = named.toLowerCase();
  if (at === undefined || !UUID.test(id)) return undefined;
  // Entries have whole milliseconds, so the cursor is after all entries of this one.
  return { at, id: FINER_THAN_MS.test(created_at) ? LAST_ID : id };
}
