/** Tables and records, as lines of so many cells. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ago, type Column, cellsOf, recordLines, tableLines } from '../../cli/table.js';
import { palette } from '../../src/base/log-text.js';

type Row = { readonly id: string; readonly name: string; readonly why: string };

const COLUMNS: readonly Column<Row>[] = [
  { head: 'ID', text: ({ id }) => id, isWhole: true },
  { head: 'NAME', text: ({ name }) => name },
  { head: 'WHY', text: ({ why }) => why },
];

const ID = '0195c0de-0000-7000-8000-000000000001';
const WHY = 'because of a reason that takes even more room';
const ROWS: readonly Row[] = [
  { id: ID, name: 'a name that is rather long', why: WHY },
  { id: ID, name: '注文パイプライン', why: '👍 paid' },
];

const lines = (width: number | undefined, rows = ROWS) =>
  tableLines(COLUMNS, rows, { width, paint: palette(false), now: 0 });

for (const width of [60, 80, 200]) {
  test(`no line of a table is wider than ${width} cells, and ids stay whole`, () => {
    for (const line of lines(width)) assert.ok(cellsOf(line) <= width, line);
    for (const line of lines(width).slice(1)) assert.ok(line.startsWith(ID), line);
  });
}

test('columns that do not fit are left out from the right', () => {
  assert.equal(lines(46)[0]?.trimEnd(), 'ID' + ' '.repeat(36) + 'NAME');
  assert.equal(lines(40)[0]?.trimEnd(), 'ID');
});

test('where nobody looks at a terminal nothing is cut', () => {
  assert.ok(lines(undefined)[1]?.endsWith(WHY));
});

test('wide letters stand in columns as well', () => {
  const [head = '', , wide = ''] = lines(200);
  const at = head.indexOf('WHY');
  assert.equal(cellsOf(wide.slice(0, wide.indexOf('👍'))), at);
});

test('what is cut ends with a mark', () => assert.match(lines(80)[1] ?? '', /…/));

test('nothing in a cell can move the cursor', () => {
  const [, line = ''] = lines(200, [{ id: 'x', name: 'a\u001b[2Jb', why: 'two\nlines' }]);
  assert.ok(!line.includes('\u001b') && !line.includes('\n'));
});

test('a record shows each member, and what is nested and long below it', () => {
  const place = { width: 40, paint: palette(false), now: 0 };
  const shown = recordLines({ id: 'x', none: null, data: { text: 'a'.repeat(60) } }, place);
  assert.deepEqual(shown.slice(0, 3), ['id    x', 'none  -', 'data  {']);
});

test('times are told as people tell them', () => {
  const now = Date.parse('2026-01-01T12:00:00Z');
  assert.equal(ago('2026-01-01T11:57:00Z', now), '3m ago');
  assert.equal(ago('2026-01-03T12:00:00Z', now), 'in 2d');
  assert.equal(ago('2026-01-01T12:00:00Z', now), 'now');
  assert.equal(ago(null, now), '-');
});
