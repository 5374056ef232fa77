-- What the writer sends; npm run generate writes this file.

-- writer_begin
begin;

-- writer_commit
commit;

-- writer_fence
with owned as materialized (
  select lane from lanes where lane = $1::int and epoch = $2::bigint for no key update
)
insert into lane_flushes (lane, batch) select (select lane from owned), $3::bigint;

-- writer_forget_flushes
delete from lane_flushes
where lane = $1::int and batch >= $2::bigint and batch < $3::bigint;

-- writer_sequence_insert
insert into sequences (id, tenant_id, namespace, name, version, deprecated, hold, status, definition, created_at)
select r.id, r.tenant_id, r.namespace, r.name, r.version, coalesce(r.deprecated, false), coalesce(r.hold, false), coalesce(r.status, 'production'), r.definition, r.created_at
from json_to_recordset($1::json) as r(id uuid, tenant_id text, namespace text, name text, version integer, deprecated boolean, hold boolean, status text, definition json, created_at timestamptz);

-- writer_gated_sequence_insert
with given as materialized (
  select * from json_to_recordset($1::json) as r(id uuid, tenant_id text, namespace text, name text, version integer, deprecated boolean, hold boolean, status text, definition json, created_at timestamptz)
)
insert into sequences (id, tenant_id, namespace, name, version, deprecated, hold, status, definition, created_at)
select r.id, r.tenant_id, r.namespace, r.name, r.version, coalesce(r.deprecated, false), coalesce(r.hold, false), coalesce(r.status, 'production'), r.definition, r.created_at
from given r
where not exists (select 1 from sequence_tombstones t where t.id = any(array[r.id]))
on conflict do nothing
returning id;

-- writer_sequence_update
update sequences t set deprecated = r.deprecated
from json_to_recordset($1::json) as r(id uuid, deprecated boolean)
where t.id = any(array[r.id]);

-- writer_sequence_hold
update sequences t set hold = r.hold
from json_to_recordset($1::json) as r(id uuid, hold boolean)
where t.id = any(array[r.id]);

-- writer_sequence_delete
with cron_schedules_gone as (
  delete from cron_schedules t using json_to_recordset($1::json) as r(id uuid) where t.sequence_id = r.id
)
delete from sequences s using json_to_recordset($1::json) as r(id uuid) where s.id = r.id;

-- writer_tombstone_clear
delete from sequence_tombstones t
using json_to_recordset($1::json) as r(id uuid)
where t.id = any(array[r.id]);

-- writer_tombstone_set
insert into sequence_tombstones (id, created_at)
select r.id, r.created_at
from json_to_recordset($1::json) as r(id uuid, created_at timestamptz)
on conflict (id) do update set created_at = excluded.created_at;

-- writer_apikey_insert
insert into api_keys (id, tenant_id, name, capabilities, secret_hash, created_at, last_used_at, expires_at, revoked, groups)
select r.id, r.tenant_id, r.name, r.capabilities, r.secret_hash, r.created_at, r.last_used_at, r.expires_at, r.revoked, r.groups
from json_to_recordset($1::json) as r(id text, tenant_id text, name text, capabilities json, secret_hash text, created_at timestamptz, last_used_at timestamptz, expires_at timestamptz, revoked boolean, groups text);

-- writer_apikey_update
update api_keys t set last_used_at = r.last_used_at, revoked = r.revoked
from json_to_recordset($1::json) as r(id text, last_used_at timestamptz, revoked boolean)
where t.id = any(array[r.id]);

-- writer_tenantlimits_clear
delete from tenant_limits t
using json_to_recordset($1::json) as r(tenant_id text)
where t.tenant_id = any(array[r.tenant_id]);

-- writer_tenantlimits_set
insert into tenant_limits (tenant_id, limits, set_at)
select r.tenant_id, r.limits, r.set_at
from json_to_recordset($1::json) as r(tenant_id text, limits json, set_at timestamptz)
on conflict (tenant_id) do update set limits = excluded.limits, set_at = excluded.set_at;

-- writer_taskbefore_move
with moved as (
  delete from worker_tasks_before t using (select r.id from json_to_recordset($1::json) as r(id uuid) order by r.id offset 0) r
  where t.id = any(array[r.id]) returning t.*
), closed as (
  delete from open_tasks o using moved b where o.task_id = any(array[b.id])
)
insert into worker_tasks (id, instance_id, created_at, timeout_ms, ownership_epoch, node, attempt, priority, idempotency_key, tenant_id, block_id, iteration, handler_name, queue_name, params, overlay, secrets, resume_checkpoint, history, rank, lost_claims, checkpoint_seq, claim_epoch, claimed_at, heartbeat_at, state, worker_id, withdrawn, completed_at, output, error_message, error_retryable)
select b.id, b.instance_id, b.created_at, b.timeout_ms, b.ownership_epoch, b.node, b.attempt, b.priority, b.idempotency_key, b.tenant_id, b.block_id, b.iteration, b.handler_name, b.queue_name, b.params, b.overlay, b.secrets, b.resume_checkpoint, coalesce(o.history, b.history), o.rank, coalesce(o.lost_claims, b.lost_claims), coalesce(o.checkpoint_seq, b.checkpoint_seq), coalesce(o.claim_epoch, b.claim_epoch), coalesce(o.claimed_at, b.claimed_at), coalesce(o.heartbeat_at, b.heartbeat_at), case when o.claimed_at is null then b.state else 'claimed' end, coalesce(o.worker_id, b.worker_id), b.withdrawn, b.completed_at, b.output, b.error_message, b.error_retryable
from moved b left join open_tasks o on o.task_id = any(array[b.id]);

-- writer_taskbefore_drop
with doomed as (
  select instance_id from json_to_recordset($1::json) as r(instance_id uuid)
), open_tasks_gone as (
  delete from open_tasks o using worker_tasks_before t, doomed d
  where t.instance_id = any(array[d.instance_id]) and o.task_id = any(array[t.id])
)
delete from worker_tasks_before t using doomed d where t.instance_id = any(array[d.instance_id]);

-- writer_instance_insert
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from json_to_recordset($1::json) as r(id uuid, sequence_id uuid, tenant_id text, namespace text, state text, next_fire_at timestamptz, priority smallint, timezone text, metadata json, data json, config json, context_audit json, runtime json, execution json, concurrency_key text, max_concurrency integer, idempotency_key text, parent_instance_id uuid, creation_audit json, end_outputs json, signal_count integer, audit_count integer, created_at timestamptz, updated_at timestamptz, cron_schedule_id uuid, traceparent text, release_id uuid, release_variant text, failure json, timeout bigint);

-- writer_instance_insert_lines
copy instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout) from stdin with (format csv, delimiter E'\x1f', null E'\x01', quote E'\x02');

-- writer_instance_insert_cells
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from (select $1::uuid as id, $2::uuid as sequence_id, $3::text as tenant_id, $4::text as namespace, $5::text as state, $6::timestamptz as next_fire_at, $7::smallint as priority, $8::text as timezone, $9::json as metadata, $10::json as data, $11::json as config, $12::json as context_audit, $13::json as runtime, $14::json as execution, $15::text as concurrency_key, $16::integer as max_concurrency, $17::text as idempotency_key, $18::uuid as parent_instance_id, $19::json as creation_audit, $20::json as end_outputs, $21::integer as signal_count, $22::integer as audit_count, $23::timestamptz as created_at, $24::timestamptz as updated_at, $25::uuid as cron_schedule_id, $26::text as traceparent, $27::uuid as release_id, $28::text as release_variant, $29::json as failure, $30::bigint as timeout) as r;

-- writer_gated_instance_insert
with given as materialized (
  select * from json_to_recordset($1::json) as r(id uuid, sequence_id uuid, tenant_id text, namespace text, state text, next_fire_at timestamptz, priority smallint, timezone text, metadata json, data json, config json, context_audit json, runtime json, execution json, concurrency_key text, max_concurrency integer, idempotency_key text, parent_instance_id uuid, creation_audit json, end_outputs json, signal_count integer, audit_count integer, created_at timestamptz, updated_at timestamptz, cron_schedule_id uuid, traceparent text, release_id uuid, release_variant text, failure json, timeout bigint)
)
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from given r
where not exists (select 1 from instance_keys t where t.id = any(array[r.id]))
on conflict do nothing
returning id;

-- writer_gated_instance_insert_lines
with given as materialized (
  select * from (
  select l.cells[1]::uuid as id, l.cells[2]::uuid as sequence_id, l.cells[3]::text as tenant_id, l.cells[4]::text as namespace, l.cells[5]::text as state, l.cells[6]::timestamptz as next_fire_at, l.cells[7]::smallint as priority, l.cells[8]::text as timezone, l.cells[9]::json as metadata, l.cells[10]::json as data, l.cells[11]::json as config, l.cells[12]::json as context_audit, l.cells[13]::json as runtime, l.cells[14]::json as execution, l.cells[15]::text as concurrency_key, l.cells[16]::integer as max_concurrency, l.cells[17]::text as idempotency_key, l.cells[18]::uuid as parent_instance_id, l.cells[19]::json as creation_audit, l.cells[20]::json as end_outputs, l.cells[21]::integer as signal_count, l.cells[22]::integer as audit_count, l.cells[23]::timestamptz as created_at, l.cells[24]::timestamptz as updated_at, l.cells[25]::uuid as cron_schedule_id, l.cells[26]::text as traceparent, l.cells[27]::uuid as release_id, l.cells[28]::text as release_variant, l.cells[29]::json as failure, l.cells[30]::bigint as timeout
  from (
    select string_to_array(line, E'\x1f', E'\x01') as cells
    from string_to_table($1::text, E'\x0a') as line offset 0) as l) as r
)
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from given r
where not exists (select 1 from instance_keys t where t.id = any(array[r.id]))
on conflict do nothing
returning id;

