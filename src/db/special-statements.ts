/**
 * The statements of the writer that are more than an insert, an update or a delete of rows by their
 * key. Each takes the text of the rows that are handed in, under the name r. Pure.
 */

import { MUTATIONS, type MutationKind } from './mutations.js';
import { columnType, TABLES, type Table, type TableName } from './tables.js';

/** The kinds whose row in `MUTATIONS` says that they are special. */
export type SpecialKind = {
  [K in MutationKind]: (typeof MUTATIONS)[K]['does'] extends 'special' ? K : never;
}[MutationKind];

/** Tables whose rows go with their instance; open tasks have no index on it, and are found by their tasks. */
export const BELONGINGS: readonly (readonly [table: TableName, column: string])[] = Object.entries(
  TABLES as Readonly<Record<TableName, Table>>,
).flatMap(([name, { instance }]) =>
  instance === undefined || name === 'open_tasks' ? [] : [[name as TableName, instance] as const],
);

/** See `rowsWith` of `statements.ts`. */
export const foundBy = (column: string, value: string) => `${column} = any(array[${value}])`;

/** Deletes the instances whose ids are in `doomed`, with all that belongs to them. */
const INSTANCES_GONE = [
  `open_tasks_gone as (
  delete from open_tasks o using worker_tasks t, doomed d
  where ${foundBy('t.instance_id', 'd.id')} and ${foundBy('o.task_id', 't.id')}
)`,
  ...BELONGINGS.map(
    ([table, column]) => `${table}_gone as (
  delete from ${table} t using doomed d where ${foundBy(`t.${column}`, 'd.id')}
)`,
  ),
].join(', ');

/** What is written of a task that ends. */
const TASK_END = Object.keys(MUTATIONS['task.end'].fields).filter((field) => field !== 'id');

/** The names and types of all columns, as a list of columns of a record. */
function recordOf(table: TableName): string {
  return Object.keys(TABLES[table].columns)
    .map((column) => `${column} ${columnType(table, column).base}`)
    .join(', ');
}

export const SPECIAL_TEXTS: Readonly<Record<SpecialKind, (rows: string) => string>> = {
  'sequence.delete': (rows) => `
with schedules_gone as (
  delete from cron_schedules c using ${rows} where c.sequence_id = r.id
)
delete from sequences s using ${rows} where s.id = r.id`,

  // An execution outlives its instance, and keeps how that ended.
  'instance.delete': (rows) => `
with doomed as (
  select id from ${rows}
), executions_ended as (
  update continuity_executions e set
    ended = i.state, updated_at = greatest(e.updated_at, i.updated_at)
  from instances i, doomed d
  where i.id = d.id and i.continuity_id is not null
    and i.state in ('completed', 'failed', 'cancelled')
    and e.tenant_id = i.tenant_id and e.current_instance_id = i.id
), ${INSTANCES_GONE}
select count(*) from doomed`,

  // A receipt outlives the output that it was stored with.
  'output.dropBlocks': (rows) => `
with dropped as (
  delete from block_outputs o using ${rows}
  where o.instance_id = r.instance_id
    and o.block_id in (select json_array_elements_text(r.block_ids))
  returning o.effect
)
insert into effect_receipts (${Object.keys(TABLES.effect_receipts.columns).join(', ')})
select r.*
from dropped d cross join lateral json_to_record(d.effect) as r(${recordOf('effect_receipts')})
where d.effect is not null
on conflict (id) do nothing`,

  'task.end': (rows) => `
with ended as (
  select * from ${rows}
), closed as (
  delete from open_tasks o using ended r where ${foundBy('o.task_id', 'r.id')}
)
update worker_tasks t set
  ${TASK_END.map((column) => `${column} = r.${column}`).join(', ')}
from ended r
where ${foundBy('t.id', 'r.id')}`,

  'checkpoint.prune': (rows) => `
delete from checkpoints c using ${rows}
where c.instance_id = r.instance_id and c.id in (
  select o.id from checkpoints o where o.instance_id = r.instance_id
  order by o.id desc offset r.keep)`,

  'rateGrant.prune': (rows) => `
delete from rate_grants g using ${rows}
where g.limit_id = r.limit_id and g.granted_at < r.before`,

  'event.prune': (rows) => `
delete from events e using ${rows} cross join lateral (
  select id from events where status <> 'pending' and targets is null and fires is null
    and ended_at < r.before
  order by ended_at, id limit 1000 offset 0) as old
where e.id = old.id`,

  'activity.prune': (rows) => `
delete from activity a using ${rows} cross join lateral (
  select tenant_id, at, shard from activity where at < r.before
  order by at limit 1000 offset 0) as old
where a.tenant_id = old.tenant_id and a.at = old.at and a.shard = old.shard`,

  'delivery.prune': (rows) => `
delete from webhook_deliveries d using ${rows} cross join lateral (
  select id from webhook_deliveries where attempted_at < r.before
  order by attempted_at, id limit 1000 offset 0) as old
where d.id = old.id`,

  'execution.update': (rows) => `
with changed as (
  update continuity_executions e set
    current_instance_id = r.current_instance_id, owner_runtime_id = r.owner_runtime_id,
    epoch = r.epoch, state = r.state, version = e.version + 1, updated_at = r.updated_at
  from ${rows}
  where e.continuity_id = r.continuity_id and e.version = r.version
  returning 1
)
select (case when count(*) = json_array_length($1::json) then '1' else 'stale' end)::integer
from changed`,

  'runtime.set': (rows) => `
insert into runtimes (tenant_id, runtime_id, capabilities, observed_at, expires_at)
select distinct on (tenant_id, runtime_id)
  tenant_id, runtime_id, capabilities, observed_at, expires_at
from ${rows}
order by tenant_id, runtime_id, observed_at desc, row_number() over () desc
on conflict (tenant_id, runtime_id) do update set
  capabilities = excluded.capabilities, observed_at = excluded.observed_at,
  expires_at = excluded.expires_at
where excluded.observed_at >= runtimes.observed_at`,
};
