-- Live instances that an event cancels, by the hash of tenant and name, or of tenant, name and correlation key.
create table cancel_waits (
  instance_id  uuid not null,
  key_id       uuid not null,
  primary key (instance_id, key_id)
);

create index cancel_waits_by_key on cancel_waits (key_id, instance_id);

-- The instances that an event cancels: inserted with the event, completed by the instance. No outcome: pending.
create table event_cancels (
  instance_id  uuid not null,
  event_id     uuid not null,
  outcome      text,
  taken_at     timestamptz,
  primary key (instance_id, event_id)
);

create index event_cancels_by_event on event_cancels (event_id);
create index event_cancels_pending on event_cancels (instance_id, event_id) where outcome is null;

create policy own_rows on cancel_waits for select using (
  (select i.tenant_id from instances i where i.id = instance_id) = current_setting('engine.tenant', true));
create policy own_rows on event_cancels for select using (
  (select i.tenant_id from instances i where i.id = instance_id) = current_setting('engine.tenant', true));

-- Few of all limits are patterns, and every shard reads all of them at its start.
create index rate_limits_patterns on rate_limits (tenant_id, id) where strpos(limit_key, '*') > 0;

-- A key that only a pattern limits has no row in rate_limits. Null: of before.
alter table rate_grants add column tenant_id text;
-- A distributed schema has no policies.
do $$
begin
  if exists (
    select from pg_policies where schemaname = current_schema() and tablename = 'rate_grants'
  ) then
    alter policy own_rows on rate_grants using (
      coalesce(tenant_id, (select r.tenant_id from rate_limits r where r.id = limit_id))
        = current_setting('engine.tenant', true));
  end if;
end $$;
