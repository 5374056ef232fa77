/**
 * Copies of an instance in SQL, a million in a minute. Every copy has ids as the server makes them (UUIDv7 in order,
 * the routing bits of the instance in all of them) and times of its own; all else is as the server wrote it.
 */

import type pg from 'pg';
import type { Table } from '../../src/db/table.js';
import { TABLES } from '../../test/helpers/store.js';

/** Texts that every copy has others of, and the SQL of those of copy `n`. */
export type Marks = Readonly<Record<string, string>>;

const COPIES_PER_STATEMENT = 20_000;
/** Made in one millisecond: the ids' counter of 12 bits has room for 80 ids of each. */
const COPIES_PER_MS = 50;

const UUIDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** What one table has of the instance. */
interface Found {
  readonly name: string;
  /** The column with the instance's id. */
  readonly key: string;
  readonly table: Table;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** @throws Error when the instance has no row */
export async function copyInstance(
  db: pg.Client,
  instance: string,
  marks: Marks,
  count: number,
): Promise<void> {
  const found: Found[] = [];
  for (const [name, table] of Object.entries<Table>(TABLES)) {
    const { instance: key } = table;
    if (key === undefined) continue;
    const { rows } = await db.query<{ row: string }>(
      `select row_to_json(t)::text as row from ${name} t where ${key} = $1::uuid`,
      [instance],
    );
    if (rows.length > 0)
      found.push({ name, key, table, rows: rows.map(({ row }) => JSON.parse(row)) });
  }
  const own = found.find(({ name }) => name === 'instances')?.rows[0];
  if (own === undefined) throw new Error(`instance ${instance} has no row`);
  const ids = new Set(JSON.stringify(found.map(({ rows }) => rows)).match(UUIDS));
  const fresh = [...ids].filter((id) => id !== own.sequence_id && marks[id] === undefined);
  const changes = new Map(Object.entries(marks));
  for (const [at, id] of fresh.entries()) changes.set(id, idOfCopy(id, at, fresh.length));
  const statements = found.map((rows) => copyOf(rows, instance, changes));
  for (let from = 0; from < count; from += COPIES_PER_STATEMENT) {
    const to = Math.min(from + COPIES_PER_STATEMENT, count) - 1;
    await db.query('begin');
    for (const statement of statements) await db.query(statement, [from, to]);
    await db.query('commit');
  }
}

/** The SQL of an id like this one, made at the time of copy `n`. */
function idOfCopy(id: string, at: number, idsPerCopy: number): string {
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  return (
    `(lpad(to_hex(${ms} + n / ${COPIES_PER_MS}), 12, '0') || '7' || ` +
    `lpad(to_hex((n % ${COPIES_PER_MS}) * ${idsPerCopy} + ${at}), 3, '0') || '8' || ` +
    `substr(md5(n || '.${at}'), 1, 11) || substr(md5('route ' || n), 1, 4))::uuid::text`
  );
}

/** The statement that makes copies number $1 to $2 of the rows of one table. */
function copyOf(
  { name, key, table, rows }: Found,
  instance: string,
  changes: ReadonlyMap<string, string>,
): string {
  const used = new Set<string>();
  const columns = Object.entries<string>(table.columns);
  const values = columns.map(([column, type]) => {
    if (type.startsWith('timestamptz')) {
      return `t.${column} + n * interval '${1_000 / COPIES_PER_MS} microseconds'`;
    }
    const texts = JSON.stringify(rows.map((row) => row[column]));
    const inside = [...changes.keys()].filter((text) => texts.includes(text));
    if (inside.length === 0) return `t.${column}`;
    for (const text of inside) used.add(text);
    const value = inside.reduce(
      (sql, text) => `replace(${sql}, '${text}', f."${text}")`,
      `t.${column}::text`,
    );
    return `(${value})::${type.replace('?', '')}`;
  });
  const fresh = [...used].map((text) => `${changes.get(text)} as "${text}"`);
  return (
    `insert into ${name} (${columns.map(([column]) => column).join(', ')}) ` +
    `select ${values.join(', ')} from ${name} t cross join (select n, ${fresh.join(', ')} ` +
    'from generate_series($1::bigint, $2::bigint) n offset 0) f ' +
    `where t.${key} = '${instance}'::uuid order by n`
  );
}
