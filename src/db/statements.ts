/**
 * The SQL of the writer: one statement per kind of mutation, each taking the JSON text of an array
 * of rows, and for some kinds another one that takes lines (`lines.ts`). They are prepared by name on
 * every connection of the writer. No statement reads a table in order to decide: what is written was
 * decided by the actor that owns the row. The regular ones are made from `mutations.ts`;
 * docs/statements.sql shows them all as they are sent.
 */

import { CELL_END, LINE_END, LINED_COLUMNS, NULL_CELL } from './lines.js';
import {
  type Delete,
  fieldsOf,
  type Insert,
  MUTATION_KINDS,
  MUTATIONS,
  type Mutation,
  type MutationKind,
  type Update,
} from './mutations.js';
import { foundBy, SPECIAL_TEXTS, type SpecialKind } from './special-statements.js';
import { columnType, TABLES, type TableName } from './tables.js';

export interface Statement {
  /** The name under which it is prepared, at most 63 bytes. */
  readonly name: string;
  readonly text: string;
  /** It takes its rows as data behind it, not as a parameter. */
  readonly isCopy?: true;
  /** The same for one row that is a line: its cells are the parameters. */
  readonly ofCells?: Statement;
}

/**
 * Settings of the writer's sessions. Every statement below finds its rows by an index, through a
 * nested loop from the handed-in rows. A plan that was cached while a table was small would join by
 * reading the whole of it, and would be kept until the table is analysed: so such plans are ruled
 * out. No plan depends on the rows, so the first executions need none of their own.
 */
export const WRITER_SETTINGS = `
set enable_hashjoin = off; set enable_mergejoin = off; set enable_seqscan = off; set jit = off;
set plan_cache_mode = force_generic_plan`;

/** A flush whose gates are asked first spans two exchanges; every other one is a single exchange without these. */
export const BEGIN: Statement = { name: 'writer_begin', text: 'begin' };
export const COMMIT: Statement = { name: 'writer_commit', text: 'commit' };

/**
 * $1 lane, $2 epoch, $3 number of the flush. Locks the lane's row, which a take-over has to wait for,
 * and notes the number. Fails when another epoch owns the lane (22012, division by zero) and when the
 * flush was committed before (23505), so that everything sent behind it in the same exchange is
 * skipped.
 *
 * The lock writes into the row where it lies. An update would leave a dead version per flush, which
 * nobody can remove while any session holds an old snapshot, and which every later flush would have
 * to step over (docs/decisions/0002-the-fence.md).
 */
export const FENCE: Statement = {
  name: 'writer_fence',
  text: `
with owned as (
  select lane from lanes where lane = $1::int and epoch = $2::bigint for no key update
), noted as (
  insert into lane_flushes (lane, batch) select lane, $3::bigint from owned returning lane
)
select 1 / count(*) from noted`,
};

/** So many of the last numbers of a lane are kept, and at most as many more. */
export const FLUSHES_KEPT = 1_000;

/**
 * $1 lane; removes the numbers from $2 to before $3. Every FLUSHES_KEPT-th flush removes a stretch of
 * its own: from its very start, since what others removed before may still be in the index.
 */
export const FORGET_FLUSHES: Statement = {
  name: 'writer_forget_flushes',
  text: `
delete from lane_flushes
where lane = $1::int and batch >= $2::bigint and batch < $3::bigint`,
};

/** The rows that are handed in, under the name r. Bytes come as base64. */
function rowsOf(mutation: Mutation): string {
  const fields = fieldsOf(mutation).map(
    ([name, type]) => `${name} ${type === 'bytea' ? 'text' : type}`,
  );
  return `json_to_recordset($1::json) as r(${fields.join(', ')})`;
}

