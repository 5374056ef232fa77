/** The table component: columns are data, and on small screens each cell shows its label. */

import { ArrowDown, ArrowUp, ChevronsUpDown } from 'lucide-react';
import { Fragment, type ReactNode } from 'react';
import { Button } from './button.tsx';
import styles from './table.module.css';

export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ReactNode;
  /** Aligned to the end. */
  readonly isNumber?: boolean;
  /** The head is a button. */
  readonly sort?: Sorting;
}

export interface Sorting {
  /** Undefined: the rows are not sorted by it. */
  readonly direction: 'ascending' | 'descending' | undefined;
  readonly onSort: () => void;
}

export interface Opened<Row> {
  readonly id: string | undefined;
  readonly content: (row: Row) => ReactNode;
}

export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly change: (ids: ReadonlySet<string>) => void;
}

export interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  readonly empty?: ReactNode;
  readonly selection?: Selection | undefined;
  readonly standOf?: (row: Row) => 'gone' | 'behind' | undefined;
  /** Other rows are loading. */
  readonly isBusy?: boolean;
  /** The row with details below it. */
  readonly opened?: Opened<Row> | undefined;
  readonly isCompact?: boolean;
  /** The heads stay in sight, below the line above the table. */
  readonly isSticky?: boolean;
}

/**
 * @param props.label what the table lists, for screen readers
 * @param props.empty shown if there are no rows
 * @param props.selection of rows by id; undefined: rows cannot be selected
 * @param props.standOf of rows that are not up to date: those that are `gone` cannot be used any more
 */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, idOf, empty, selection, standOf, opened } = props;
  if (rows.length === 0 && empty) return empty;
  return (
    <div className={classes(styles.frame, props.isSticky && styles.sticky)}>
      <table
        className={classes(styles.table, props.isCompact && styles.compact)}
        aria-label={label}
        aria-busy={props.isBusy}
        role="table"
      >
        <thead>
          <tr>
            {selection && <SelectAll ids={rows.map(idOf)} selection={selection} />}
            {columns.map(({ name, isNumber, sort }) => (
              <th
                key={name}
                scope="col"
                className={isNumber ? styles.end : undefined}
                aria-sort={sort?.direction}
              >
                {sort === undefined ? name : <SortHead name={name} sort={sort} />}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const id = idOf(row);
            const stand = standOf?.(row);
            return (
              <Fragment key={id}>
                <tr role="row" inert={stand === 'gone'} className={stand && styles[stand]}>
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
                {opened?.id === id && (
                  <tr role="row" className={styles.opened}>
                    <td role="cell" colSpan={columns.length + (selection ? 1 : 0)}>
                      <div>{opened.content(row)}</div>
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function SortHead({ name, sort }: { readonly name: string; readonly sort: Sorting }) {
  const { direction, onSort } = sort;
  const Icon =
    direction === undefined ? ChevronsUpDown : direction === 'ascending' ? ArrowUp : ArrowDown;
  return (
    <button type="button" className={styles.sort} onClick={onSort}>
      {name}
      <Icon size={13} aria-hidden />
    </button>
  );
}

const classes = (...names: readonly (string | false | undefined)[]) =>
  names.filter(Boolean).join(' ');

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
