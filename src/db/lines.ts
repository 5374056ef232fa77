/**
 * Rows as lines: the cells of a row as text, in the order of its columns, for the inserts and updates that
 * every instance makes. Postgres parses a line for a third of the cost of a JSON object, whose members are
 * looked up by name and whose nested values are read three times (docs/decisions/0001-group-commit.md).
 *
 * The separators are control characters, which JSON text never contains. A row with a cell that a line
 * cannot hold is sent as a JSON object, so nothing is escaped. Pure.
 */

import { fieldsOf, type Insert, type Mutation, type Update } from './mutation.js';
import type { BaseType } from './table.js';

export const CELL_END = '\u001f';
export const LINE_END = '\n';
export const NULL_CELL = '\u0001';

/** A value of the column's type; JSON as its text. */
export type Cell = string | number | boolean | null;
type CellsOf<Row> = { readonly [C in keyof Row]: Cell | undefined };
type Cells = Readonly<Record<string, Cell | undefined>>;

type LinedColumn = { readonly name: string; readonly type: BaseType };

export interface RowWriters {
  readonly columns: readonly LinedColumn[];
  readonly ofCells: (cells: Cells) => string;
  readonly ofValues: (values: Cells) => string;
}

export interface Lined<Row extends object> extends Pick<Mutation<Row>, 'row'> {
  readonly lines: RowWriters;
}

/** Allows lines as rows. */
export function lined<M extends Insert | Update>(mutation: M): M & { readonly lines: RowWriters } {
  const columns = fieldsOf(mutation).map(([name, type]) => ({ name, type }));
  const ofCells = writerOf(columns, cellOf);
  return { ...mutation, lines: { columns, ofCells, ofValues: writerOf(columns, cellOfValue) } };
}

/** Separators, and lone surrogates, which UTF-8 cannot encode. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const UNFIT = /[\0-\u001f\ud800-\udfff]/;

export function rowOf<Row extends object>(
  { lines }: Lined<Row>,
  cells: CellsOf<NoInfer<Row>>,
): string {
  return lines.ofCells(cells as Cells);
}

/** Takes JSON values instead of their texts. */
export function rowText(mutation: Mutation, row: object): string {
  return linesOf(mutation)?.ofValues(row as Cells) ?? JSON.stringify(row);
}

export function linesOf(mutation: Mutation): RowWriters | undefined {
  return mutation.does === 'insert' || mutation.does === 'update' ? mutation.lines : undefined;
}

export function cellsOf(line: string): (string | null)[] {
  return line.split(CELL_END).map((cell) => (cell === NULL_CELL ? null : cell));
}

/** A JSON object begins with a brace, a first cell never does. */
export function isLine(row: string): boolean {
  return row.charCodeAt(0) !== 0x7b;
}

export interface RowOfKind {
  readonly mutation: Mutation;
  readonly row: string;
}

/** An earlier row with the values of a later one, whose columns are the first ones of the earlier row. */
export function laidOver(earlier: RowOfKind, later: RowOfKind): RowOfKind {
  const { mutation } = earlier;
  if (isLine(earlier.row) && isLine(later.row)) {
    const first = later.row.split(CELL_END);
    const cells = [...first, ...earlier.row.split(CELL_END).slice(first.length)];
    return { mutation, row: cells.join(CELL_END) };
  }
  // Postgres takes the last value of a field that both rows have, as every reader of JSON does.
  return { mutation, row: `${jsonOfRow(earlier).slice(0, -1)},${jsonOfRow(later).slice(1)}` };
}

function jsonOfRow({ mutation, row }: RowOfKind): string {
  if (!isLine(row)) return row;
  const { columns } = linesOf(mutation)!;
  const cells = cellsOf(row);
  const entries = columns.map(({ name }, i) => [name, cells[i]] as const);
  return jsonOf(columns, Object.fromEntries(entries), cellOf);
}

type CellOf = (type: BaseType, value: Cell | undefined) => Cell | undefined;

const cellOf: CellOf = (_type, cell) => cell;
const cellOfValue: CellOf = (type, value) => (type === 'json' ? JSON.stringify(value) : value);

/** Generates code that names each column: a loop over them takes twice as long. */
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

/** A cell that a line cannot hold becomes a line end, which `isFit` rejects. */
function text(cell: Cell | undefined): Cell {
  if (cell == null) return NULL_CELL;
  return UNFIT.test(cell as string) ? LINE_END : cell;
}

/** JSON of callers may contain line breaks, and escapes that Postgres rejects in objects. */
function isFit(line: string): boolean {
  return !line.includes('\n') && !line.includes('\r') && !line.includes('\\u');
}

function jsonOf(columns: readonly LinedColumn[], cells: Cells, read: CellOf): string {
  const members = columns.map(({ name, type }) => {
    const cell = read(type, cells[name]);
    // JSON null is stored as SQL null, as in lines.
    if (cell == null || (type === 'json' && cell === 'null')) return `"${name}":null`;
    return `"${name}":${type === 'json' ? cell : JSON.stringify(cell)}`;
  });
  return `{${members.join(',')}}`;
}
