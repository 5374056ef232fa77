/** The rows that move with a tenant: a condition for each table, unless the table says why its rows stay. Pure. */

import type { Store } from '../db/store.js';
import type { Table } from '../db/table.js';

export interface TenantTable {
  readonly name: string;
  /** By name, independent of their order in a database. */
  readonly columns: readonly string[];
  /** The condition on its rows; `$T` stands for the tenant. */
  readonly where: string;
}

/** In the order of deletion: tables in conditions of others are the last. */
export function tenantTables({ tables }: Store): readonly TenantTable[] {
  const moved = Object.values(tables)
    .filter(({ stays }) => stays === undefined)
    .map((table) => ({
      name: table.name,
      columns: Object.keys(table.columns).sort(),
      where: conditionOn(table),
    }));
  const named = new Set(moved.flatMap(({ where }) => where.match(/(?<=from )\w+/g) ?? []));
  return moved.sort((a, b) => Number(named.has(a.name)) - Number(named.has(b.name)));
}

function conditionOn({ name, columns, instance, ofTenant }: Table): string {
  if (ofTenant !== undefined) return ofTenant;
  if (columns.tenant_id !== undefined) return 'tenant_id = $T';
  if (instance === undefined) throw new Error(`whose the rows of ${name} are is not said`);
  return `${instance} in (select id from instances where tenant_id = $T)`;
}

/** Tables that find every tenant with rows, by an index; rows of an instance imply one in `instances`. */
export function findingTables({ tables }: Store): readonly string[] {
  return Object.values(tables)
    .filter(({ name, columns, instance, stays, follows }) => {
      const isAlone = (instance === undefined || name === 'instances') && follows === undefined;
      return isAlone && stays === undefined && columns.tenant_id !== undefined;
    })
    .map(({ name }) => name);
}

/** @param literal the tenant as an SQL literal */
export function rowsOf({ where }: TenantTable, literal: string): string {
  // A function, because `$` is special in a replacement text.
  return where.replaceAll('$T', () => literal);
}