-- writer_gated_instance_insert_cells
with given as materialized (
  select * from (select $1::uuid as id, $2::uuid as sequence_id, $3::text as tenant_id, $4::text as namespace, $5::text as state, $6::timestamptz as next_fire_at, $7::smallint as priority, $8::text as timezone, $9::json as metadata, $10::json as data, $11::json as config, $12::json as context_audit, $13::json as runtime, $14::json as execution, $15::text as concurrency_key, $16::integer as max_concurrency, $17::text as idempotency_key, $18::uuid as parent_instance_id, $19::json as creation_audit, $20::json as end_outputs, $21::integer as signal_count, $22::integer as audit_count, $23::timestamptz as created_at, $24::timestamptz as updated_at, $25::uuid as cron_schedule_id, $26::text as traceparent, $27::uuid as release_id, $28::text as release_variant, $29::json as failure, $30::bigint as timeout) as r
)
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from given r
where not exists (select 1 from instance_keys t where t.id = any(array[r.id]))
on conflict do nothing
returning id;

-- writer_instance_insertchild
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from json_to_recordset($1::json) as r(id uuid, sequence_id uuid, tenant_id text, namespace text, state text, next_fire_at timestamptz, priority smallint, timezone text, metadata json, data json, config json, context_audit json, runtime json, execution json, concurrency_key text, max_concurrency integer, idempotency_key text, parent_instance_id uuid, creation_audit json, end_outputs json, signal_count integer, audit_count integer, created_at timestamptz, updated_at timestamptz, cron_schedule_id uuid, traceparent text, release_id uuid, release_variant text, failure json, timeout bigint)
on conflict (id) do nothing;

-- writer_instance_insertchild_lines
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from (
  select l.cells[1]::uuid as id, l.cells[2]::uuid as sequence_id, l.cells[3]::text as tenant_id, l.cells[4]::text as namespace, l.cells[5]::text as state, l.cells[6]::timestamptz as next_fire_at, l.cells[7]::smallint as priority, l.cells[8]::text as timezone, l.cells[9]::json as metadata, l.cells[10]::json as data, l.cells[11]::json as config, l.cells[12]::json as context_audit, l.cells[13]::json as runtime, l.cells[14]::json as execution, l.cells[15]::text as concurrency_key, l.cells[16]::integer as max_concurrency, l.cells[17]::text as idempotency_key, l.cells[18]::uuid as parent_instance_id, l.cells[19]::json as creation_audit, l.cells[20]::json as end_outputs, l.cells[21]::integer as signal_count, l.cells[22]::integer as audit_count, l.cells[23]::timestamptz as created_at, l.cells[24]::timestamptz as updated_at, l.cells[25]::uuid as cron_schedule_id, l.cells[26]::text as traceparent, l.cells[27]::uuid as release_id, l.cells[28]::text as release_variant, l.cells[29]::json as failure, l.cells[30]::bigint as timeout
  from (
    select string_to_array(line, E'\x1f', E'\x01') as cells
    from string_to_table($1::text, E'\x0a') as line offset 0) as l) as r
on conflict (id) do nothing;

-- writer_instance_insertchild_cells
insert into instances (id, sequence_id, tenant_id, namespace, state, next_fire_at, priority, timezone, metadata, data, config, context_audit, runtime, execution, concurrency_key, max_concurrency, idempotency_key, parent_instance_id, creation_audit, end_outputs, signal_count, audit_count, created_at, updated_at, cron_schedule_id, traceparent, release_id, release_variant, failure, timeout)
select r.id, r.sequence_id, r.tenant_id, r.namespace, r.state, r.next_fire_at, r.priority, r.timezone, r.metadata, r.data, r.config, r.context_audit, r.runtime, r.execution, r.concurrency_key, r.max_concurrency, r.idempotency_key, r.parent_instance_id, r.creation_audit, r.end_outputs, r.signal_count, r.audit_count, r.created_at, r.updated_at, r.cron_schedule_id, r.traceparent, r.release_id, r.release_variant, r.failure, r.timeout
from (select $1::uuid as id, $2::uuid as sequence_id, $3::text as tenant_id, $4::text as namespace, $5::text as state, $6::timestamptz as next_fire_at, $7::smallint as priority, $8::text as timezone, $9::json as metadata, $10::json as data, $11::json as config, $12::json as context_audit, $13::json as runtime, $14::json as execution, $15::text as concurrency_key, $16::integer as max_concurrency, $17::text as idempotency_key, $18::uuid as parent_instance_id, $19::json as creation_audit, $20::json as end_outputs, $21::integer as signal_count, $22::integer as audit_count, $23::timestamptz as created_at, $24::timestamptz as updated_at, $25::uuid as cron_schedule_id, $26::text as traceparent, $27::uuid as release_id, $28::text as release_variant, $29::json as failure, $30::bigint as timeout) as r
on conflict (id) do nothing;

-- writer_instance_update
update instances t set state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at
from json_to_recordset($1::json) as r(id uuid, state text, next_fire_at timestamptz, runtime json, execution json, signal_count integer, audit_count integer, end_outputs json, updated_at timestamptz)
where t.id = any(array[r.id]);

-- writer_instance_update_lines
update instances t set state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at
from (
  select l.cells[1]::uuid as id, l.cells[2]::text as state, l.cells[3]::timestamptz as next_fire_at, l.cells[4]::json as runtime, l.cells[5]::json as execution, l.cells[6]::integer as signal_count, l.cells[7]::integer as audit_count, l.cells[8]::json as end_outputs, l.cells[9]::timestamptz as updated_at
  from (
    select string_to_array(line, E'\x1f', E'\x01') as cells
    from string_to_table($1::text, E'\x0a') as line offset 0) as l) as r
where t.id = any(array[r.id]);

-- writer_instance_update_cells
update instances t set state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at
from (select $1::uuid as id, $2::text as state, $3::timestamptz as next_fire_at, $4::json as runtime, $5::json as execution, $6::integer as signal_count, $7::integer as audit_count, $8::json as end_outputs, $9::timestamptz as updated_at) as r
where t.id = any(array[r.id]);

-- writer_instance_patch
update instances t set state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at, data_patch = r.data_patch
from json_to_recordset($1::json) as r(id uuid, state text, next_fire_at timestamptz, runtime json, execution json, signal_count integer, audit_count integer, end_outputs json, updated_at timestamptz, data_patch json)
where t.id = any(array[r.id]);

-- writer_instance_patch_lines
update instances t set state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at, data_patch = r.data_patch
from (
  select l.cells[1]::uuid as id, l.cells[2]::text as state, l.cells[3]::timestamptz as next_fire_at, l.cells[4]::json as runtime, l.cells[5]::json as execution, l.cells[6]::integer as signal_count, l.cells[7]::integer as audit_count, l.cells[8]::json as end_outputs, l.cells[9]::timestamptz as updated_at, l.cells[10]::json as data_patch
  from (
    select string_to_array(line, E'\x1f', E'\x01') as cells
    from string_to_table($1::text, E'\x0a') as line offset 0) as l) as r
where t.id = any(array[r.id]);

-- writer_instance_patch_cells
update instances t set state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at, data_patch = r.data_patch
from (select $1::uuid as id, $2::text as state, $3::timestamptz as next_fire_at, $4::json as runtime, $5::json as execution, $6::integer as signal_count, $7::integer as audit_count, $8::json as end_outputs, $9::timestamptz as updated_at, $10::json as data_patch) as r
where t.id = any(array[r.id]);

-- writer_instance_change
update instances t set creation_data = coalesce(t.creation_data, t.data), state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at, data_patch = r.data_patch, data = r.data
from json_to_recordset($1::json) as r(id uuid, state text, next_fire_at timestamptz, runtime json, execution json, signal_count integer, audit_count integer, end_outputs json, updated_at timestamptz, data_patch json, data json)
where t.id = any(array[r.id]);

-- writer_instance_change_lines
update instances t set creation_data = coalesce(t.creation_data, t.data), state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at, data_patch = r.data_patch, data = r.data
from (
  select l.cells[1]::uuid as id, l.cells[2]::text as state, l.cells[3]::timestamptz as next_fire_at, l.cells[4]::json as runtime, l.cells[5]::json as execution, l.cells[6]::integer as signal_count, l.cells[7]::integer as audit_count, l.cells[8]::json as end_outputs, l.cells[9]::timestamptz as updated_at, l.cells[10]::json as data_patch, l.cells[11]::json as data
  from (
    select string_to_array(line, E'\x1f', E'\x01') as cells
    from string_to_table($1::text, E'\x0a') as line offset 0) as l) as r
where t.id = any(array[r.id]);

-- writer_instance_change_cells
update instances t set creation_data = coalesce(t.creation_data, t.data), state = r.state, next_fire_at = r.next_fire_at, runtime = r.runtime, execution = r.execution, signal_count = r.signal_count, audit_count = r.audit_count, end_outputs = r.end_outputs, updated_at = r.updated_at, data_patch = r.data_patch, data = r.data
from (select $1::uuid as id, $2::text as state, $3::timestamptz as next_fire_at, $4::json as runtime, $5::json as execution, $6::integer as signal_count, $7::integer as audit_count, $8::json as end_outputs, $9::timestamptz as updated_at, $10::json as data_patch, $11::json as data) as r
where t.id = any(array[r.id]);

-- writer_instance_config
update instances t set config = r.config, context_audit = r.context_audit
from json_to_recordset($1::json) as r(id uuid, config json, context_audit json)
where t.id = any(array[r.id]);

-- writer_instance_rebind
update instances t set sequence_id = r.sequence_id
from json_to_recordset($1::json) as r(id uuid, sequence_id uuid)
where t.id = any(array[r.id]);

-- writer_instance_trace
update instances t set traceparent = r.traceparent
from json_to_recordset($1::json) as r(id uuid, traceparent text)
where t.id = any(array[r.id]);

