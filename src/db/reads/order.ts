/** Orders of lists as data. An order is total, so that the sort keys of a row are a cursor. Pure. */

import { invalid } from '../../base/errors.js';
import { type PlaceKeyType, pageCursor, placeIn } from '../../core/page-cursor.js';
import { type ColumnOf, columnType, type Table } from '../table.js';
import type { Conditions } from './query.js';

export interface Order {
  readonly text: string;
  /** The cursor after a row, which has the keys as members. */
  cursorAfter(row: object): string;
  /** Selects the rows after the cursor. @throws EngineError 400 on a cursor of another order */
  goOn(conditions: Conditions, cursor: string): void;
}

interface OrderKey {
  readonly name: string;
  readonly type: PlaceKeyType;
  readonly column: string;
  readonly minus?: string;
}

type Direction = 'ascending' | 'descending';

/** A column; with a minus, a number in descending order. */
type SortKey<T extends Table> = ColumnOf<T> | `-${ColumnOf<T>}`;

export function orderBy<T extends Table>(
  table: T,
  keys: readonly SortKey<T>[],
  direction: Direction = 'ascending',
  alias: string = table.name,
): Order {
  const parts = keys.map((key) => {
    const [minus, name] = key.startsWith('-') ? ['-', key.slice(1)] : ['', key];
    const type = columnType(table, name).base as PlaceKeyType;
    return { name, type, minus, column: `${alias}.${name}` };
  });
  return orderOf(parts, direction);
}

/** For rows that belong to no table. */
export function orderOf(keys: readonly OrderKey[], direction: Direction = 'ascending'): Order {
  const parts = keys.map((key) => ({ minus: '', ...key }));
  const isDescending = direction === 'descending';
  const text = parts
    .map(({ column, minus }) => (isDescending === (minus === '') ? `${column} desc` : column))
    .join(', ');
  return {
    text,
    cursorAfter: (row) => {
      const values = row as Readonly<Record<string, string | number>>;
      const place = parts.map(({ name }) => values[name] as string | number);
      return pageCursor(text, place);
    },
    goOn: (conditions, cursor) => {
      const types = parts.map(({ type }) => type);
      const place = placeIn(text, types, cursor);
      if (place === undefined)
        throw invalid('cursor is not one that an earlier page of this list gave');
      const columns = parts.map(({ column, minus }) => minus + column);
      const values = parts.map(
        ({ type, minus }, at) => `${minus}${conditions.param(place[at])}::${type}`,
      );
      const after = isDescending ? '<' : '>';
      conditions.add(`(${columns.join(', ')}) ${after} (${values.join(', ')})`);
    },
  };
}
