/** Lists stay as they are while somebody is about to act on them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freshRows, type SteadyOptions, steadyRows } from '../src/lib/steady.ts';

interface Row {
  readonly id: string;
  readonly state?: string;
}

const rows = (...ids: string[]): Row[] => ids.map((id) => ({ id }));
const shown = (before: readonly Row[], now: readonly Row[], options: SteadyOptions = {}) => {
  const { rows: all, waiting } = steadyRows(freshRows(before), now, ({ id }) => id, options);
  return [all.map(({ row, isGone }) => (isGone ? `(${row.id})` : row.id)).join(' '), waiting];
};

test('what is gone stays in its place, and new rows wait', () => {
  assert.deepEqual(shown(rows('a', 'b', 'c'), rows('new', 'a', 'c')), ['a (b) c', 1]);
  assert.deepEqual(shown(rows('a', 'b'), rows('b', 'a')), ['a b', 0]);
  assert.deepEqual(shown(rows('a'), []), ['(a)', 0]);
});

test('where new ones come below, they do not wait', () => {
  assert.deepEqual(shown(rows('a', 'b'), rows('b', 'c'), { appends: true }), ['(a) b c', 0]);
});

test('rows are shown as they are now, and one that comes back is gone no longer', () => {
  const idOf = ({ id }: Row) => id;
  const gone = steadyRows(freshRows(rows('a')), [], idOf, {}).rows;
  const { rows: back } = steadyRows(gone, [{ id: 'a', state: 'failed' }], idOf, {});
  assert.deepEqual(back, [{ row: { id: 'a', state: 'failed' }, isGone: false, isBehind: false }]);
});

test('rows that new ones have moved to the next page are behind, not gone', () => {
  const idOf = ({ id }: Row) => id;
  const page = freshRows(rows('a', 'b', 'c', 'd'));
  const { rows: all, waiting } = steadyRows(page, rows('y', 'x', 'a', 'c'), idOf, {
    hasMore: true,
  });
  assert.deepEqual(
    all.map(({ row, isGone, isBehind }) => [row.id, isGone, isBehind]),
    [
      ['a', false, false],
      ['b', true, false],
      ['c', false, false],
      ['d', false, true],
    ],
  );
  assert.equal(waiting, 2);
});