-- writer_instance_ownership
update instances t set continuity_id = r.continuity_id, ownership_epoch = r.ownership_epoch, fence = r.fence
from json_to_recordset($1::json) as r(id uuid, continuity_id uuid, ownership_epoch bigint, fence json)
where t.id = any(array[r.id]);

-- writer_instance_failure
update instances t set failure = r.failure
from json_to_recordset($1::json) as r(id uuid, failure json)
where t.id = any(array[r.id]);

-- writer_instance_delete
with doomed as (
  select id from json_to_recordset($1::json) as r(id uuid)
), executions_ended as (
  update continuity_executions e set
    ended = i.state, updated_at = greatest(e.updated_at, i.updated_at)
  from instances i, doomed d
  where i.id = d.id and i.continuity_id is not null
    and i.state in ('completed', 'failed', 'cancelled')
    and e.tenant_id = i.tenant_id and e.current_instance_id = i.id
), instances_gone as (
  delete from instances t using doomed d where t.id = any(array[d.id])
), instance_keys_gone as (
  delete from instance_keys t using doomed d where t.instance_id = any(array[d.id])
), timers_gone as (
  delete from timers t using doomed d where t.instance_id = any(array[d.id])
), dead_letters_gone as (
  delete from dead_letters t using doomed d where t.instance_id = any(array[d.id])
), search_terms_gone as (
  delete from search_terms t using doomed d where t.instance_id = any(array[d.id])
), injected_blocks_gone as (
  delete from injected_blocks t using doomed d where t.instance_id = any(array[d.id])
), kin_notes_gone as (
  delete from kin_notes t using doomed d where t.to_id = any(array[d.id])
), permit_requests_gone as (
  delete from permit_requests t using doomed d where t.instance_id = any(array[d.id])
), start_requests_gone as (
  delete from start_requests t using doomed d where t.instance_id = any(array[d.id])
), bulk_changes_gone as (
  delete from bulk_changes t using doomed d where t.instance_id = any(array[d.id])
), bulk_retries_gone as (
  delete from bulk_retries t using doomed d where t.instance_id = any(array[d.id])
), worker_tasks_gone as (
  delete from worker_tasks t using doomed d where t.instance_id = any(array[d.id])
), effect_receipts_gone as (
  delete from effect_receipts t using doomed d where t.instance_id = any(array[d.id])
), block_outputs_gone as (
  delete from block_outputs t using doomed d where t.instance_id = any(array[d.id])
), iteration_snapshots_gone as (
  delete from iteration_snapshots t using doomed d where t.instance_id = any(array[d.id])
), signals_gone as (
  delete from signals t using doomed d where t.instance_id = any(array[d.id])
), approvals_gone as (
  delete from approvals t using doomed d where t.instance_id = any(array[d.id])
), audit_log_gone as (
  delete from audit_log t using doomed d where t.instance_id = any(array[d.id])
), step_logs_gone as (
  delete from step_logs t using doomed d where t.instance_id = any(array[d.id])
), checkpoints_gone as (
  delete from checkpoints t using doomed d where t.instance_id = any(array[d.id])
), event_waits_gone as (
  delete from event_waits t using doomed d where t.instance_id = any(array[d.id])
), event_takes_gone as (
  delete from event_takes t using doomed d where t.instance_id = any(array[d.id])
), cancel_waits_gone as (
  delete from cancel_waits t using doomed d where t.instance_id = any(array[d.id])
), event_cancels_gone as (
  delete from event_cancels t using doomed d where t.instance_id = any(array[d.id])
), release_outcomes_gone as (
  delete from release_outcomes t using doomed d where t.instance_id = any(array[d.id])
), artifacts_gone as (
  delete from artifacts t using doomed d where t.instance_id = any(array[d.id])
), migrations_gone as (
  delete from migrations t using doomed d where t.continuity_id = any(array[d.id])
), effect_resolutions_gone as (
  delete from effect_resolutions t using doomed d where t.instance_id = any(array[d.id])
)
select count(*) from doomed;

-- writer_instancekey_insert
insert into instance_keys (id, instance_id, tenant_id, idempotency_key, created_at)
select r.id, r.instance_id, r.tenant_id, r.idempotency_key, r.created_at
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, tenant_id text, idempotency_key text, created_at timestamptz);

-- writer_gated_instancekey_insert
with given as materialized (
  select * from json_to_recordset($1::json) as r(id uuid, instance_id uuid, tenant_id text, idempotency_key text, created_at timestamptz)
)
insert into instance_keys (id, instance_id, tenant_id, idempotency_key, created_at)
select r.id, r.instance_id, r.tenant_id, r.idempotency_key, r.created_at
from given r
where not exists (select 1 from instances t where t.id = any(array[r.id]))
on conflict do nothing
returning id;

-- writer_timer_clear
delete from timers t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_timer_set
insert into timers (instance_id, fire_at, recover, rank)
select r.instance_id, r.fire_at, r.recover, coalesce(r.rank, 2)
from json_to_recordset($1::json) as r(instance_id uuid, fire_at timestamptz, recover boolean, rank smallint)
on conflict (instance_id) do update set fire_at = excluded.fire_at, recover = excluded.recover, rank = excluded.rank;

-- writer_deadletter_clear
delete from dead_letters t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_deadletter_set
insert into dead_letters (instance_id, tenant_id, created_at, failed_at, reason, namespace, sequence_id, failure_code, block_id, handler, folded_reason)
select r.instance_id, r.tenant_id, r.created_at, r.failed_at, r.reason, r.namespace, r.sequence_id, r.failure_code, r.block_id, r.handler, r.folded_reason
from json_to_recordset($1::json) as r(instance_id uuid, tenant_id text, created_at timestamptz, failed_at timestamptz, reason text, namespace text, sequence_id uuid, failure_code text, block_id text, handler text, folded_reason text)
on conflict (instance_id) do update set tenant_id = excluded.tenant_id, created_at = excluded.created_at, failed_at = excluded.failed_at, reason = excluded.reason, namespace = excluded.namespace, sequence_id = excluded.sequence_id, failure_code = excluded.failure_code, block_id = excluded.block_id, handler = excluded.handler, folded_reason = excluded.folded_reason;

-- writer_deadletter_rebind
update dead_letters t set sequence_id = r.sequence_id
from json_to_recordset($1::json) as r(instance_id uuid, sequence_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_searchterm_insert
insert into search_terms (instance_id, term, tenant_id, created_at)
select r.instance_id, r.term, r.tenant_id, r.created_at
from json_to_recordset($1::json) as r(instance_id uuid, term text, tenant_id text, created_at timestamptz);

-- writer_searchterm_insert_lines
copy search_terms (instance_id, term, tenant_id, created_at) from stdin with (format csv, delimiter E'\x1f', null E'\x01', quote E'\x02');

-- writer_searchterm_insert_cells
insert into search_terms (instance_id, term, tenant_id, created_at)
select r.instance_id, r.term, r.tenant_id, r.created_at
from (select $1::uuid as instance_id, $2::text as term, $3::text as tenant_id, $4::timestamptz as created_at) as r;

-- writer_searchterm_clear
delete from search_terms t
using json_to_recordset($1::json) as r(instance_id uuid, term text)
where t.instance_id = any(array[r.instance_id]) and t.term = r.term;

-- writer_searchterm_set
insert into search_terms (instance_id, term, tenant_id, created_at)
select r.instance_id, r.term, r.tenant_id, r.created_at
from json_to_recordset($1::json) as r(instance_id uuid, term text, tenant_id text, created_at timestamptz)
on conflict (instance_id, term) do update set created_at = excluded.created_at;

-- writer_injection_set
insert into injected_blocks (instance_id, blocks)
select r.instance_id, r.blocks
from json_to_recordset($1::json) as r(instance_id uuid, blocks json)
on conflict (instance_id) do update set blocks = excluded.blocks;

-- writer_familymessage_set
insert into kin_notes (to_id, from_id, id, word)
select r.to_id, r.from_id, r.id, r.word
from json_to_recordset($1::json) as r(to_id uuid, from_id uuid, id uuid, word text)
on conflict (to_id, from_id) do update set id = excluded.id, word = excluded.word;

-- writer_familymessage_clear
delete from kin_notes t
using json_to_recordset($1::json) as r(to_id uuid, from_id uuid, id uuid)
where t.to_id = any(array[r.to_id]) and t.from_id = r.from_id and t.id = r.id;

-- writer_permitrequest_clear
delete from permit_requests t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_permitrequest_set
insert into permit_requests (instance_id, key_id, max_concurrency, number, created_at, when_full, has_slot)
select r.instance_id, r.key_id, r.max_concurrency, r.number, r.created_at, r.when_full, r.has_slot
from json_to_recordset($1::json) as r(instance_id uuid, key_id uuid, max_concurrency integer, number integer, created_at timestamptz, when_full text, has_slot boolean)
on conflict (instance_id) do update set number = excluded.number, when_full = excluded.when_full, has_slot = excluded.has_slot;

-- writer_startrequest_clear
delete from start_requests t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_startrequest_set
insert into start_requests (instance_id, key_id, max_starts, per_ms, burst, created_at)
select r.instance_id, r.key_id, r.max_starts, r.per_ms, r.burst, r.created_at
from json_to_recordset($1::json) as r(instance_id uuid, key_id uuid, max_starts integer, per_ms bigint, burst integer, created_at timestamptz)
on conflict (instance_id) do update set key_id = excluded.key_id, max_starts = excluded.max_starts, per_ms = excluded.per_ms, burst = excluded.burst;

-- writer_bulkchange_insert
insert into bulk_changes (job_id, instance_id)
select r.job_id, r.instance_id
from json_to_recordset($1::json) as r(job_id uuid, instance_id uuid);

-- writer_bulkchange_clear
delete from bulk_changes t
using json_to_recordset($1::json) as r(job_id uuid, instance_id uuid)
where t.job_id = any(array[r.job_id]) and t.instance_id = r.instance_id;

-- writer_bulkretry_insert
insert into bulk_retries (job_id, instance_id, retried_at)
select r.job_id, r.instance_id, r.retried_at
from json_to_recordset($1::json) as r(job_id uuid, instance_id uuid, retried_at timestamptz);

-- writer_bulkretry_prune
delete from bulk_retries t using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select job_id, instance_id from bulk_retries where retried_at < r.before
  order by retried_at limit 1000 offset 0) as old
