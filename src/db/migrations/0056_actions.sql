-- What people and keys have changed by requests. A row is inserted by the unit that makes the change, and never updated.
create table actions (
  id         uuid primary key,
  tenant_id  text not null,
  at         timestamptz not null,
  by         text not null,
  -- Null: the root key, no key, or a link.
  key_id     text,
  operation  text not null,
  kind       text not null,
  target     text not null,
  details    json not null
);

-- They serve the lists.
create index actions_by_tenant on actions (tenant_id, at, id);
create index actions_by_key on actions (tenant_id, by, at, id);
create index actions_by_kind on actions (tenant_id, kind, at, id);
create index actions_by_target on actions (tenant_id, target, at, id);
-- Serves the list of all tenants, and the removal of old ones.
create index actions_by_time on actions (at, id);

create policy own_rows on actions for select using (tenant_id = current_setting('engine.tenant', true));