/** @param rows those that are handed in, under the name r */
function insertText(mutation: Insert, rows = rowsOf(mutation)): string {
  const { table, columns, defaults, onConflict } = mutation;
  const value = (column: string) => {
    if (columnType(table, column).base === 'bytea') return `decode(r.${column}, 'base64')`;
    return column in defaults ? `coalesce(r.${column}, ${defaults[column]})` : `r.${column}`;
  };
  const text =
    `insert into ${table} (${columns.join(', ')})\n` +
    `select ${columns.map(value).join(', ')}\nfrom ${rows}`;
  if (onConflict === 'error') return text;
  const conflict = `${text}\non conflict (${TABLES[table].key.join(', ')}) do`;
  if (onConflict === 'nothing') return `${conflict} nothing`;
  return `${conflict} update set ${onConflict.map((column) => `${column} = excluded.${column}`).join(', ')}`;
}

function updateText(mutation: Update): string {
  const { table, columns, keeps } = mutation;
  const { key }: { readonly key: readonly string[] } = TABLES[table];
  const sets = [
    ...Object.entries(keeps).map(([kept, of]) => `${kept} = coalesce(t.${kept}, t.${of})`),
    ...columns.filter((column) => !key.includes(column)).map((column) => `${column} = r.${column}`),
  ];
  return (
    `update ${table} t set ${sets.join(', ')}\nfrom ${rowsOf(mutation)}\n` +
    `where ${rowsWith(key)}`
  );
}

function deleteText(mutation: Delete): string {
  const { table, columns, where } = mutation;
  return `delete from ${table} t\nusing ${rowsOf(mutation)}\nwhere ${rowsWith(columns, where)}`;
}

/**
 * Rows that have the given values in these columns, and those values.
 *
 * The first is asked for as one of a list of its own. That is answered by an index and by nothing else. An equation
 * can also be had from a whole index, read in its order: the planner does so where it knows of few live rows,
 * however many dead ones lie between them while somebody holds an old snapshot.
 */
function rowsWith(columns: readonly string[], values: Partial<Delete['where']> = {}): string {
  return [
    ...columns.map((column, at) =>
      at === 0 ? foundBy(`t.${column}`, `r.${column}`) : `t.${column} = r.${column}`,
    ),
    ...Object.entries(values).map(([column, value]) => `t.${column} = ${value}`),
  ].join(' and ');
}

function textOf(kind: MutationKind): string {
  const mutation: Mutation = MUTATIONS[kind];
  switch (mutation.does) {
    case 'insert':
      return insertText(mutation);
    case 'update':
      return updateText(mutation);
    case 'delete':
      return deleteText(mutation);
    case 'special':
      return SPECIAL_TEXTS[kind as SpecialKind](rowsOf(mutation));
  }
}

/** $1 of each is the JSON text of an array of rows, whose fields are the columns named here. */
export const STATEMENTS = Object.fromEntries(
  MUTATION_KINDS.map((kind) => [
    kind,
    { name: `writer_${kind.replace('.', '_').toLowerCase()}`, text: textOf(kind) },
  ]),
) as Readonly<Record<MutationKind, Statement>>;

/** The answer lacks a row that was there. */
const GATE = 'on conflict do nothing\nreturning id';

export type GatedKind = 'sequence.insert' | 'instance.insert' | 'event.insert';

/** A row of this table with its id keeps one from being inserted, as one with its key does. */
export const GATED_UNLESS: Readonly<Partial<Record<GatedKind, TableName>>> = {
  'sequence.insert': 'sequence_tombstones',
};

/**
 * The inserts of gated units: a row that is there stays, and is missing from the answer. So is a
 * sequence whose id is that of a deleted one, while that one's instances are still there.
 */
export const GATED_STATEMENTS: Readonly<Record<GatedKind, Statement>> = {
  'sequence.insert': gated('sequence.insert', 'writer_gated_sequence_insert'),
  'instance.insert': gated('instance.insert', 'writer_gated_instance_insert'),
  'event.insert': gated('event.insert', 'writer_gated_event_insert'),
};

