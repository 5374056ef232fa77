/** The one table: what it says to screen readers, and how its rows are selected. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { Table, withPage } from '../src/components/table.tsx';

test('selecting a whole page leaves what is selected on others', () => {
  const selected = withPage(new Set(['a', 'b']), ['c', 'd'], true);
  assert.deepEqual([...selected], ['a', 'b', 'c', 'd']);
  assert.deepEqual([...withPage(selected, ['a', 'b'], false)], ['c', 'd']);
});

test('every cell of a row is one, that which selects it too', () => {
  const html = renderToStaticMarkup(
    createElement(Table<string>, {
      label: 'Names',
      columns: [{ name: 'Name', cell: (row) => row }],
      rows: ['a'],
      idOf: (row) => row,
      selection: { ids: new Set<string>(), change: () => undefined },
    }),
  );
  assert.equal(html.match(/<td/g)?.length, 2);
  assert.equal(html.match(/<td[^>]* role="cell"/g)?.length, 2);
});
