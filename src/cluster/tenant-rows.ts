/**
 * Which rows go with a tenant when it is moved to another cell: of every table either a condition, or the reason
 * why its rows stay. Pure; a test fails for a table that is in neither list.
 */

import type { Store } from '../db/store.js';
import type { Table } from '../db/table.js';

/** Tables of the cell itself. */
export const STAYING: Readonly<Record<string, string>> = {
  lanes: 'the fence of this cell',
  lane_flushes: 'which flushes of this cell were committed',
  change_mark: 'the target raises its own to that of the source',
};

/** Where neither a column of the tenant nor one of an instance says whose a row is. */
const ODD: Readonly<Record<string, string>> = {
  permits: 'instance_id in (select id from instances where tenant_id = $T)',
  rate_grants: 'limit_id in (select id from rate_limits where tenant_id = $T)',
  release_decisions: 'release_id in (select id from releases where tenant_id = $T)',
  // Deleted sequences whose instances are still being removed.
  sequence_tombstones: 'id in (select sequence_id from instances where tenant_id = $T)',
  // What neither an instance nor a subscription names any more is a log of nobody, and ends with its time.
  webhook_deliveries:
    'instance_id in (select id from instances where tenant_id = $T) or ' +
    'subscription_id in (select id from webhook_subscriptions where tenant_id = $T)',
  bulk_changes: 'job_id in (select id from bulk_jobs where tenant_id = $T)',
};

/** Rows of other tables are found by theirs: they are the last to be deleted. */
const NAMED: ReadonlySet<string> = new Set([
  'instances',
  'rate_limits',
  'releases',
  'webhook_subscriptions',
  'bulk_jobs',
]);

export interface TenantTable {
  readonly name: string;
  /** In the order of their names, whichever they have in a database. */
  readonly columns: readonly string[];
  /** The condition on its rows; `$T` stands for the tenant. */
  readonly where: string;
}

/** In the order in which rows can be deleted: those that others are found by come last. */
export function tenantTables({ tables }: Store): readonly TenantTable[] {
  return Object.values(tables)
    .filter(({ name }) => STAYING[name] === undefined)
    .sort((a, b) => Number(NAMED.has(a.name)) - Number(NAMED.has(b.name)))
    .map((table) => ({
      name: table.name,
      columns: Object.keys(table.columns).sort(),
      where: conditionOn(table),
    }));
}

function conditionOn({ name, columns, instance }: Table): string {
  const odd = ODD[name];
  if (odd !== undefined) return odd;
  if (columns.tenant_id !== undefined) return 'tenant_id = $T';
  if (instance === undefined) throw new Error(`whose the rows of ${name} are is not said`);
  return `${instance} in (select id from instances where tenant_id = $T)`;
}

/** Whose rows there are none of without others of the same tenant in the tables below. */
export const FOLLOWING: Readonly<Record<string, string>> = {
  activity: 'what its instances did',
  approvals: 'asked by its instances',
  audit_log: 'of its instances',
  dead_letters: 'its instances',
  worker_tasks: 'of its instances',
  open_tasks: 'of its instances',
  webhook_outbox: 'of its instances and subscriptions',
  effect_receipts: 'of its executions',
  continuity_locations: 'of its executions',
  provenance_entries: 'of its executions',
  placement_decisions: 'of its executions',
  handoffs: 'of its executions',
  artifacts: 'of its executions',
  migrations: 'of its executions',
};

/** Whoever has anything at all has something in one of these; each has an index that begins with the tenant. */
export function findingTables(store: Store): readonly string[] {
  return tenantTables(store)
    .filter(({ name, where }) => where === 'tenant_id = $T' && FOLLOWING[name] === undefined)
    .map(({ name }) => name);
}

/** The condition for one tenant. @param literal the tenant as a literal of SQL */
export function rowsOf({ where }: TenantTable, literal: string): string {
  // A function: a tenant's name may have what stands for something in a replacement.
  return where.replaceAll('$T', () => literal);
}
