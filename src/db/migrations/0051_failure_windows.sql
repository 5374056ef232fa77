-- Serves the failures of a period, newest first.
create index dead_letters_by_failure on dead_letters (tenant_id, failed_at, instance_id);

-- When a paced job continues. Null: at once.
alter table bulk_jobs add column next_at timestamptz;

-- The instances that a job has retried, by which its outcome is counted (docs/reference/instances.md).
create table bulk_retries (
  job_id       uuid not null,
  instance_id  uuid not null,
  retried_at   timestamptz not null,
  primary key (job_id, instance_id)
);

create index bulk_retries_by_instance on bulk_retries (instance_id);
create index bulk_retries_by_time on bulk_retries (retried_at);

create policy own_rows on bulk_retries for select using (
  (select i.tenant_id from instances i where i.id = instance_id) = current_setting('engine.tenant', true));
