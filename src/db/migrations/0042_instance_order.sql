-- Columns that change come last: an update within a page logs what lies between the first and the last changed byte.
-- No statement depends on the order, so a table with many rows, or in a schema that Citus distributes, keeps its own.
do $$
begin
  if exists (select from pg_extension where extname = 'citus')
    or exists (select from instances offset 100000 limit 1) then
    return;
  end if;

  alter table instances rename column runtime to runtime_before;
  alter table instances rename column signal_count to signal_count_before;
  alter table instances rename column audit_count to audit_count_before;
  alter table instances rename column next_fire_at to next_fire_at_before;
  alter table instances rename column updated_at to updated_at_before;
  alter table instances rename column state to state_before;
  alter table instances rename column execution to execution_before;
  alter table instances rename column data_patch to data_patch_before;
  alter table instances rename column end_outputs to end_outputs_before;
  alter table instances
    add column runtime json, add column signal_count integer, add column audit_count integer,
    add column next_fire_at timestamptz, add column updated_at timestamptz, add column state text,
    add column execution json, add column data_patch json, add column end_outputs json;
  update instances set
    runtime = runtime_before, signal_count = signal_count_before, audit_count = audit_count_before,
    next_fire_at = next_fire_at_before, updated_at = updated_at_before, state = state_before,
    execution = execution_before, data_patch = data_patch_before, end_outputs = end_outputs_before;
  alter table instances
    drop column runtime_before, drop column signal_count_before, drop column audit_count_before,
    drop column next_fire_at_before, drop column updated_at_before, drop column state_before,
    drop column execution_before, drop column data_patch_before, drop column end_outputs_before,
    alter column runtime set not null, alter column signal_count set not null,
    alter column audit_count set not null, alter column updated_at set not null,
    alter column state set not null, alter column execution set not null;

  drop index instances_by_tenant;
  create index instances_by_tenant on instances (tenant_id, created_at, id);
  drop index instances_by_sequence;
  create index instances_by_sequence on instances (sequence_id, created_at, id);
end $$;