where t.job_id = old.job_id and t.instance_id = old.instance_id;

-- writer_task_insert
insert into worker_tasks (id, instance_id, created_at, timeout_ms, ownership_epoch, node, attempt, priority, idempotency_key, tenant_id, block_id, iteration, handler_name, queue_name, params, overlay, secrets, resume_checkpoint, history, rank, lost_claims, checkpoint_seq, claim_epoch, claimed_at, heartbeat_at, state, worker_id, withdrawn, completed_at, output, error_message, error_retryable)
select r.id, r.instance_id, r.created_at, r.timeout_ms, r.ownership_epoch, r.node, r.attempt, r.priority, r.idempotency_key, r.tenant_id, r.block_id, r.iteration, r.handler_name, r.queue_name, r.params, r.overlay, r.secrets, r.resume_checkpoint, r.history, r.rank, r.lost_claims, r.checkpoint_seq, r.claim_epoch, r.claimed_at, r.heartbeat_at, r.state, r.worker_id, r.withdrawn, r.completed_at, r.output, r.error_message, r.error_retryable
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, created_at timestamptz, timeout_ms bigint, ownership_epoch bigint, node integer, attempt integer, priority smallint, idempotency_key uuid, tenant_id text, block_id text, iteration text, handler_name text, queue_name text, params json, overlay json, secrets json, resume_checkpoint json, history json, rank smallint, lost_claims integer, checkpoint_seq integer, claim_epoch integer, claimed_at timestamptz, heartbeat_at timestamptz, state text, worker_id text, withdrawn boolean, completed_at timestamptz, output json, error_message text, error_retryable boolean);

-- writer_task_insert_lines
copy worker_tasks (id, instance_id, created_at, timeout_ms, ownership_epoch, node, attempt, priority, idempotency_key, tenant_id, block_id, iteration, handler_name, queue_name, params, overlay, secrets, resume_checkpoint, history, rank, lost_claims, checkpoint_seq, claim_epoch, claimed_at, heartbeat_at, state, worker_id, withdrawn, completed_at, output, error_message, error_retryable) from stdin with (format csv, delimiter E'\x1f', null E'\x01', quote E'\x02');

-- writer_task_insert_cells
insert into worker_tasks (id, instance_id, created_at, timeout_ms, ownership_epoch, node, attempt, priority, idempotency_key, tenant_id, block_id, iteration, handler_name, queue_name, params, overlay, secrets, resume_checkpoint, history, rank, lost_claims, checkpoint_seq, claim_epoch, claimed_at, heartbeat_at, state, worker_id, withdrawn, completed_at, output, error_message, error_retryable)
select r.id, r.instance_id, r.created_at, r.timeout_ms, r.ownership_epoch, r.node, r.attempt, r.priority, r.idempotency_key, r.tenant_id, r.block_id, r.iteration, r.handler_name, r.queue_name, r.params, r.overlay, r.secrets, r.resume_checkpoint, r.history, r.rank, r.lost_claims, r.checkpoint_seq, r.claim_epoch, r.claimed_at, r.heartbeat_at, r.state, r.worker_id, r.withdrawn, r.completed_at, r.output, r.error_message, r.error_retryable
from (select $1::uuid as id, $2::uuid as instance_id, $3::timestamptz as created_at, $4::bigint as timeout_ms, $5::bigint as ownership_epoch, $6::integer as node, $7::integer as attempt, $8::smallint as priority, $9::uuid as idempotency_key, $10::text as tenant_id, $11::text as block_id, $12::text as iteration, $13::text as handler_name, $14::text as queue_name, $15::json as params, $16::json as overlay, $17::json as secrets, $18::json as resume_checkpoint, $19::json as history, $20::smallint as rank, $21::integer as lost_claims, $22::integer as checkpoint_seq, $23::integer as claim_epoch, $24::timestamptz as claimed_at, $25::timestamptz as heartbeat_at, $26::text as state, $27::text as worker_id, $28::boolean as withdrawn, $29::timestamptz as completed_at, $30::json as output, $31::text as error_message, $32::boolean as error_retryable) as r;

-- writer_task_claim
update worker_tasks t set state = r.state, worker_id = r.worker_id, claim_epoch = r.claim_epoch, lost_claims = r.lost_claims, claimed_at = r.claimed_at, heartbeat_at = r.heartbeat_at, checkpoint_seq = r.checkpoint_seq
from json_to_recordset($1::json) as r(id uuid, state text, worker_id text, claim_epoch integer, lost_claims integer, claimed_at timestamptz, heartbeat_at timestamptz, checkpoint_seq integer)
where t.id = any(array[r.id]);

-- writer_task_claim_lines
update worker_tasks t set state = r.state, worker_id = r.worker_id, claim_epoch = r.claim_epoch, lost_claims = r.lost_claims, claimed_at = r.claimed_at, heartbeat_at = r.heartbeat_at, checkpoint_seq = r.checkpoint_seq
from (
  select l.cells[1]::uuid as id, l.cells[2]::text as state, l.cells[3]::text as worker_id, l.cells[4]::integer as claim_epoch, l.cells[5]::integer as lost_claims, l.cells[6]::timestamptz as claimed_at, l.cells[7]::timestamptz as heartbeat_at, l.cells[8]::integer as checkpoint_seq
  from (
    select string_to_array(line, E'\x1f', E'\x01') as cells
    from string_to_table($1::text, E'\x0a') as line offset 0) as l) as r
where t.id = any(array[r.id]);

-- writer_task_claim_cells
update worker_tasks t set state = r.state, worker_id = r.worker_id, claim_epoch = r.claim_epoch, lost_claims = r.lost_claims, claimed_at = r.claimed_at, heartbeat_at = r.heartbeat_at, checkpoint_seq = r.checkpoint_seq
from (select $1::uuid as id, $2::text as state, $3::text as worker_id, $4::integer as claim_epoch, $5::integer as lost_claims, $6::timestamptz as claimed_at, $7::timestamptz as heartbeat_at, $8::integer as checkpoint_seq) as r
where t.id = any(array[r.id]);

-- writer_task_history
update worker_tasks t set history = r.history
from json_to_recordset($1::json) as r(id uuid, history json)
where t.id = any(array[r.id]);

-- writer_task_rank
update worker_tasks t set rank = r.rank
from json_to_recordset($1::json) as r(id uuid, rank smallint)
where t.id = any(array[r.id]);

-- writer_task_checkpoint
update worker_tasks t set resume_checkpoint = r.resume_checkpoint
from json_to_recordset($1::json) as r(id uuid, resume_checkpoint json)
where t.id = any(array[r.id]);

-- writer_task_end
update worker_tasks t set state = r.state, worker_id = r.worker_id, claim_epoch = r.claim_epoch, lost_claims = r.lost_claims, claimed_at = r.claimed_at, heartbeat_at = r.heartbeat_at, checkpoint_seq = r.checkpoint_seq, rank = r.rank, withdrawn = r.withdrawn, completed_at = r.completed_at, output = r.output, error_message = r.error_message, error_retryable = r.error_retryable, history = r.history
from json_to_recordset($1::json) as r(id uuid, state text, worker_id text, claim_epoch integer, lost_claims integer, claimed_at timestamptz, heartbeat_at timestamptz, checkpoint_seq integer, rank smallint, withdrawn boolean, completed_at timestamptz, output json, error_message text, error_retryable boolean, history json)
where t.id = any(array[r.id]);

-- writer_task_end_lines
update worker_tasks t set state = r.state, worker_id = r.worker_id, claim_epoch = r.claim_epoch, lost_claims = r.lost_claims, claimed_at = r.claimed_at, heartbeat_at = r.heartbeat_at, checkpoint_seq = r.checkpoint_seq, rank = r.rank, withdrawn = r.withdrawn, completed_at = r.completed_at, output = r.output, error_message = r.error_message, error_retryable = r.error_retryable, history = r.history
from (
  select l.cells[1]::uuid as id, l.cells[2]::text as state, l.cells[3]::text as worker_id, l.cells[4]::integer as claim_epoch, l.cells[5]::integer as lost_claims, l.cells[6]::timestamptz as claimed_at, l.cells[7]::timestamptz as heartbeat_at, l.cells[8]::integer as checkpoint_seq, l.cells[9]::smallint as rank, l.cells[10]::boolean as withdrawn, l.cells[11]::timestamptz as completed_at, l.cells[12]::json as output, l.cells[13]::text as error_message, l.cells[14]::boolean as error_retryable, l.cells[15]::json as history
  from (
    select string_to_array(line, E'\x1f', E'\x01') as cells
    from string_to_table($1::text, E'\x0a') as line offset 0) as l) as r
where t.id = any(array[r.id]);

-- writer_task_end_cells
update worker_tasks t set state = r.state, worker_id = r.worker_id, claim_epoch = r.claim_epoch, lost_claims = r.lost_claims, claimed_at = r.claimed_at, heartbeat_at = r.heartbeat_at, checkpoint_seq = r.checkpoint_seq, rank = r.rank, withdrawn = r.withdrawn, completed_at = r.completed_at, output = r.output, error_message = r.error_message, error_retryable = r.error_retryable, history = r.history
from (select $1::uuid as id, $2::text as state, $3::text as worker_id, $4::integer as claim_epoch, $5::integer as lost_claims, $6::timestamptz as claimed_at, $7::timestamptz as heartbeat_at, $8::integer as checkpoint_seq, $9::smallint as rank, $10::boolean as withdrawn, $11::timestamptz as completed_at, $12::json as output, $13::text as error_message, $14::boolean as error_retryable, $15::json as history) as r
where t.id = any(array[r.id]);

