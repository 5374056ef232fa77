/** Lists stay as they are while somebody is about to act on them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freshRows, steadyRows } from '../src/lib/steady.ts';

interface Row {
  readonly id: string;
  readonly state?: string;
}

const rows = (...ids: string[]): Row[] => ids.map((id) => ({ id }));
const shown = (before: readonly Row[], now: readonly Row[], appends = false) => {
  const { rows: all, waiting } = steadyRows(freshRows(before), now, ({ id }) => id, appends);
  return [all.map(({ row, isGone }) => (isGone ? `(${row.id})` : row.id)).join(' '), waiting];
};

test('what is gone stays in its place, and new rows wait', () => {
  assert.deepEqual(shown(rows('a', 'b', 'c'), rows('new', 'a', 'c')), ['a (b) c', 1]);
  assert.deepEqual(shown(rows('a', 'b'), rows('b', 'a')), ['a b', 0]);
  assert.deepEqual(shown(rows('a'), []), ['(a)', 0]);
});

test('where new ones come below, they do not wait', () => {
  assert.deepEqual(shown(rows('a', 'b'), rows('b', 'c'), true), ['(a) b c', 0]);
});

test('rows are shown as they are now, and one that comes back is gone no longer', () => {
  const idOf = ({ id }: Row) => id;
  const gone = steadyRows(freshRows(rows('a')), [], idOf, false).rows;
  const { rows: back } = steadyRows(gone, [{ id: 'a', state: 'failed' }], idOf, false);
  assert.deepEqual(back, [{ row: { id: 'a', state: 'failed' }, isGone: false }]);
});
