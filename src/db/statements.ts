/**
 * The SQL of the writer: one statement per kind of mutation, which takes a JSON array of rows, and for some
 * kinds another one for lines (`lines.ts`). Derived from the mutations of the rooms; docs/statements.sql
 * lists them. No statement reads a table to decide: the actor that owns the row has decided.
 */

import { CELL_END, LINE_END, linesOf, NULL_CELL } from './lines.js';
import {
  type Delete,
  fieldsOf,
  foundBy,
  type Gate,
  type Insert,
  type Mutation,
  special,
  type Update,
} from './mutation.js';
import { type ColumnOf, columnType, type Table, table } from './table.js';

export interface Statement {
  readonly name: string;
  readonly text: string;
  /** The rows follow as COPY data, not as a parameter. */
  readonly isCopy?: true;
  /** The variant for one line, with its cells as parameters. */
  readonly ofCells?: Statement;
}

/**
 * Settings of the writer's sessions. Every statement finds its rows by an index, through a nested loop over
 * the given rows. A plan cached while a table was small would scan the whole table until it is analysed, so
 * such plans are disabled. No plan depends on the rows, so generic plans are used from the first execution.
 */
export const WRITER_SETTINGS = `
set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off; set jit = off;
set plan_cache_mode = force_generic_plan`;

export const LANES = table(
  'lanes',
  ['lane'],
  { lane: 'smallint', epoch: 'bigint' },
  { stays: 'the fence of this cell' },
);
export const LANE_FLUSHES = table(
  'lane_flushes',
  ['lane', 'batch'],
  { lane: 'smallint', batch: 'bigint' },
  { stays: 'which flushes of this cell were committed' },
);

/** For a flush that needs the results of its gates: two exchanges in one explicit transaction. */
export const BEGIN: Statement = { name: 'writer_begin', text: 'begin' };
export const COMMIT: Statement = { name: 'writer_commit', text: 'commit' };

/**
 * $1 lane, $2 epoch, $3 number of the flush. Locks the lane's row, so that a take-over waits, and records
 * the number. Fails when another epoch owns the lane (23502: there is no row, so the lane is null) or the
 * flush was committed before (23505); the server then skips the rest of the exchange.
 *
 * The lock is written in place. An update would leave a dead version per flush, which cannot be removed
 * while any session holds an old snapshot, and which every later flush would step over
 * (docs/decisions/0002-the-fence.md).
 */
export const FENCE: Statement = {
  name: 'writer_fence',
  text: `
with owned as materialized (
  select lane from lanes where lane = $1::int and epoch = $2::bigint for no key update
)
insert into lane_flushes (lane, batch) select (select lane from owned), $3::bigint`,
};

/** How many of the latest numbers of a lane are kept; at most twice as many exist. */
export const FLUSHES_KEPT = 1_000;

/** $1 lane; range from $2 to before $3. Ranges never overlap: removed entries may stay in the index. */
export const FORGET_FLUSHES: Statement = {
  name: 'writer_forget_flushes',
  text: `
delete from lane_flushes
where lane = $1::int and batch >= $2::bigint and batch < $3::bigint`,
};

/** SQL of the given rows, with the alias r. Bytes are base64. */
function rowsOf(mutation: Mutation): string {
  const fields = fieldsOf(mutation).map(
    ([name, type]) => `${name} ${type === 'bytea' ? 'text' : type}`,
  );
  return `json_to_recordset($1::json) as r(${fields.join(', ')})`;
}

function insertText(mutation: Insert, rows: string): string {
  const { table, columns, defaults, onConflict } = mutation;
  const value = (column: string) => {
    if (columnType(table, column).base === 'bytea') return `decode(r.${column}, 'base64')`;
    return column in defaults ? `coalesce(r.${column}, ${defaults[column]})` : `r.${column}`;
  };
  const text =
    `insert into ${table.name} (${columns.join(', ')})\n` +
    `select ${columns.map(value).join(', ')}\nfrom ${rows}`;
  if (onConflict === 'error') return text;
  const conflict = `${text}\non conflict (${table.key.join(', ')}) do`;
  if (onConflict === 'nothing') return `${conflict} nothing`;
  return `${conflict} update set ${onConflict.map((column) => `${column} = excluded.${column}`).join(', ')}`;
}

function updateText({ table, columns, keeps }: Update, rows: string): string {
  const { key, name } = table;
  const sets = [
    ...Object.entries(keeps).map(([kept, of]) => `${kept} = coalesce(t.${kept}, t.${of})`),
    ...columns.filter((column) => !key.includes(column)).map((column) => `${column} = r.${column}`),
  ];
  return `update ${name} t set ${sets.join(', ')}\nfrom ${rows}\nwhere ${rowsWith(key)}`;
}

function deleteText({ table, columns, where }: Delete, rows: string): string {
  return `delete from ${table.name} t\nusing ${rows}\nwhere ${rowsWith(columns, where)}`;
}

