/** Cursors of the change feed: what is one, what is none, and what they stand for. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cursorOf, FEED_START, placeBefore, placeOf } from '../../src/core/change-cursor.js';

const ID = '01950000-0000-7000-8000-00000000abcd';
const AT = Date.parse('2026-03-01T12:00:00.123Z');

const encoded = (text: string) => Buffer.from(text).toString('base64url');
const ofFields = (created_at: unknown, id: unknown) => encoded(JSON.stringify({ created_at, id }));

test('a cursor is base64url without padding of the JSON of time and id, and is read back', () => {
  const cursor = cursorOf({ at: AT, id: ID });
  assert.match(cursor, /^[A-Za-z0-9_-]+$/);
  assert.deepEqual(JSON.parse(Buffer.from(cursor, 'base64url').toString()), {
    created_at: '2026-03-01T12:00:00.123Z',
    id: ID,
  });
  for (const place of [{ at: AT, id: ID }, FEED_START, placeBefore(AT)]) {
    assert.deepEqual(placeOf(cursorOf(place)), place);
  }
});

test('a time with another offset, another order of fields and upper case name the same place', () => {
  const place = { at: AT, id: ID };
  assert.deepEqual(placeOf(ofFields('2026-03-01T13:00:00.123+01:00', ID.toUpperCase())), place);
  const seen = placeOf(encoded(`{"id":"${ID}", "created_at":"2026-03-01T12:00:00.123Z"}`));
  assert.deepEqual(seen, place);
});

test('a time between two milliseconds lies behind every entry of the first', () => {
  const id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  assert.deepEqual(placeOf(ofFields('2026-03-01T12:00:00.123456Z', ID)), { at: AT, id });
  assert.deepEqual(placeOf(ofFields('2026-03-01T12:00:00.123000Z', ID)), { at: AT, id: ID });
});

const TIME = '2026-03-01T12:00:00Z';
const MALFORMED: Readonly<Record<string, string>> = {
  'no base64url': '%%%',
  'base64 with padding': `${ofFields(TIME, ID)}=`,
  'base64 of the other alphabet': Buffer.from(`{"created_at":"${TIME}","id":"${ID}","x":"??>>"}`)
    .toString('base64')
    .replace(/=+$/, ''),
  'a length that no text has': 'a',
  'bytes that are not UTF-8': Buffer.from([0xff, 0xfe, 0xfd]).toString('base64url'),
  'no JSON': encoded('created_at'),
  'an array': encoded(`["${TIME}","${ID}"]`),
  null: encoded('null'),
  'a number': encoded('1'),
  'no time': encoded(`{"id":"${ID}"}`),
  'no id': encoded(`{"created_at":"${TIME}"}`),
  'a time that is a number': ofFields(AT, ID),
  'a time without an offset': ofFields('2026-03-01T12:00:00', ID),
  'a day that does not exist': ofFields('2026-02-30T12:00:00Z', ID),
  'a year beyond what can be stored': ofFields('12026-03-01T12:00:00Z', ID),
  'an id that is no UUID': ofFields(TIME, 'abc'),
  'an id with something behind it': ofFields(TIME, `${ID}'`),
  'an id that is null': ofFields(TIME, null),
};

for (const [what, cursor] of Object.entries(MALFORMED)) {
  test(`it is no cursor: ${what}`, () => {
    assert.equal(placeOf(cursor), undefined);
  });
}
