/** Positions in the change feed (docs/changes.md), in the order of (time, id). Pure. */

import { toUnixMs } from '../../../schema/common.js';
import { decodeUtf8 } from '../../../src/base/json-guard.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';

/** After every entry up to this one, which need not exist. */
export interface ChangePlace {
  readonly at: UnixMs;
  /** Lower case. */
  readonly id: string;
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Before every entry: no id is as small. */
export const FEED_START: ChangePlace = { at: 0, id: FIRST_ID };

/** After all entries below that time, and before those at it. */
export function placeBefore(at: UnixMs): ChangePlace {
  return { at: at - 1, id: LAST_ID };
}

/** base64url of `{"created_at", "id"}` without padding. */
export function cursorOf({ at, id }: ChangePlace): string {
  return cursorText(isoTime(at), id);
}

/** The same for an entry with its time as text. */
export function cursorText(createdAt: string, id: string): string {
  return Buffer.from(`{"created_at":"${createdAt}","id":"${id}"}`).toString('base64url');
}

const BASE64URL = /^[A-Za-z0-9_-]+$/;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
/** A fraction finer than milliseconds. */
const FINER_THAN_MS = /\.\d{3}\d*[1-9]/;

/** Undefined for an invalid cursor. */
export function placeOf(cursor: string): ChangePlace | undefined {
  if (!BASE64URL.test(cursor) || cursor.length % 4 === 1) return undefined;
  const text = decodeUtf8(Buffer.from(cursor, 'base64url'));
  const fields = text === undefined ? undefined : parsed(text);
  if (typeof fields?.created_at !== 'string' || typeof fields.id !== 'string') return undefined;
  const at = toUnixMs(fields.created_at);
  const id = fields.id.toLowerCase();
  if (at === undefined || !UUID.test(id)) return undefined;
  // Entries have whole milliseconds: the cursor is after all of that one.
  return { at, id: FINER_THAN_MS.test(fields.created_at) ? LAST_ID : id };
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    // The caller reports an invalid cursor.
    return undefined;
  }
}