-- writer_task_note
update worker_tasks t set checkpoint_seq = r.checkpoint_seq, history = r.history
from json_to_recordset($1::json) as r(id uuid, checkpoint_seq integer, history json)
where t.id = any(array[r.id]);

-- writer_effect_insert
insert into effect_receipts (id, instance_id, continuity_id, tenant_id, epoch, block_id, attempt, kind, state, destination_fingerprint, idempotency_key, request_sha256, provider_receipt_id, created_at, updated_at, iteration)
select r.id, r.instance_id, r.continuity_id, r.tenant_id, r.epoch, r.block_id, r.attempt, r.kind, r.state, r.destination_fingerprint, r.idempotency_key, r.request_sha256, r.provider_receipt_id, r.created_at, r.updated_at, r.iteration
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, continuity_id uuid, tenant_id text, epoch bigint, block_id text, attempt integer, kind text, state text, destination_fingerprint text, idempotency_key text, request_sha256 text, provider_receipt_id text, created_at timestamptz, updated_at timestamptz, iteration text)
on conflict (id) do nothing;

-- writer_output_droperrors
delete from block_outputs t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]) and t.output_ref = '__error__';

-- writer_output_dropblocks
with dropped as (
  delete from block_outputs o using json_to_recordset($1::json) as r(instance_id uuid, block_ids json)
  where o.instance_id = r.instance_id
    and o.block_id in (select json_array_elements_text(r.block_ids))
  returning o.effect
)
insert into effect_receipts (id, instance_id, continuity_id, tenant_id, epoch, block_id, attempt, kind, state, destination_fingerprint, idempotency_key, request_sha256, provider_receipt_id, created_at, updated_at, iteration)
select r.*
from dropped d cross join lateral json_to_record(d.effect) as r(id uuid, instance_id uuid, continuity_id uuid, tenant_id text, epoch bigint, block_id text, attempt integer, kind text, state text, destination_fingerprint text, idempotency_key text, request_sha256 text, provider_receipt_id text, created_at timestamptz, updated_at timestamptz, iteration text)
where d.effect is not null
on conflict (id) do nothing;

-- writer_output_insert
insert into block_outputs (id, instance_id, block_id, iteration, attempt, try, output, output_ref, output_size, created_at, effect)
select r.id, r.instance_id, r.block_id, r.iteration, r.attempt, r.try, r.output, r.output_ref, r.output_size, r.created_at, r.effect
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, block_id text, iteration text, attempt integer, try integer, output json, output_ref text, output_size integer, created_at timestamptz, effect json);

-- writer_output_insert_lines
copy block_outputs (id, instance_id, block_id, iteration, attempt, try, output, output_ref, output_size, created_at, effect) from stdin with (format csv, delimiter E'\x1f', null E'\x01', quote E'\x02');

-- writer_output_insert_cells
insert into block_outputs (id, instance_id, block_id, iteration, attempt, try, output, output_ref, output_size, created_at, effect)
select r.id, r.instance_id, r.block_id, r.iteration, r.attempt, r.try, r.output, r.output_ref, r.output_size, r.created_at, r.effect
from (select $1::uuid as id, $2::uuid as instance_id, $3::text as block_id, $4::text as iteration, $5::integer as attempt, $6::integer as try, $7::json as output, $8::text as output_ref, $9::integer as output_size, $10::timestamptz as created_at, $11::json as effect) as r;

-- writer_snapshot_clear
delete from iteration_snapshots t
using json_to_recordset($1::json) as r(instance_id uuid, key text)
where t.instance_id = any(array[r.instance_id]) and t.key = r.key;

-- writer_snapshot_set
insert into iteration_snapshots (instance_id, key, items)
select r.instance_id, r.key, r.items
from json_to_recordset($1::json) as r(instance_id uuid, key text, items json)
on conflict (instance_id, key) do update set items = excluded.items;

-- writer_signal_insert
insert into signals (id, instance_id, seq, signal_type, payload, created_at, traceparent, status, taken_at, taken_by, sent_by, sent_groups)
select r.id, r.instance_id, r.seq, r.signal_type, r.payload, r.created_at, r.traceparent, r.status, r.taken_at, r.taken_by, r.sent_by, r.sent_groups
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, seq integer, signal_type text, payload json, created_at timestamptz, traceparent text, status text, taken_at timestamptz, taken_by text, sent_by text, sent_groups text);

-- writer_signal_update
update signals t set status = r.status, taken_at = r.taken_at, taken_by = r.taken_by
from json_to_recordset($1::json) as r(instance_id uuid, seq integer, status text, taken_at timestamptz, taken_by text)
where t.instance_id = any(array[r.instance_id]) and t.seq = r.seq;

-- writer_approval_insert
insert into approvals (id, instance_id, tenant_id, namespace, sequence_id, block_id, path, iteration, prompt, gate, waiting_since, deadline, outcome, closed_at, answer, approvers)
select r.id, r.instance_id, r.tenant_id, r.namespace, r.sequence_id, r.block_id, r.path, r.iteration, r.prompt, r.gate, r.waiting_since, r.deadline, r.outcome, r.closed_at, r.answer, r.approvers
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, tenant_id text, namespace text, sequence_id uuid, block_id text, path text, iteration text, prompt text, gate json, waiting_since timestamptz, deadline timestamptz, outcome text, closed_at timestamptz, answer json, approvers text);

-- writer_approval_update
update approvals t set sequence_id = r.sequence_id, path = r.path, prompt = r.prompt, gate = r.gate, deadline = r.deadline, approvers = r.approvers
from json_to_recordset($1::json) as r(id uuid, sequence_id uuid, path text, prompt text, gate json, deadline timestamptz, approvers text)
where t.id = any(array[r.id]);

-- writer_approval_close
update approvals t set outcome = r.outcome, closed_at = r.closed_at, answer = r.answer
from json_to_recordset($1::json) as r(id uuid, outcome text, closed_at timestamptz, answer json)
where t.id = any(array[r.id]);

-- writer_audit_insert
insert into audit_log (instance_id, seq, tenant_id, entries, created_at)
select r.instance_id, r.seq, r.tenant_id, r.entries, r.created_at
from json_to_recordset($1::json) as r(instance_id uuid, seq integer, tenant_id text, entries json, created_at timestamptz);

-- writer_audit_insert_lines
copy audit_log (instance_id, seq, tenant_id, entries, created_at) from stdin with (format csv, delimiter E'\x1f', null E'\x01', quote E'\x02');

-- writer_audit_insert_cells
insert into audit_log (instance_id, seq, tenant_id, entries, created_at)
select r.instance_id, r.seq, r.tenant_id, r.entries, r.created_at
from (select $1::uuid as instance_id, $2::integer as seq, $3::text as tenant_id, $4::json as entries, $5::timestamptz as created_at) as r;

-- writer_steplog_insert
insert into step_logs (id, instance_id, tenant, entries, created_at)
select r.id, r.instance_id, r.tenant, r.entries, r.created_at
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, tenant text, entries json, created_at timestamptz);

-- writer_checkpoint_insert
insert into checkpoints (id, instance_id, checkpoint_data, created_at)
select r.id, r.instance_id, r.checkpoint_data, r.created_at
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, checkpoint_data json, created_at timestamptz);

-- writer_checkpoint_prune
delete from checkpoints c using json_to_recordset($1::json) as r(instance_id uuid, keep integer)
where c.instance_id = r.instance_id and c.id in (
  select o.id from checkpoints o where o.instance_id = r.instance_id
  order by o.id desc offset r.keep);

-- writer_permit_clear
delete from permits t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_permit_set
insert into permits (instance_id, key_id, number)
select r.instance_id, r.key_id, r.number
from json_to_recordset($1::json) as r(instance_id uuid, key_id uuid, number integer)
on conflict (instance_id) do update set number = excluded.number;

-- writer_ratelimit_clear
delete from rate_limits t
using json_to_recordset($1::json) as r(id uuid)
where t.id = any(array[r.id]);

-- writer_ratelimit_set
insert into rate_limits (id, tenant_id, limit_key, max_count, window_seconds, updated_at)
select r.id, r.tenant_id, r.limit_key, r.max_count, r.window_seconds, r.updated_at
from json_to_recordset($1::json) as r(id uuid, tenant_id text, limit_key text, max_count integer, window_seconds integer, updated_at timestamptz)
on conflict (id) do update set max_count = excluded.max_count, window_seconds = excluded.window_seconds, updated_at = excluded.updated_at;

-- writer_rategrant_prune
delete from rate_grants g using json_to_recordset($1::json) as r(limit_id uuid, before timestamptz)
where g.limit_id = r.limit_id and g.granted_at < r.before;

-- writer_rategrant_insert
insert into rate_grants (limit_id, granted_at, id, count, tenant_id)
select r.limit_id, r.granted_at, r.id, r.count, r.tenant_id
from json_to_recordset($1::json) as r(limit_id uuid, granted_at timestamptz, id uuid, count integer, tenant_id text);

-- writer_startgrant_prune
delete from start_grants g using json_to_recordset($1::json) as r(key_id uuid, before timestamptz)
where g.key_id = r.key_id and g.granted_at < r.before;

-- writer_startgrant_insert
insert into start_grants (key_id, granted_at, id, tenant_id, count)
select r.key_id, r.granted_at, r.id, r.tenant_id, r.count
from json_to_recordset($1::json) as r(key_id uuid, granted_at timestamptz, id uuid, tenant_id text, count integer);

