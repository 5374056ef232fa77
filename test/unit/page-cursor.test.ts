/** Cursors of lists: what one holds, and what is none. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type PlaceKey,
  type PlaceKeyType,
  pageCursor,
  placeIn,
} from '../../src/core/page-cursor.js';

const ORDER = 'created_at desc, id desc';
const TYPES: readonly PlaceKeyType[] = ['timestamptz', 'uuid'];
const PLACE: readonly PlaceKey[] = [
  '2026-01-02T03:04:05.678Z',
  '01950000-0000-7000-8000-000000000001',
];

test('a cursor gives its place back, whatever the keys are', () => {
  assert.deepEqual(placeIn(ORDER, TYPES, pageCursor(ORDER, PLACE)), PLACE);
  for (const name of ['', 'a "quoted" name', 'ünïcode 🚲', '\u2028', '__proto__']) {
    const keys = [name, -7];
    assert.deepEqual(placeIn('name', ['text', 'integer'], pageCursor('name', keys)), keys);
  }
});

test('a cursor can stand in an address as it is', () => {
  assert.match(pageCursor(ORDER, ['ÿ?>', '~~~']), /^[\w-]+$/);
});

test('what no list of this order gave is none', () => {
  const cursor = pageCursor(ORDER, PLACE);
  const none = (text: string) => assert.equal(placeIn(ORDER, TYPES, text), undefined, text);
  for (let at = 0; at < cursor.length; at += 1) {
    none(cursor.slice(0, at) + (cursor[at] === 'A' ? 'B' : 'A') + cursor.slice(at + 1));
    none(cursor.slice(0, at));
  }
  none(`${cursor}=`);
  none(` ${cursor}`);
  none('null');
  none(pageCursor('created_at, id', PLACE));
});

test('a sum over keys of another kind makes no place of them', () => {
  const [time = '', id = ''] = PLACE;
  for (const keys of [
    [],
    [time],
    [time, id, id],
    ['yesterday', id],
    [time, 'x'],
    [7, id],
    [time, null],
  ]) {
    const cursor = pageCursor(ORDER, keys as PlaceKey[]);
    assert.equal(placeIn(ORDER, TYPES, cursor), undefined, JSON.stringify(keys));
  }
  assert.equal(placeIn('n', ['integer'], pageCursor('n', [1.5])), undefined);
  assert.equal(placeIn('n', ['integer'], pageCursor('n', [2 ** 31])), undefined);
  assert.equal(placeIn('n', ['text'], pageCursor('n', ['a\0'])), undefined);
});
