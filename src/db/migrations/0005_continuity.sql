-- Continuity: who owns a live execution, what it did outside, and how it moves between versions and
-- runtimes. The rules of 0001 hold here too. What hangs on one execution has one owner: its desk, on
-- the shard that the execution's id leads to.

-- The execution that the instance belongs to and its epoch there, if it was ever enrolled or
-- imported; and why it must not be run now (`fence`), if it must not.
alter table instances add column continuity_id uuid;
alter table instances add column ownership_epoch bigint;
alter table instances add column fence json;

-- The epoch at which a task was dispatched; null is 0. With the rest of the row that is its receipt.
alter table worker_tasks add column ownership_epoch bigint;
-- The receipt of a step that acted outside from within the process: facts of its request.
alter table block_outputs add column effect json;

create index block_outputs_by_effect on block_outputs (id) where effect is not null;

-- Receipts whose facts lie nowhere else any more: tries that failed, outputs that were dropped.
create table effect_receipts (
  id                       uuid primary key,
  instance_id              uuid not null,
  continuity_id            uuid not null,
  tenant_id                text not null,
  epoch                    bigint not null,
  block_id                 text not null,
  attempt                  integer not null,
  kind                     text not null,
  state                    text not null,
  destination_fingerprint  text not null,
  idempotency_key          text,
  request_sha256           text not null,
  provider_receipt_id      text,
  created_at               timestamptz not null,
  updated_at               timestamptz not null
);

create index effect_receipts_by_instance on effect_receipts (instance_id);

-- What somebody said became of an effect; laid over its facts.
create table effect_resolutions (
  id                   uuid primary key,
  instance_id          uuid not null,
  state                text not null,
  provider_receipt_id  text,
  updated_at           timestamptz not null
);

create index effect_resolutions_by_instance on effect_resolutions (instance_id);

-- `version` grows with each unit that changes anything of the execution: whoever decided on an older
-- one commits nothing.
create table continuity_executions (
  continuity_id        uuid primary key,
  tenant_id            text not null,
  current_instance_id  uuid not null,
  owner_runtime_id     uuid not null,
  epoch                bigint not null,
  state                text not null,
  version              bigint not null,
  updated_at           timestamptz not null
) with (fillfactor = 70);

create unique index continuity_executions_by_instance on continuity_executions (
  tenant_id, current_instance_id);

create table continuity_locations (
  continuity_id  uuid not null,
  epoch          bigint not null,
  tenant_id      text not null,
  runtime_id     uuid not null,
  instance_id    uuid not null,
  handoff_id     uuid,
  entered_at     timestamptz not null,
  primary key (continuity_id, epoch)
);

create table provenance_entries (
  continuity_id     uuid not null,
  seq               integer not null,
  id                uuid not null,
  tenant_id         text not null,
  epoch             bigint not null,
  kind              text not null,
  redacted_summary  text,
  payload_sha256    text not null,
  previous_sha256   text,
  entry_sha256      text not null,
  signing_key_id    text,
  signature         text,
  created_at        timestamptz not null,
  primary key (continuity_id, seq)
);

create table runtimes (
  tenant_id     text not null,
  runtime_id    uuid not null,
  capabilities  json not null,
  observed_at   timestamptz not null,
  expires_at    timestamptz not null,
  primary key (tenant_id, runtime_id)
) with (fillfactor = 70);

-- A live one was seen within five minutes: the index is read from there.
create index runtimes_by_tenant on runtimes (tenant_id, observed_at desc, runtime_id);

create table placement_decisions (
  id             uuid primary key,
  continuity_id  uuid not null,
  tenant_id      text not null,
  record         json not null,
  created_at     timestamptz not null
);

-- `terms`: requirements, policy and classification, as they were agreed on.
create table handoffs (
  id                      uuid primary key,
  continuity_id           uuid not null,
  tenant_id               text not null,
  source_runtime_id       uuid not null,
  destination_runtime_id  uuid not null,
  expected_epoch          bigint not null,
  state                   text not null,
  capsule_id              uuid,
  capsule_expires_at      timestamptz,
  placement_decision_id   uuid not null,
  preview_sha256          text not null,
  version                 integer not null,
  failure_code            text,
  terms                   json not null,
  created_at              timestamptz not null,
  updated_at              timestamptz not null
) with (fillfactor = 70);

create index handoffs_by_execution on handoffs (continuity_id, created_at, id);

-- Sealed payloads of capsules.
create table artifacts (
  key            text primary key,
  instance_id    uuid not null,
  tenant_id      text not null,
  content_type   text not null,
  content        bytea not null,
  sha256         text not null,
  created_at     timestamptz not null
);

create index artifacts_by_instance on artifacts (instance_id);

create table capsule_imports (
  tenant_id               text not null,
  capsule_id              uuid not null,
  destination_runtime_id  uuid not null,
  instance_id             uuid not null,
  continuity_id           uuid not null,
  source_epoch            bigint not null,
  created_at              timestamptz not null,
  primary key (tenant_id, capsule_id, destination_runtime_id)
);

create index capsule_imports_by_instance on capsule_imports (instance_id);

-- `record`: the wire record without what is sensitive, which is sealed in `secrets` where there is a
-- key to seal it with.
create table migrations (
  id             uuid primary key,
  continuity_id  uuid not null,
  tenant_id      text not null,
  state          text not null,
  record         json not null,
  secrets        json not null,
  created_at     timestamptz not null,
  updated_at     timestamptz not null
) with (fillfactor = 70);

create index migrations_by_execution on migrations (continuity_id, created_at, id);