/** Condition on rows with the given values in these columns, and these values in others. */
function rowsWith(columns: readonly string[], values: Delete['where'] = {}): string {
  return [
    ...columns.map((column, at) =>
      at === 0 ? foundBy(`t.${column}`, `r.${column}`) : `t.${column} = r.${column}`,
    ),
    ...Object.entries(values).map(([column, value]) => `t.${column} = ${value}`),
  ].join(' and ');
}

/** @param rows SQL of the given rows, with the alias r */
function textOf(mutation: Mutation, rows: string, tables: readonly Table[] = []): string {
  switch (mutation.does) {
    case 'insert':
      return insertText(mutation, rows);
    case 'update':
      return updateText(mutation, rows);
    case 'delete':
      return deleteText(mutation, rows);
    case 'special':
      return mutation.text(rows, tables);
  }
}

export type Forms = { readonly objects: Statement; readonly lines?: Statement | undefined };

const nameOf = (verb: string, { kind }: Mutation) =>
  `writer_${verb}${kind.replace('.', '_').toLowerCase()}`;

/** $1 is a JSON array of rows, whose fields are the columns named here. */
export function formsOf(mutation: Mutation, tables: readonly Table[]): Forms {
  const name = nameOf('', mutation);
  return {
    objects: { name, text: textOf(mutation, rowsOf(mutation), tables) },
    lines: linesOf(mutation) && lineForm(mutation, name),
  };
}

/** Existing rows are missing from the result. */
const GATE = 'on conflict do nothing\nreturning id';

/** An existing row stays, and is missing from the result; so is a new one whose id is in `unless`. */
export function gateForms(mutation: Insert, { unless }: Gate): Forms {
  const name = nameOf('gated_', mutation);
  const textOf = (rows: string) => gateText(mutation, rows, unless);
  const objects = { name, text: textOf(rowsOf(mutation)) };
  return { objects, lines: mutation.lines && splitForm(mutation, name, textOf) };
}

function gateText(mutation: Insert, rows: string, unless: Table | undefined): string {
  if (unless === undefined) return `${insertText(mutation, rows)}\n${GATE}`;
  // Citus compares with a table only if the source is a materialized CTE (docs/operate/citus.md).
  const given = `with given as materialized (\n  select * from ${rows}\n)`;
  const barred = `where not exists (select 1 from ${unless.name} t where ${foundBy('t.id', 'r.id')})`;
  return `${given}\n${insertText(mutation, 'given r')}\n${barred}\n${GATE}`;
}

function escaped(character: string): string {
  return `E'\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}'`;
}

/** No row contains the quote character. */
const CSV = `format csv, delimiter ${escaped(CELL_END)}, null ${escaped(NULL_CELL)}, quote E'\\x02'`;

function lineForm(mutation: Mutation, name: string): Statement {
  const split = splitForm(mutation, name);
  if (mutation.does !== 'insert' || mutation.onConflict !== 'error') return split;
  const { table, columns } = mutation;
  const text = `copy ${table.name} (${columns.join(', ')}) from stdin with (${CSV})`;
  return { ...split, text, isCopy: true };
}

/** For what COPY cannot do; $1 is the text. The offset prevents splitting each line once per column. */
function splitForm(
  mutation: Mutation,
  name: string,
  statementOf = (rows: string) => textOf(mutation, rows),
): Statement {
  const lines = `(
  select ${typedCells(mutation, (i) => `l.cells[${i}]`)}
  from (
    select string_to_array(line, ${escaped(CELL_END)}, ${escaped(NULL_CELL)}) as cells
    from string_to_table($1::text, ${escaped(LINE_END)}) as line offset 0) as l) as r`;
  const cells = `(select ${typedCells(mutation, (i) => `$${i}`)}) as r`;
  return {
    name: `${name}_lines`,
    text: statementOf(lines),
    ofCells: { name: `${name}_cells`, text: statementOf(cells) },
  };
}

function typedCells(mutation: Mutation, cell: (number: number) => string): string {
  return fieldsOf(mutation)
    .map(([name, type], i) => `${cell(i + 1)}::${type} as ${name}`)
    .join(', ');
}

/**
 * Deletes up to a thousand rows from before a time.
 * @param order columns of an index, the time first @param which further conditions
 */
export function prune<T extends Table>(
  table: T,
  order: readonly ColumnOf<T>[],
  which: readonly string[] = [],
) {
  const { name, key } = table;
  const where = [...which, `${order[0]} < r.before`].join(' and ');
  const isOld = key.map((column) => `t.${column} = old.${column}`).join(' and ');
  return special(
    table,
    'latest',
    { before: 'timestamptz' },
    (rows) => `
delete from ${name} t using ${rows} cross join lateral (
  select ${key.join(', ')} from ${name} where ${where}
  order by ${order.join(', ')} limit 1000 offset 0) as old
where ${isOld}`,
  );
}
