/**
 * Rows as lines: the cells of a row in the order of its columns, as text, for the inserts that every
 * instance makes. Postgres takes a line apart for a third of what an object of JSON costs it, whose
 * members are looked up by name and whose nested values are read three times (docs/decisions/0001-group-commit.md).
 *
 * Between cells stand control characters that no text of JSON has. A cell that cannot stand in a line makes
 * its whole row an object of JSON instead, as the rows of all other kinds are: so nothing is ever escaped.
 * Pure.
 */

import {
  fieldsOf,
  MUTATIONS,
  type Mutation,
  type MutationKind,
  type MutationRow,
} from './mutations.js';
import type { BaseType } from './tables.js';

/** Behind each cell but the last; behind each line but the last; and what stands for null. */
export const CELL_END = '\u001f';
export const LINE_END = '\n';
export const NULL_CELL = '\u0001';

export type LinedKind =
  | 'instance.insert'
  | 'output.insert'
  | 'audit.insert'
  | 'task.insert'
  | 'openTask.insert';

const LINED: readonly LinedKind[] = [
  'instance.insert',
  'output.insert',
  'audit.insert',
  'task.insert',
  'openTask.insert',
];

/** As text of the column's type, JSON as its text. */
export type Cell = string | number | boolean | null;
type CellsOf<K extends LinedKind> = { readonly [C in keyof MutationRow<K>]: Cell | undefined };
type Cells = Readonly<Record<string, Cell | undefined>>;

interface LinedColumn {
  readonly name: string;
  readonly type: BaseType;
}

/** Kinds whose rows may be lines, with their columns. Only plain inserts: COPY knows no conflicts. */
export const LINED_COLUMNS: ReadonlyMap<MutationKind, readonly LinedColumn[]> = new Map(
  LINED.flatMap((kind) => {
    const mutation: Mutation = MUTATIONS[kind];
    if (mutation.does !== 'insert' || mutation.onConflict !== 'error') return [];
    return [[kind, fieldsOf(mutation).map(([name, type]) => ({ name, type }))] as const];
  }),
);

/** In a text: what separates cells and lines, and halves of pairs, which UTF-8 does not have. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
const UNFIT = /[\0-\u001f\ud800-\udfff]/;

/** The text of one row, a line if it can be one. */
export function rowOf<K extends LinedKind>(kind: K, cells: CellsOf<K>): string {
  return LINED_KINDS.get(kind)!.ofCells(cells);
}

/** The same as an object in any case. */
export function objectOf<K extends LinedKind>(kind: K, cells: CellsOf<K>): string {
  return jsonOf(LINED_COLUMNS.get(kind)!, cells, cellOf);
}

/** The same of a row as it is put, with values of JSON rather than their texts; for other kinds its JSON. */
export function rowText(kind: MutationKind, row: object): string {
  const lined = LINED_KINDS.get(kind);
  return lined === undefined ? JSON.stringify(row) : lined.ofValues(row as Cells);
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

interface RowWriters {
  readonly ofCells: (cells: Cells) => string;
  readonly ofValues: (values: Cells) => string;
}

const LINED_KINDS: ReadonlyMap<MutationKind, RowWriters> = new Map(
  Array.from(LINED_COLUMNS, ([kind, columns]) => [
    kind,
    { ofCells: writerOf(columns, cellOf), ofValues: writerOf(columns, cellOfValue) },
  ]),
);

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
