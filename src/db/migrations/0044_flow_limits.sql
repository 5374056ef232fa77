-- What a concurrency key does with the first request of an instance while it is full; null: it waits.
alter table permit_requests add column when_full text;

-- An instance that the throttle of its sequence puts off. `key_id` is the hash of tenant and key.
create table start_requests (
  instance_id  uuid primary key,
  key_id       uuid not null,
  max_starts   integer not null,
  per_ms       bigint not null,
  burst        integer not null,
  created_at   timestamptz not null
);

-- Exactly the order in which a throttle lets instances start.
create index start_requests_order on start_requests (key_id, created_at, instance_id);

-- Starts within the window of a throttle; those of one commit unit are one row. The time is the latest possible one.
create table start_grants (
  key_id      uuid not null,
  granted_at  timestamptz not null,
  id          uuid not null,
  tenant_id   text not null,
  count       integer not null,
  primary key (key_id, granted_at, id)
);

create index start_grants_by_tenant on start_grants (tenant_id);

create policy own_rows on start_requests for select using (
  (select i.tenant_id from instances i where i.id = instance_id) = current_setting('engine.tenant', true));
create policy own_rows on start_grants for select using (tenant_id = current_setting('engine.tenant', true));
