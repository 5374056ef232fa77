-- Changes of many instances that go on behind their answer. `place` is the cursor of the place behind
-- what was looked at; null: nothing was.
create table bulk_jobs (
  id           uuid primary key,
  tenant_id    text not null,
  operation    text not null,
  request      json not null,
  state        text not null,
  matched      integer not null,
  applied      integer not null,
  skipped      integer not null,
  failed       integer not null,
  error        text,
  place        text,
  traceparent  text,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  ended_at     timestamptz
);

-- Serves the lists, and the removal of old ones.
create index bulk_jobs_by_tenant on bulk_jobs (tenant_id, created_at desc, id desc);

-- Serves the job that goes on with them: there are few.
create index bulk_jobs_open on bulk_jobs (tenant_id, created_at, id) where ended_at is null;

-- Instances that a job has changed and not yet counted: each is written with its change.
create table bulk_changes (
  job_id       uuid not null,
  instance_id  uuid not null,
  primary key (job_id, instance_id)
);

-- Serves the removal of an instance.
create index bulk_changes_by_instance on bulk_changes (instance_id);

create policy own_rows on bulk_jobs for select using (tenant_id = current_setting('engine.tenant', true));

create policy own_rows on bulk_changes for select using (
  (select i.tenant_id from instances i where i.id = instance_id) = current_setting('engine.tenant', true));
