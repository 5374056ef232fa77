/**
 * Rows as lines: the cells of a row in the order of its columns, as text, for the inserts that every
 * instance makes. Postgres takes a line apart for a third of what an object of JSON costs it, whose
 * members are looked up by name and whose nested values are read three times (docs/decisions/0001-group-commit.md).
 *
 * Between cells stand control characters that no text of JSON has. A cell that cannot stand in a line makes
 * its whole row an object of JSON instead, as the rows of all other kinds are: so nothing is ever escaped.
 * Pure.
 */

import { fieldsOf, type Insert, type Mutation } from './mutation.js';
import type { BaseType } from './table.js';

/** Behind each cell but the last; behind each line but the last; and what stands for null. */
export const CELL_END = '\u001f';
export const LINE_END = '\n';
export const NULL_CELL = '\u0001';

/** As text of the column's type, JSON as its text. */
export type Cell = string | number | boolean | null;
type CellsOf<Row> = { readonly [C in keyof Row]: Cell | undefined };
type Cells = Readonly<Record<string, Cell | undefined>>;

interface LinedColumn {
  readonly name: string;
  readonly type: BaseType;
}

export interface RowWriters {
  readonly columns: readonly LinedColumn[];
  readonly ofCells: (cells: Cells) => string;
  readonly ofValues: (values: Cells) => string;
}

export type Lined<Row extends object> = Insert<Row> & { readonly lines: RowWriters };

/** The insert with rows that may be lines. Only plain ones: COPY knows no conflicts. */
export function lined<Row extends object>(insert: Insert<Row>): Lined<Row> {
  if (insert.onConflict !== 'error') throw new Error('lines have no conflicts');
  const columns = fieldsOf(insert).map(([name, type]) => ({ name, type }));
  const ofCells = writerOf(columns, cellOf);
  return { ...insert, lines: { columns, ofCells, ofValues: writerOf(columns, cellOfValue) } };
}

/** In a text: what separates cells and lines, and halves of pairs, which UTF-8 does not have. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const UNFIT = /[\0-\u001f\ud800-\udfff]/;

/** The text of one row, a line if it can be one. */
export function rowOf<Row extends object>(
  { lines }: Lined<Row>,
  cells: CellsOf<NoInfer<Row>>,
): string {
  return lines.ofCells(cells as Cells);
}

/** The same as an object in any case. */
export function objectOf<Row extends object>(
  { lines }: Lined<Row>,
  cells: CellsOf<NoInfer<Row>>,
): string {
  return jsonOf(lines.columns, cells as Cells, cellOf);
}

/** The same of a row as it is put, with values of JSON rather than their texts; for other kinds its JSON. */
export function rowText(mutation: Mutation, row: object): string {
  const lines = mutation.does === 'insert' ? mutation.lines : undefined;
  return lines === undefined ? JSON.stringify(row) : lines.ofValues(row as Cells);
}

/** The cells of a line as the parameters of a statement. */
export function cellsOf(line: string): (string | null)[] {
  return line.split(CELL_END).map((cell) => (cell === NULL_CELL ? null : cell));
}

/** Whether the text is a line rather than an object of JSON: no first cell begins like one. */
export function isLine(row: string): boolean {
  return row.charCodeAt(0) !== 0x7b;
}

type CellOf = (type: BaseType, value: Cell | undefined) => Cell | undefined;

const cellOf: CellOf = (_type, cell) => cell;
const cellOfValue: CellOf = (type, value) => (type === 'json' ? JSON.stringify(value) : value);

/** What writes rows with these columns: code that names each of them, which a loop over them takes twice as long for. */
function writerOf(columns: readonly LinedColumn[], read: CellOf): (cells: Cells) => string {
  const parts = columns.map(({ name, type }) => {
    if (type === 'json') return `json(read('json',cells.${name}))`;
    return `${type === 'text' ? 'text' : 'plain'}(cells.${name})`;
  });
  const code = `return (cells) => ${parts.join(`+'${CELL_END}'+`)}`;
  const lineOf = new Function('read', 'json', 'text', 'plain', code)(read, json, text, plain) as (
    cells: Cells,
  ) => string;
  return (cells) => {
    const line = lineOf(cells);
    return isFit(line) ? line : jsonOf(columns, cells, read);
  };
}

function json(cell: Cell | undefined): Cell {
  return cell == null || cell === 'null' ? NULL_CELL : cell;
}

function plain(cell: Cell | undefined): Cell {
  return cell ?? NULL_CELL;
}

/** What a line cannot have makes it none. */
function text(cell: Cell | undefined): Cell {
  if (cell == null) return NULL_CELL;
  return UNFIT.test(cell as string) ? LINE_END : cell;
}

/**
 * JSON may have line breaks between its tokens, when its text is that of somebody else. And Postgres reads escapes
 * when it takes an object apart, and refuses those that stand for no text.
 */
function isFit(line: string): boolean {
  return !line.includes('\n') && !line.includes('\r') && !line.includes('\\u');
}

function jsonOf(columns: readonly LinedColumn[], cells: Cells, read: CellOf): string {
  const members = columns.map(({ name, type }) => {
    const cell = read(type, cells[name]);
    if (isNull(type, cell)) return `"${name}":null`;
    return `"${name}":${type === 'json' ? cell : JSON.stringify(cell)}`;
  });
  return `{${members.join(',')}}`;
}

/** The null of JSON is that of SQL, as in the rows that are objects. */
function isNull(type: BaseType, cell: Cell | undefined): boolean {
  return cell == null || (type === 'json' && cell === 'null');
}
