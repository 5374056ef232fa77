/** The table component: columns are data, and on small screens each cell shows its label. */

import type { ReactNode } from 'react';
import { countOf } from '../lib/format.ts';
import { Button } from './button.tsx';
import { useHold, useSteady } from './steady.ts';
import styles from './table.module.css';

export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ReactNode;
  /** Aligned to the end. */
  readonly isNumber?: boolean;
}

export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly change: (ids: ReadonlySet<string>) => void;
}

/**
 * @param props.label what the table lists, for screen readers
 * @param props.empty shown if there are no rows
 * @param props.selection of rows by id; undefined: rows cannot be selected
 * @param props.liveOf identifies a list that updates by itself: its rows stay in place while the user points at them
 */
export function Table<Row>(props: {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  readonly empty?: ReactNode;
  readonly selection?: Selection | undefined;
  readonly liveOf?: string | undefined;
  /** Other rows are loading. */
  readonly isBusy?: boolean;
}) {
  const { label, columns, idOf, empty, selection, liveOf } = props;
  const [isHeld, hold] = useHold();
  const { rows, waiting } = useSteady(props.rows, idOf, {
    isHeld: isHeld && liveOf !== undefined,
    of: liveOf ?? '',
  });
  if (rows.length === 0 && empty) return empty;
  return (
    <div className={styles.frame} {...hold}>
      <table className={styles.table} aria-label={label} aria-busy={props.isBusy} role="table">
        <thead>
          <tr>
            {selection && (
              <SelectAll ids={rows.map(({ row }) => idOf(row))} selection={selection} />
            )}
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" className={isNumber ? styles.end : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ row, isGone }) => {
            const id = idOf(row);
            return (
              <tr key={id} role="row" inert={isGone} className={isGone ? styles.gone : undefined}>
                {selection && <SelectOne id={id} selection={selection} />}
                {columns.map(({ name, cell, isNumber }) => (
                  <td
                    key={name}
                    role="cell"
                    data-label={name}
                    className={isNumber ? styles.end : undefined}
                  >
                    <span>{cell(row)}</span>
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      {waiting > 0 && (
        <p className={styles.waiting} role="status">
          {countOf(waiting, 'new row')} will appear when the pointer leaves the list
        </p>
      )}
    </div>
  );
}

function SelectAll({ ids, selection }: { ids: readonly string[]; selection: Selection }) {
  const isAll = ids.length > 0 && ids.every((id) => selection.ids.has(id));
  return (
    <th scope="col" className={styles.check}>
      <input
        type="checkbox"
        aria-label="Select all rows of this page"
        checked={isAll}
        onChange={() => selection.change(withPage(selection.ids, ids, !isAll))}
      />
    </th>
  );
}

/** Keeps the selection on other pages. */
export function withPage(
  selected: ReadonlySet<string>,
  page: readonly string[],
  isSelected: boolean,
): ReadonlySet<string> {
  const others = [...selected].filter((id) => !page.includes(id));
  return new Set(isSelected ? [...others, ...page] : others);
}

function SelectOne({ id, selection }: { id: string; selection: Selection }) {
  const isSelected = selection.ids.has(id);
  return (
    <td role="cell" className={styles.check} data-label="Select">
      <input
        type="checkbox"
        aria-label={`Select ${id}`}
        checked={isSelected}
        onChange={() => selection.change(withPage(selection.ids, [id], !isSelected))}
      />
    </td>
  );
}

/** A note below a table about what it leaves out. */
export function TableNote({ children }: { readonly children: ReactNode }) {
  return <p className={styles.note}>{children}</p>;
}

/**
 * Navigation of a list with cursor pagination. The cursor is in the address, so that Back leads to the previous page.
 * @param props.cursor of this page; undefined on the first one
 * @param props.next of the next page; undefined on the last one
 */
export function Pager(props: {
  readonly cursor: string | undefined;
  readonly next: string | undefined;
  readonly onPage: (cursor: string | undefined) => void;
}) {
  const { cursor, next, onPage } = props;
  if (cursor === undefined && next === undefined) return null;
  return (
    <nav className={styles.pager} aria-label="Pages">
      <Button disabled={cursor === undefined} onClick={() => onPage(undefined)}>
        First page
      </Button>
      <Button disabled={next === undefined} onClick={() => onPage(next)}>
        Next page
      </Button>
    </nav>
  );
}