-- writer_event_insert
insert into events (id, key_id, seq, tenant_id, event_name, producer_event_id, correlation_key, payload, status, matched, targets, created_at, expires_at, ended_at, fires)
select r.id, r.key_id, r.seq, r.tenant_id, r.event_name, r.producer_event_id, r.correlation_key, r.payload, r.status, r.matched, r.targets, r.created_at, r.expires_at, r.ended_at, r.fires
from json_to_recordset($1::json) as r(id uuid, key_id uuid, seq bigint, tenant_id text, event_name text, producer_event_id text, correlation_key text, payload json, status text, matched integer, targets json, created_at timestamptz, expires_at timestamptz, ended_at timestamptz, fires json);

-- writer_gated_event_insert
insert into events (id, key_id, seq, tenant_id, event_name, producer_event_id, correlation_key, payload, status, matched, targets, created_at, expires_at, ended_at, fires)
select r.id, r.key_id, r.seq, r.tenant_id, r.event_name, r.producer_event_id, r.correlation_key, r.payload, r.status, r.matched, r.targets, r.created_at, r.expires_at, r.ended_at, r.fires
from json_to_recordset($1::json) as r(id uuid, key_id uuid, seq bigint, tenant_id text, event_name text, producer_event_id text, correlation_key text, payload json, status text, matched integer, targets json, created_at timestamptz, expires_at timestamptz, ended_at timestamptz, fires json)
on conflict do nothing
returning id;

-- writer_event_update
update events t set status = r.status, matched = r.matched, targets = r.targets, ended_at = r.ended_at
from json_to_recordset($1::json) as r(id uuid, status text, matched integer, targets json, ended_at timestamptz)
where t.id = any(array[r.id]);

-- writer_event_fired
update events t set fires = r.fires
from json_to_recordset($1::json) as r(id uuid, fires json)
where t.id = any(array[r.id]);

-- writer_event_prune
delete from events t using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select id from events where status <> 'pending' and targets is null and fires is null and ended_at < r.before
  order by ended_at, id limit 1000 offset 0) as old
where t.id = old.id;

-- writer_eventwait_clear
delete from event_waits t
using json_to_recordset($1::json) as r(instance_id uuid, id uuid)
where t.instance_id = any(array[r.instance_id]) and t.id = r.id;

-- writer_eventwait_set
insert into event_waits (instance_id, id, key_id)
select r.instance_id, r.id, r.key_id
from json_to_recordset($1::json) as r(instance_id uuid, id uuid, key_id uuid)
on conflict (instance_id, id) do update set key_id = excluded.key_id;

-- writer_eventtake_insert
insert into event_takes (instance_id, event_id, wait_id, block_id, outcome, taken_at)
select r.instance_id, r.event_id, r.wait_id, r.block_id, r.outcome, r.taken_at
from json_to_recordset($1::json) as r(instance_id uuid, event_id uuid, wait_id uuid, block_id text, outcome text, taken_at timestamptz)
on conflict (instance_id, event_id, wait_id) do nothing;

-- writer_cancelwait_clear
delete from cancel_waits t
using json_to_recordset($1::json) as r(instance_id uuid, key_id uuid)
where t.instance_id = any(array[r.instance_id]) and t.key_id = r.key_id;

-- writer_cancelwait_set
insert into cancel_waits (instance_id, key_id)
select r.instance_id, r.key_id
from json_to_recordset($1::json) as r(instance_id uuid, key_id uuid)
on conflict (instance_id, key_id) do update set key_id = excluded.key_id;

-- writer_eventcancel_insert
insert into event_cancels (instance_id, event_id, outcome, taken_at)
select r.instance_id, r.event_id, r.outcome, r.taken_at
from json_to_recordset($1::json) as r(instance_id uuid, event_id uuid, outcome text, taken_at timestamptz)
on conflict (instance_id, event_id) do nothing;

-- writer_eventcancel_order
insert into event_cancels (instance_id, event_id)
select w.instance_id, r.event_id
from json_to_recordset($1::json) as r(event_id uuid, key_id uuid) join cancel_waits w on w.key_id = any(array[r.key_id])
on conflict (instance_id, event_id) do nothing;

-- writer_eventcancel_settle
update event_cancels t set outcome = r.outcome, taken_at = r.taken_at
from json_to_recordset($1::json) as r(instance_id uuid, event_id uuid, outcome text, taken_at timestamptz)
where t.instance_id = any(array[r.instance_id]) and t.event_id = r.event_id
  and t.outcome is null;

-- writer_eventcancel_handover
insert into event_cancels (instance_id, event_id, outcome, taken_at)
select r.instance_id, r.event_id, case when not w.is_awaited then 'ended' end,
  case when not w.is_awaited then r.taken_at end
from json_to_recordset($1::json) as r(instance_id uuid, event_id uuid, key_id uuid, name_id uuid, taken_at timestamptz) cross join lateral (
  select exists (select 1 from cancel_waits c
    where c.instance_id = any(array[r.instance_id]) and c.key_id in (r.key_id, r.name_id) offset 0
  ) as is_awaited) w
where exists (select 1 from instances i where i.id = any(array[r.instance_id]) offset 0)
on conflict (instance_id, event_id) do nothing;

-- writer_eventcancel_drop
delete from event_cancels t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_collectedwait_insert
insert into collected_waits (pending_id, seq, key_id, tenant_id)
select r.pending_id, r.seq, r.key_id, r.tenant_id
from json_to_recordset($1::json) as r(pending_id uuid, seq integer, key_id uuid, tenant_id text);

-- writer_collectedwait_clear
delete from collected_waits t using json_to_recordset($1::json) as r(pending_id uuid, from_seq integer, to_seq integer)
where t.pending_id = any(array[r.pending_id]) and t.seq between r.from_seq and r.to_seq;

-- writer_collectedcancel_order
insert into collected_cancels (pending_id, event_id, seq, tenant_id)
select w.pending_id, r.event_id, w.seq, w.tenant_id
from json_to_recordset($1::json) as r(event_id uuid, key_id uuid) join collected_waits w on w.key_id = any(array[r.key_id])
on conflict (pending_id, event_id, seq) do nothing;

-- writer_collectedcancel_clear
delete from collected_cancels t
using json_to_recordset($1::json) as r(pending_id uuid, event_id uuid, seq integer)
where t.pending_id = any(array[r.pending_id]) and t.event_id = r.event_id and t.seq = r.seq;

-- writer_cron_clear
delete from cron_schedules t
using json_to_recordset($1::json) as r(id uuid)
where t.id = any(array[r.id]);

