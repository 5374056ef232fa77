-- Instances that are yet to start from creations that their sequence collects (docs/concurrency.md).
create table pending_starts (
  id          uuid primary key,
  -- Tenant, namespace, sequence and key as one hash.
  key_id      uuid not null,
  tenant_id   text not null,
  namespace   text not null,
  sequence    text not null,
  kind        text not null,
  key         text,
  -- The request that starts: of a debounce the last one, of a batch the first one without its data.
  creation    json not null,
  count       integer not null,
  bytes       integer not null,
  created_at  timestamptz not null,
  starts_at   timestamptz not null,
  error       text
) with (fillfactor = 70);

create index pending_starts_by_key on pending_starts (key_id, created_at, id);
create index pending_starts_by_time on pending_starts (starts_at, id);
create index pending_starts_by_tenant on pending_starts (tenant_id, created_at, id);

-- The data of the creations of a batch, in their order.
create table collected_items (
  pending_id  uuid not null,
  seq         integer not null,
  tenant_id   text not null,
  data        json not null,
  primary key (pending_id, seq)
);

-- Idempotency keys of collected creations. The id is derived from the key, as that of an instance would be.
create table instance_keys (
  id               uuid primary key,
  instance_id      uuid not null,
  tenant_id        text not null,
  idempotency_key  text not null,
  created_at       timestamptz not null
);

create index instance_keys_by_instance on instance_keys (instance_id);
create index instance_keys_by_tenant on instance_keys (tenant_id);

create policy own_rows on pending_starts for select using (tenant_id = current_setting('engine.tenant', true));
create policy own_rows on collected_items for select using (tenant_id = current_setting('engine.tenant', true));
create policy own_rows on instance_keys for select using (tenant_id = current_setting('engine.tenant', true));
