/**
 * Copies the rows of a tenant from one cell to another, which may be on another server: all tables from one snapshot
 * into one transaction, by binary COPY, then counted and hashed on both sides. Deletes the rows of a moved tenant.
 */

import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { MoveError } from './move-plan.js';
import { rowsOf, type TenantTable } from './tenant-rows.js';

/** Of one table; the sum of the hashes of its rows does not depend on their order. */
export interface Tally {
  readonly rows: number;
  readonly hash: string;
}

export type Tallies = Readonly<Record<string, Tally>>;

/** Values have the same text on both sides, whatever is set for roles and databases. */
const ALIKE =
  "set local timezone = 'UTC'; set local datestyle = 'ISO, YMD'; set local extra_float_digits = 1; " +
  "set local bytea_output = 'hex'; set local intervalstyle = 'postgres'";

export async function beginSnapshot(source: pg.Client): Promise<void> {
  await source.query(`begin isolation level repeatable read read only; ${ALIKE}`);
}

export async function beginCopy(target: pg.Client): Promise<void> {
  await target.query(`begin; ${ALIKE}`);
}

export async function tablesWithRows(
  client: pg.Client,
  tables: readonly TenantTable[],
  tenant: string,
): Promise<TenantTable[]> {
  const literal = pg.escapeLiteral(tenant);
  const exist = tables.map(
    (table) => `exists (select from ${table.name} where ${rowsOf(table, literal)})`,
  );
  const { rows } = await client.query<boolean[]>({
    text: `select ${exist.join(', ')}`,
    rowMode: 'array',
  });
  return tables.filter((_, at) => rows[0]?.[at] === true);
}

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

export async function tallyOf(client: pg.Client, table: TenantTable, tenant: string) {
  const { name, columns } = table;
  const hash = `hashtextextended(row(${columns.join(', ')})::text collate "C", 0)`;
  const { rows } = await client.query<{ rows: string; hash: string }>(
    `select count(*)::text as rows, coalesce(sum(${hash}::numeric), 0)::text as hash
     from ${name} where ${rowsOf(table, pg.escapeLiteral(tenant))}`,
  );
  const { rows: count = '0', hash: sum = '0' } = rows[0] ?? {};
  return { rows: Number(count), hash: sum };
}

export function differences(source: Tallies, target: Tallies): string[] {
  const names = new Set([...Object.keys(source), ...Object.keys(target)]);
  return [...names].filter((name) => {
    const [a, b] = [source[name], target[name]];
    return a?.rows !== b?.rows || a?.hash !== b?.hash;
  });
}

/** Bounds one statement, so that other sessions get their share of the disk. */
const DELETED_AT_ONCE = 20_000;

/** The row of `tenant_moves` that permits the deletion. */
export interface Deletion {
  readonly tenant: string;
  readonly move: string;
  /** In the source, or in the target. */
  readonly state: 'left' | 'arriving';
}

/**
 * Deletes all rows of the tenant in batches, each committed on its own unless a transaction is open. Each statement
 * locks the row of the move, so that an outdated command does not delete the rows of a later move.
 * @throws MoveError when the row of the move has changed
 */
export async function deleteRows(
  client: pg.Client,
  tables: readonly TenantTable[],
  { tenant, move, state }: Deletion,
  atOnce = DELETED_AT_ONCE,
): Promise<void> {
  const literal = pg.escapeLiteral(tenant);
  for (const table of tables) {
    const text = `with mine as materialized (
       select 1 from tenant_moves
       where tenant_id = $1 and move_id = $2::uuid and state = $3 for share),
     doomed as materialized (
       select ctid as place from ${table.name}
       where (${rowsOf(table, literal)}) and exists (select from mine)
       limit ${atOnce}),
     deleted as (delete from ${table.name} where ctid = any(array(select place from doomed)))
     select exists (select from mine) as is_mine, (select count(*)::int from doomed) as found`;
    // Counts the found rows, not the deleted ones: another session may have deleted some first.
    for (let rows = 1; rows > 0; ) {
      const { rows: result } = await client.query<{ is_mine: boolean; found: number }>(text, [
        tenant,
        move,
        state,
      ]);
      const { is_mine = false, found = 0 } = result[0] ?? {};
      if (!is_mine) throw new MoveError(`tenant ${tenant} is not ${state} any more by this move`);
      rows = found;
    }
  }
}