-- writer_cron_set
insert into cron_schedules (id, tenant_id, namespace, sequence_id, sequence, version, cron_expr, timezone, enabled, metadata, context, priority, timeout, overlap_policy, skipped_fires, last_skipped_at, last_triggered_at, next_fire_at, last_error, created_at, updated_at)
select r.id, r.tenant_id, r.namespace, r.sequence_id, r.sequence, r.version, r.cron_expr, r.timezone, r.enabled, r.metadata, r.context, r.priority, r.timeout, r.overlap_policy, r.skipped_fires, r.last_skipped_at, r.last_triggered_at, r.next_fire_at, r.last_error, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(id uuid, tenant_id text, namespace text, sequence_id uuid, sequence text, version integer, cron_expr text, timezone text, enabled boolean, metadata json, context json, priority text, timeout bigint, overlap_policy text, skipped_fires integer, last_skipped_at timestamptz, last_triggered_at timestamptz, next_fire_at timestamptz, last_error text, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set cron_expr = excluded.cron_expr, timezone = excluded.timezone, enabled = excluded.enabled, metadata = excluded.metadata, context = excluded.context, priority = excluded.priority, timeout = excluded.timeout, overlap_policy = excluded.overlap_policy, skipped_fires = excluded.skipped_fires, last_skipped_at = excluded.last_skipped_at, last_triggered_at = excluded.last_triggered_at, next_fire_at = excluded.next_fire_at, last_error = excluded.last_error, updated_at = excluded.updated_at;

-- writer_pendingstart_clear
delete from pending_starts t
using json_to_recordset($1::json) as r(id uuid)
where t.id = any(array[r.id]);

-- writer_pendingstart_set
insert into pending_starts (id, key_id, tenant_id, namespace, sequence, kind, key, creation, count, cancelled, bytes, created_at, starts_at, error)
select r.id, r.key_id, r.tenant_id, r.namespace, r.sequence, r.kind, r.key, r.creation, r.count, r.cancelled, r.bytes, r.created_at, r.starts_at, r.error
from json_to_recordset($1::json) as r(id uuid, key_id uuid, tenant_id text, namespace text, sequence text, kind text, key text, creation json, count integer, cancelled integer, bytes integer, created_at timestamptz, starts_at timestamptz, error text)
on conflict (id) do update set creation = excluded.creation, count = excluded.count, cancelled = excluded.cancelled, bytes = excluded.bytes, starts_at = excluded.starts_at, error = excluded.error;

-- writer_pendingstart_update
update pending_starts t set count = r.count, cancelled = r.cancelled, bytes = r.bytes, starts_at = r.starts_at, error = r.error
from json_to_recordset($1::json) as r(id uuid, count integer, cancelled integer, bytes integer, starts_at timestamptz, error text)
where t.id = any(array[r.id]);

-- writer_collecteditem_insert
insert into collected_items (pending_id, seq, tenant_id, data)
select r.pending_id, r.seq, r.tenant_id, r.data
from json_to_recordset($1::json) as r(pending_id uuid, seq integer, tenant_id text, data json);

-- writer_collecteditem_clear
delete from collected_items t
using json_to_recordset($1::json) as r(pending_id uuid)
where t.pending_id = any(array[r.pending_id]);

-- writer_collecteditem_remove
delete from collected_items t
using json_to_recordset($1::json) as r(pending_id uuid, seq integer)
where t.pending_id = any(array[r.pending_id]) and t.seq = r.seq;

-- writer_startkey_drop
delete from instance_keys t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_trigger_clear
delete from triggers t
using json_to_recordset($1::json) as r(slug text)
where t.slug = any(array[r.slug]);

-- writer_trigger_set
insert into triggers (slug, tenant_id, namespace, sequence_name, version, trigger_type, secret, config, publish, verify, event_name, enabled, created_at, updated_at)
select r.slug, r.tenant_id, r.namespace, r.sequence_name, r.version, r.trigger_type, r.secret, r.config, r.publish, r.verify, r.event_name, r.enabled, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(slug text, tenant_id text, namespace text, sequence_name text, version integer, trigger_type text, secret json, config json, publish json, verify json, event_name text, enabled boolean, created_at timestamptz, updated_at timestamptz)
on conflict (slug) do update set sequence_name = excluded.sequence_name, version = excluded.version, secret = excluded.secret, config = excluded.config, publish = excluded.publish, verify = excluded.verify, event_name = excluded.event_name, enabled = excluded.enabled, updated_at = excluded.updated_at;

-- writer_credential_clear
delete from credentials t
using json_to_recordset($1::json) as r(tenant_id text, id text)
where t.tenant_id = any(array[r.tenant_id]) and t.id = r.id;

-- writer_credential_set
insert into credentials (tenant_id, id, name, kind, description, value, refresh_url, refresh_token, enabled, expires_at, created_at, updated_at)
select r.tenant_id, r.id, r.name, r.kind, r.description, r.value, r.refresh_url, r.refresh_token, r.enabled, r.expires_at, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(tenant_id text, id text, name text, kind text, description text, value json, refresh_url text, refresh_token json, enabled boolean, expires_at timestamptz, created_at timestamptz, updated_at timestamptz)
on conflict (tenant_id, id) do update set name = excluded.name, kind = excluded.kind, description = excluded.description, value = excluded.value, refresh_url = excluded.refresh_url, refresh_token = excluded.refresh_token, enabled = excluded.enabled, expires_at = excluded.expires_at, updated_at = excluded.updated_at;

-- writer_webhook_clear
delete from webhook_outbox t
using json_to_recordset($1::json) as r(id uuid)
where t.id = any(array[r.id]);

-- writer_webhook_set
insert into webhook_outbox (id, url, event_type, instance_id, tenant_id, body, attempts, last_error, delivery_id, status, next_attempt_at, claimed_at, created_at, subscription_id)
select r.id, r.url, r.event_type, r.instance_id, r.tenant_id, r.body, r.attempts, r.last_error, r.delivery_id, r.status, r.next_attempt_at, r.claimed_at, r.created_at, r.subscription_id
from json_to_recordset($1::json) as r(id uuid, url text, event_type text, instance_id uuid, tenant_id text, body text, attempts integer, last_error text, delivery_id uuid, status text, next_attempt_at timestamptz, claimed_at timestamptz, created_at timestamptz, subscription_id uuid)
on conflict (id) do update set attempts = excluded.attempts, last_error = excluded.last_error, delivery_id = excluded.delivery_id, status = excluded.status, next_attempt_at = excluded.next_attempt_at, claimed_at = excluded.claimed_at;

-- writer_webhook_dropparked
delete from webhook_outbox t
using json_to_recordset($1::json) as r(subscription_id uuid)
where t.subscription_id = any(array[r.subscription_id]) and t.status = 'parked';

-- writer_subscription_clear
delete from webhook_subscriptions t
using json_to_recordset($1::json) as r(id uuid)
where t.id = any(array[r.id]);

-- writer_subscription_set
insert into webhook_subscriptions (id, tenant_id, url, events, secret, created_at, updated_at)
select r.id, r.tenant_id, r.url, r.events, r.secret, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(id uuid, tenant_id text, url text, events json, secret json, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set url = excluded.url, events = excluded.events, secret = excluded.secret, updated_at = excluded.updated_at;

-- writer_delivery_insert
insert into webhook_deliveries (id, delivery_id, url, event_type, instance_id, attempt_number, attempted_at, duration_ms, success, status_code, error_class, error_excerpt, signed, subscription_id)
select r.id, r.delivery_id, r.url, r.event_type, r.instance_id, r.attempt_number, r.attempted_at, r.duration_ms, r.success, r.status_code, r.error_class, r.error_excerpt, r.signed, r.subscription_id
from json_to_recordset($1::json) as r(id uuid, delivery_id uuid, url text, event_type text, instance_id uuid, attempt_number integer, attempted_at timestamptz, duration_ms integer, success boolean, status_code integer, error_class text, error_excerpt text, signed boolean, subscription_id uuid);

-- writer_delivery_prune
delete from webhook_deliveries t using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select id from webhook_deliveries where attempted_at < r.before
  order by attempted_at, id limit 1000 offset 0) as old
where t.id = old.id;

-- writer_release_set
insert into releases (id, tenant_id, namespace, sequence_name, baseline_sequence_id, baseline_version, candidate_sequence_id, candidate_version, state, canary_percent, gates, in_flight_policy, validation_summary, canary_started_at, created_at, updated_at)
select r.id, r.tenant_id, r.namespace, r.sequence_name, r.baseline_sequence_id, r.baseline_version, r.candidate_sequence_id, r.candidate_version, r.state, r.canary_percent, r.gates, r.in_flight_policy, r.validation_summary, r.canary_started_at, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(id uuid, tenant_id text, namespace text, sequence_name text, baseline_sequence_id uuid, baseline_version integer, candidate_sequence_id uuid, candidate_version integer, state text, canary_percent smallint, gates json, in_flight_policy text, validation_summary json, canary_started_at timestamptz, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set state = excluded.state, canary_percent = excluded.canary_percent, validation_summary = excluded.validation_summary, canary_started_at = excluded.canary_started_at, updated_at = excluded.updated_at;

-- writer_releasedecision_insert
insert into release_decisions (id, release_id, from_state, to_state, actor, reason, decided_at)
select r.id, r.release_id, r.from_state, r.to_state, r.actor, r.reason, r.decided_at
from json_to_recordset($1::json) as r(id uuid, release_id uuid, from_state text, to_state text, actor text, reason text, decided_at timestamptz);

-- writer_releaseoutcome_clear
delete from release_outcomes t
using json_to_recordset($1::json) as r(instance_id uuid)
where t.instance_id = any(array[r.instance_id]);

-- writer_releaseoutcome_set
insert into release_outcomes (instance_id, release_id, sequence_id, state, created_at)
select r.instance_id, r.release_id, r.sequence_id, r.state, r.created_at
from json_to_recordset($1::json) as r(instance_id uuid, release_id uuid, sequence_id uuid, state text, created_at timestamptz)
on conflict (instance_id) do update set sequence_id = excluded.sequence_id, state = excluded.state;

-- writer_worker_seen
insert into workers (tenant_id, worker_id, handler_name, queue_name, version, last_seen_at)
select r.tenant_id, r.worker_id, r.handler_name, coalesce(r.queue_name, ''), r.version, r.last_seen_at
from json_to_recordset($1::json) as r(tenant_id text, worker_id text, handler_name text, queue_name text, version text, last_seen_at timestamptz)
on conflict (tenant_id, worker_id, handler_name, queue_name) do update set version = excluded.version, last_seen_at = excluded.last_seen_at;

-- writer_workerendpoint_clear
delete from worker_endpoints t
using json_to_recordset($1::json) as r(tenant_id text, name text)
where t.tenant_id = any(array[r.tenant_id]) and t.name = r.name;

-- writer_workerendpoint_set
insert into worker_endpoints (tenant_id, name, handlers, url, secret, concurrency, timeout_ms, enabled, receives_secrets, created_at, updated_at)
select r.tenant_id, r.name, r.handlers, r.url, r.secret, r.concurrency, r.timeout_ms, r.enabled, r.receives_secrets, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(tenant_id text, name text, handlers json, url text, secret json, concurrency integer, timeout_ms integer, enabled boolean, receives_secrets boolean, created_at timestamptz, updated_at timestamptz)
on conflict (tenant_id, name) do update set handlers = excluded.handlers, url = excluded.url, secret = excluded.secret, concurrency = excluded.concurrency, timeout_ms = excluded.timeout_ms, enabled = excluded.enabled, receives_secrets = excluded.receives_secrets, updated_at = excluded.updated_at;

-- writer_bulkjob_insert
insert into bulk_jobs (id, tenant_id, operation, request, state, matched, applied, skipped, failed, repeats_effects, error, place, traceparent, asked_by, created_at, updated_at, ended_at, next_at)
select r.id, r.tenant_id, r.operation, r.request, r.state, r.matched, r.applied, r.skipped, r.failed, r.repeats_effects, r.error, r.place, r.traceparent, r.asked_by, r.created_at, r.updated_at, r.ended_at, r.next_at
from json_to_recordset($1::json) as r(id uuid, tenant_id text, operation text, request json, state text, matched integer, applied integer, skipped integer, failed integer, repeats_effects integer, error text, place text, traceparent text, asked_by text, created_at timestamptz, updated_at timestamptz, ended_at timestamptz, next_at timestamptz);

-- writer_bulkjob_update
update bulk_jobs t set state = r.state, matched = r.matched, applied = r.applied, skipped = r.skipped, failed = r.failed, repeats_effects = r.repeats_effects, error = r.error, place = r.place, updated_at = r.updated_at, ended_at = r.ended_at, next_at = r.next_at
from json_to_recordset($1::json) as r(id uuid, state text, matched integer, applied integer, skipped integer, failed integer, repeats_effects integer, error text, place text, updated_at timestamptz, ended_at timestamptz, next_at timestamptz)
where t.id = any(array[r.id]);

-- writer_bulkjob_clear
delete from bulk_jobs t
using json_to_recordset($1::json) as r(id uuid)
where t.id = any(array[r.id]);

-- writer_changemark_set
insert into change_mark (id, stamps_from)
select r.id, r.stamps_from
from json_to_recordset($1::json) as r(id smallint, stamps_from timestamptz)
on conflict (id) do update set stamps_from = excluded.stamps_from;

-- writer_activity_prune
delete from activity t using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select tenant_id, at, shard from activity where at < r.before
  order by at limit 1000 offset 0) as old
where t.tenant_id = old.tenant_id and t.at = old.at and t.shard = old.shard;

-- writer_activity_set
insert into activity (tenant_id, at, shard, created, completed, failed, cancelled, durations)
select r.tenant_id, r.at, r.shard, r.created, r.completed, r.failed, r.cancelled, r.durations
from json_to_recordset($1::json) as r(tenant_id text, at timestamptz, shard smallint, created integer, completed integer, failed integer, cancelled integer, durations json)
on conflict (tenant_id, at, shard) do update set created = excluded.created, completed = excluded.completed, failed = excluded.failed, cancelled = excluded.cancelled, durations = excluded.durations;

-- writer_stepactivity_prune
delete from step_activity t using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select tenant_id, sequence_id, at, shard from step_activity where at < r.before
  order by at limit 1000 offset 0) as old
