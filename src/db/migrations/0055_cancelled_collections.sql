-- Collected creations that events of cancel_on take out before their instance starts (docs/concurrency.md).
alter table pending_starts add column cancelled integer not null default 0;

-- The events, by creation.
create table collected_waits (
  pending_id  uuid not null,
  seq         integer not null,
  key_id      uuid not null,
  tenant_id   text not null,
  primary key (pending_id, seq, key_id)
);

create index collected_waits_by_key on collected_waits (key_id, pending_id, seq);

-- Orders of events to take creations out: inserted with the event, removed when carried out.
create table collected_cancels (
  pending_id  uuid not null,
  event_id    uuid not null,
  seq         integer not null,
  tenant_id   text not null,
  primary key (pending_id, event_id, seq)
);

create index collected_cancels_by_event on collected_cancels (event_id, pending_id);
create index collected_cancels_by_tenant on collected_cancels (tenant_id);

create policy own_rows on collected_waits for select using (tenant_id = current_setting('engine.tenant', true));
create policy own_rows on collected_cancels for select using (tenant_id = current_setting('engine.tenant', true));

-- Creations of a batch are taken out before its instance exists. A distributed schema has no policies.
do $$
begin
  if exists (
    select from pg_policies where schemaname = current_schema() and tablename = 'event_cancels'
  ) then
    alter policy own_rows on event_cancels using (
      coalesce((select i.tenant_id from instances i where i.id = instance_id),
        (select p.tenant_id from pending_starts p where p.id = instance_id))
        = current_setting('engine.tenant', true));
  end if;
end $$;
