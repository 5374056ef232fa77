-- Concurrency keys, rate limits, and what is done to instances beside their normal course. The rules
-- of 0001 hold here too.

-- Due timers are served by priority: 0 critical … 3 low.
alter table timers add column rank smallint not null default 2;

-- An instance that waits for a slot of its concurrency key, or holds one. `number` counts its wishes,
-- so that an answer to an earlier one is recognised. `key_id` is the hash of tenant and key: keys may
-- be longer than an index takes.
create table permit_requests (
  instance_id      uuid primary key,
  key_id           uuid not null,
  max_concurrency  integer not null,
  number           integer not null,
  created_at       timestamptz not null
);

-- Exactly the order in which a key admits its instances.
create index permit_requests_order on permit_requests (key_id, created_at, instance_id);

-- The slots that are taken. Written by the key's actor, before it tells the instance.
create table permits (
  instance_id  uuid primary key,
  key_id       uuid not null,
  number       integer not null
);

create index permits_by_key on permits (key_id, instance_id);

-- `id` is the hash of tenant and key.
create table rate_limits (
  id              uuid primary key,
  tenant_id       text not null,
  limit_key       text not null,
  max_count       integer not null,
  window_seconds  integer not null,
  updated_at      timestamptz not null
);

create index rate_limits_by_tenant on rate_limits (tenant_id);

-- Grants within the window of a limit; those of one commit unit are one row.
create table rate_grants (
  limit_id    uuid not null,
  granted_at  timestamptz not null,
  id          uuid not null,
  count       integer not null,
  primary key (limit_id, granted_at, id)
);

-- Blocks that one instance runs after those of its sequence.
create table injected_blocks (
  instance_id  uuid primary key,
  blocks       json not null
);

create table checkpoints (
  id               uuid not null,
  instance_id      uuid not null,
  checkpoint_data  json,
  created_at       timestamptz not null,
  primary key (instance_id, id)
);

-- Lines that steps logged; those of one commit unit are packed in one row.
create table step_logs (
  id           uuid not null,
  instance_id  uuid not null,
  entries      json not null,
  created_at   timestamptz not null,
  primary key (instance_id, id)
);