where t.tenant_id = old.tenant_id and t.sequence_id = old.sequence_id and t.at = old.at and t.shard = old.shard;

-- writer_stepactivity_set
insert into step_activity (tenant_id, sequence_id, at, shard, blocks)
select r.tenant_id, r.sequence_id, r.at, r.shard, r.blocks
from json_to_recordset($1::json) as r(tenant_id text, sequence_id uuid, at timestamptz, shard smallint, blocks json)
on conflict (tenant_id, sequence_id, at, shard) do update set blocks = excluded.blocks;

-- writer_queueminute_prune
delete from queue_minutes t using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select tenant_id, handler_name, queue_name, at, shard from queue_minutes where at < r.before
  order by at limit 1000 offset 0) as old
where t.tenant_id = old.tenant_id and t.handler_name = old.handler_name and t.queue_name = old.queue_name and t.at = old.at and t.shard = old.shard;

-- writer_queueminute_set
insert into queue_minutes (tenant_id, handler_name, queue_name, at, shard, arrived, taken, withdrawn, ended, longest_wait)
select r.tenant_id, r.handler_name, r.queue_name, r.at, r.shard, r.arrived, r.taken, r.withdrawn, r.ended, r.longest_wait
from json_to_recordset($1::json) as r(tenant_id text, handler_name text, queue_name text, at timestamptz, shard smallint, arrived integer, taken integer, withdrawn integer, ended integer, longest_wait bigint)
on conflict (tenant_id, handler_name, queue_name, at, shard) do update set arrived = excluded.arrived, taken = excluded.taken, withdrawn = excluded.withdrawn, ended = excluded.ended, longest_wait = excluded.longest_wait;

-- writer_action_insert
insert into actions (id, tenant_id, at, by, key_id, operation, kind, target, details)
select r.id, r.tenant_id, r.at, r.by, r.key_id, r.operation, r.kind, r.target, r.details
from json_to_recordset($1::json) as r(id uuid, tenant_id text, at timestamptz, by text, key_id text, operation text, kind text, target text, details json)
on conflict (id) do nothing;

-- writer_action_prune
delete from actions t using json_to_recordset($1::json) as r(before timestamptz) cross join lateral (
  select id from actions where at < r.before
  order by at, id limit 1000 offset 0) as old
where t.id = old.id;

-- writer_execution_insert
insert into continuity_executions (continuity_id, tenant_id, current_instance_id, owner_runtime_id, epoch, state, version, updated_at)
select r.continuity_id, r.tenant_id, r.current_instance_id, r.owner_runtime_id, r.epoch, r.state, coalesce(r.version, 0), r.updated_at
from json_to_recordset($1::json) as r(continuity_id uuid, tenant_id text, current_instance_id uuid, owner_runtime_id uuid, epoch bigint, state text, version bigint, updated_at timestamptz);

-- writer_execution_update
with changed as (
  update continuity_executions e set
    current_instance_id = r.current_instance_id, owner_runtime_id = r.owner_runtime_id,
    epoch = r.epoch, state = r.state, version = e.version + 1, updated_at = r.updated_at
  from json_to_recordset($1::json) as r(continuity_id uuid, current_instance_id uuid, owner_runtime_id uuid, epoch bigint, state text, version bigint, updated_at timestamptz)
  where e.continuity_id = r.continuity_id and e.version = r.version
  returning 1
)
select (case when count(*) = json_array_length($1::json) then '1' else 'stale' end)::integer
from changed;

-- writer_location_insert
insert into continuity_locations (continuity_id, tenant_id, epoch, runtime_id, instance_id, handoff_id, entered_at)
select r.continuity_id, r.tenant_id, r.epoch, r.runtime_id, r.instance_id, r.handoff_id, r.entered_at
from json_to_recordset($1::json) as r(continuity_id uuid, tenant_id text, epoch bigint, runtime_id uuid, instance_id uuid, handoff_id uuid, entered_at timestamptz);

-- writer_provenance_insert
insert into provenance_entries (continuity_id, seq, id, tenant_id, epoch, kind, redacted_summary, payload_sha256, previous_sha256, entry_sha256, signing_key_id, signature, created_at)
select r.continuity_id, r.seq, r.id, r.tenant_id, r.epoch, r.kind, r.redacted_summary, r.payload_sha256, r.previous_sha256, r.entry_sha256, r.signing_key_id, r.signature, r.created_at
from json_to_recordset($1::json) as r(continuity_id uuid, seq integer, id uuid, tenant_id text, epoch bigint, kind text, redacted_summary text, payload_sha256 text, previous_sha256 text, entry_sha256 text, signing_key_id text, signature text, created_at timestamptz);

-- writer_runtime_set
insert into runtimes (tenant_id, runtime_id, capabilities, observed_at, expires_at)
select distinct on (tenant_id, runtime_id)
  tenant_id, runtime_id, capabilities, observed_at, expires_at
from json_to_recordset($1::json) as r(tenant_id text, runtime_id uuid, capabilities json, observed_at timestamptz, expires_at timestamptz)
order by tenant_id, runtime_id, observed_at desc, row_number() over () desc
on conflict (tenant_id, runtime_id) do update set
  capabilities = excluded.capabilities, observed_at = excluded.observed_at,
  expires_at = excluded.expires_at
where excluded.observed_at >= runtimes.observed_at;

-- writer_placement_insert
insert into placement_decisions (id, continuity_id, tenant_id, record, created_at)
select r.id, r.continuity_id, r.tenant_id, r.record, r.created_at
from json_to_recordset($1::json) as r(id uuid, continuity_id uuid, tenant_id text, record json, created_at timestamptz);

-- writer_handoff_set
insert into handoffs (id, continuity_id, tenant_id, source_runtime_id, destination_runtime_id, expected_epoch, state, capsule_id, capsule_expires_at, placement_decision_id, preview_sha256, version, failure_code, terms, created_at, updated_at)
select r.id, r.continuity_id, r.tenant_id, r.source_runtime_id, r.destination_runtime_id, r.expected_epoch, r.state, r.capsule_id, r.capsule_expires_at, r.placement_decision_id, r.preview_sha256, r.version, r.failure_code, r.terms, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(id uuid, continuity_id uuid, tenant_id text, source_runtime_id uuid, destination_runtime_id uuid, expected_epoch bigint, state text, capsule_id uuid, capsule_expires_at timestamptz, placement_decision_id uuid, preview_sha256 text, version integer, failure_code text, terms json, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set state = excluded.state, capsule_id = excluded.capsule_id, capsule_expires_at = excluded.capsule_expires_at, version = excluded.version, failure_code = excluded.failure_code, updated_at = excluded.updated_at;

-- writer_artifact_insert
insert into artifacts (key, instance_id, tenant_id, content_type, content, sha256, created_at)
select r.key, r.instance_id, r.tenant_id, r.content_type, decode(r.content, 'base64'), r.sha256, r.created_at
from json_to_recordset($1::json) as r(key text, instance_id uuid, tenant_id text, content_type text, content text, sha256 text, created_at timestamptz);

-- writer_capsuleimport_insert
insert into capsule_imports (tenant_id, capsule_id, destination_runtime_id, instance_id, continuity_id, source_epoch, created_at)
select r.tenant_id, r.capsule_id, r.destination_runtime_id, r.instance_id, r.continuity_id, r.source_epoch, r.created_at
from json_to_recordset($1::json) as r(tenant_id text, capsule_id uuid, destination_runtime_id uuid, instance_id uuid, continuity_id uuid, source_epoch bigint, created_at timestamptz);

-- writer_migration_set
insert into migrations (id, continuity_id, tenant_id, state, record, secrets, created_at, updated_at)
select r.id, r.continuity_id, r.tenant_id, r.state, r.record, r.secrets, r.created_at, r.updated_at
from json_to_recordset($1::json) as r(id uuid, continuity_id uuid, tenant_id text, state text, record json, secrets json, created_at timestamptz, updated_at timestamptz)
on conflict (id) do update set state = excluded.state, record = excluded.record, updated_at = excluded.updated_at;

-- writer_effectresolution_set
insert into effect_resolutions (id, instance_id, state, provider_receipt_id, updated_at)
select r.id, r.instance_id, r.state, r.provider_receipt_id, r.updated_at
from json_to_recordset($1::json) as r(id uuid, instance_id uuid, state text, provider_receipt_id text, updated_at timestamptz)
on conflict (id) do update set state = excluded.state, provider_receipt_id = excluded.provider_receipt_id, updated_at = excluded.updated_at;
