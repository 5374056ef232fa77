/**
 * Which rows go with a tenant when it is moved to another cell: of every table a condition, unless it says why its rows
 * stay. Pure.
 */

import type { Store } from '../db/store.js';
import type { Table } from '../db/table.js';

export interface TenantTable {
  readonly name: string;
  /** In the order of their names, whichever they have in a database. */
  readonly columns: readonly string[];
  /** The condition on its rows; `$T` stands for the tenant. */
  readonly where: string;
}

/** In the order in which rows can be deleted: those that others are found by come last. */
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

/**
 * Whoever has anything at all has something in one of these; each has an index that begins with the tenant. What goes
 * with an instance is of a tenant that has instances.
 */
export function findingTables({ tables }: Store): readonly string[] {
  return Object.values(tables)
    .filter(({ name, columns, instance, stays, follows }) => {
      const isAlone = (instance === undefined || name === 'instances') && follows === undefined;
      return isAlone && stays === undefined && columns.tenant_id !== undefined;
    })
    .map(({ name }) => name);
}

/** The condition for one tenant. @param literal the tenant as a literal of SQL */
export function rowsOf({ where }: TenantTable, literal: string): string {
  // A function: a tenant's name may have what stands for something in a replacement.
  return where.replaceAll('$T', () => literal);
}
