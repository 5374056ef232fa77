/**
 * A tenant's rows on their way from one cell to another, which may be on another server: all tables from one
 * snapshot into one transaction, in the binary format of COPY, then counted and hashed on both sides.
 */

import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { rowsOf, TENANT_TABLES, type TenantTable } from './tenant-rows.js';

/** Rows of one table, and the sum of their hashes, whatever their order. */
export interface Tally {
  readonly rows: number;
  readonly hash: string;
}

export type Tallies = Readonly<Record<string, Tally>>;

/** Texts of values are the same on both sides, whatever is set for roles and databases. */
const ALIKE =
  "set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local extra_float_digits = 1; " +
  "set local bytea_output = 'hex'; set local intervalstyle = 'postgres'";

/** In a transaction of its own: what it reads is of one instant. */
export async function beginSnapshot(source: pg.Client): Promise<void> {
  await source.query(`begin isolation level repeatable read read only; ${ALIKE}`);
}

export async function beginCopy(target: pg.Client): Promise<void> {
  await target.query(`begin; ${ALIKE}`);
}

/** Those of the tenant's tables that have any rows. */
export async function tablesWithRows(client: pg.Client, tenant: string): Promise<TenantTable[]> {
  const literal = pg.escapeLiteral(tenant);
  const asked = TENANT_TABLES.map(
    (table) => `exists (select from ${table.name} where ${rowsOf(table, literal)})`,
  );
  const { rows } = await client.query<boolean[]>({
    text: `select ${asked.join(', ')}`,
    rowMode: 'array',
  });
  return TENANT_TABLES.filter((_, at) => rows[0]?.[at] === true);
}

/** Copies the rows of one table. Rejects as either side does. */
export async function copyTable(
  source: pg.Client,
  target: pg.Client,
  table: TenantTable,
  tenant: string,
): Promise<void> {
  const { name, columns } = table;
  const list = columns.join(', ');
  const where = rowsOf(table, pg.escapeLiteral(tenant));
  await pipeline(
    source.query(
      copyTo(`copy (select ${list} from ${name} where ${where}) to stdout (format binary)`),
    ),
    target.query(copyFrom(`copy ${name} (${list}) from stdin (format binary)`)),
  );
}

export async function tallyOf(
  client: pg.Client,
  table: TenantTable,
  tenant: string,
): Promise<Tally> {
  const { name, columns } = table;
  const hash = `hashtextextended(row(${columns.join(', ')})::text collate "C", 0)`;
  const { rows } = await client.query<{ rows: string; hash: string }>(
    `select count(*)::text as rows, coalesce(sum(${hash}::numeric), 0)::text as hash
     from ${name} where ${rowsOf(table, pg.escapeLiteral(tenant))}`,
  );
  const { rows: count = '0', hash: sum = '0' } = rows[0] ?? {};
  return { rows: Number(count), hash: sum };
}

/** The tables of which the two sides have not the same. */
export function differences(source: Tallies, target: Tallies): string[] {
  const names = new Set([...Object.keys(source), ...Object.keys(target)]);
  return [...names].filter((name) => {
    const [a, b] = [source[name], target[name]];
    return a?.rows !== b?.rows || a?.hash !== b?.hash;
  });
}

/** Of one statement: other sessions need the disk, too. */
const DELETED_AT_ONCE = 20_000;

/**
 * Deletes all rows of the tenant, some at a time, each in a commit of its own unless there is a transaction.
 *
 * @returns how many
 */
export async function deleteRows(client: pg.Client, tenant: string): Promise<number> {
  const literal = pg.escapeLiteral(tenant);
  let deleted = 0;
  for (const table of TENANT_TABLES) {
    for (;;) {
      const { rowCount } = await client.query(
        `delete from ${table.name} where ctid = any(array(
           select ctid from ${table.name} where ${rowsOf(table, literal)} limit ${DELETED_AT_ONCE}))`,
      );
      deleted += rowCount ?? 0;
      if ((rowCount ?? 0) < DELETED_AT_ONCE) break;
    }
  }
  return deleted;
}