function gated(kind: GatedKind, name: string): Statement {
  const barring = GATED_UNLESS[kind];
  if (barring === undefined) return { name, text: `${textOf(kind)}\n${GATE}` };
  // Citus accepts the comparison with a table only when the source is a materialized CTE (docs/operate/citus.md).
  const insert = MUTATIONS[kind] as Insert;
  const given = `with given as materialized (\n  select * from ${rowsOf(insert)}\n)`;
  const unless = `where not exists (select 1 from ${barring} t where t.id = r.id)`;
  return { name, text: `${given}\n${insertText(insert, 'given r')}\n${unless}\n${GATE}` };
}

/** A character as a literal of SQL. */
function escaped(character: string): string {
  return `E'\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}'`;
}

/** The quote is a character that no row has. */
const CSV = `format csv, delimiter ${escaped(CELL_END)}, null ${escaped(NULL_CELL)}, quote E'\\x02'`;

/** For rows that are lines. */
export const LINE_STATEMENTS = Object.fromEntries(
  [...LINED_COLUMNS].map(([kind, columns]) => {
    const { table } = MUTATIONS[kind] as Insert;
    const { name } = STATEMENTS[kind];
    const names = columns.map((column) => column.name).join(', ');
    const text = `copy ${table} (${names}) from stdin with (${CSV})`;
    const ofCells = { name: `${name}_cells`, text: cellsText(kind) };
    return [kind, { name: `${name}_lines`, text, isCopy: true, ofCells }];
  }),
) as Readonly<Partial<Record<MutationKind, Statement>>>;

/** $1, $2, … are the cells of a line. */
function cellsText(kind: MutationKind): string {
  const columns = LINED_COLUMNS.get(kind)!;
  const names = columns.map(({ name }) => name).join(', ');
  const cells = columns.map(({ type }, i) => `$${i + 1}::${type}`).join(', ');
  const { table } = MUTATIONS[kind] as Insert;
  return `insert into ${table} (${names})\nvalues (${cells})`;
}

/**
 * The gated insert of rows that are lines, which COPY has no form for: $1 is their text. The offset
 * keeps each line from being split once per column.
 */
export const GATED_LINE_STATEMENTS: Readonly<Partial<Record<GatedKind, Statement>>> = {
  'instance.insert': gatedLines('instance.insert'),
};

function gatedLines(kind: GatedKind): Statement {
  const columns = LINED_COLUMNS.get(kind)!;
  const { table } = MUTATIONS[kind];
  const cells = columns.map(({ type }, i) => `l.cells[${i + 1}]::${type}`).join(', ');
  const text = `
insert into ${table} (${columns.map(({ name }) => name).join(', ')})
select ${cells}
from (
  select string_to_array(line, ${escaped(CELL_END)}, ${escaped(NULL_CELL)}) as cells
  from string_to_table($1::text, ${escaped(LINE_END)}) as line offset 0) as l
${GATE}`;
  const { name } = GATED_STATEMENTS[kind];
  const ofCells = { name: `${name}_cells`, text: `${cellsText(kind)}\n${GATE}` };
  return { name: `${name}_lines`, text, ofCells };
}

const celled = (statements: Readonly<Partial<Record<MutationKind, Statement>>>) =>
  Object.values(statements).flatMap((statement) => statement.ofCells ?? []);

/** Everything that a connection of the writer prepares. */
export const ALL_STATEMENTS: readonly Statement[] = [
  BEGIN,
  COMMIT,
  FENCE,
  FORGET_FLUSHES,
  ...Object.values(STATEMENTS),
  ...Object.values(LINE_STATEMENTS),
  ...celled(LINE_STATEMENTS),
  ...Object.values(GATED_STATEMENTS),
  ...Object.values(GATED_LINE_STATEMENTS),
  ...celled(GATED_LINE_STATEMENTS),
];

/** All statements as one text, which is committed as docs/statements.sql to be read and compared. */
export function statementsText(): string {
  const parts = ALL_STATEMENTS.map(({ name, text }) => `-- ${name}\n${text.trim()};\n`);
  return `-- What the writer sends; npm run generate writes this file.\n\n${parts.join('\n')}`;
}
