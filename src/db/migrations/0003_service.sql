-- Schedules, keys of tenants, outbound webhooks, and what the change feed and traces need. The rules
-- of 0001 hold here too.

-- The schedule that created the instance, and the trace that its work belongs to.
alter table instances add column cron_schedule_id uuid;
alter table instances add column traceparent text;

-- Serves the runs of a schedule that have not ended, newest first.
create index instances_by_schedule on instances (cron_schedule_id, created_at desc, id desc)
  where cron_schedule_id is not null;

alter table signals add column traceparent text;

create table cron_schedules (
  id                 uuid primary key,
  tenant_id          text not null,
  namespace          text not null,
  sequence_id        uuid not null,
  cron_expr          text not null,
  timezone           text not null,
  enabled            boolean not null,
  metadata           json not null,
  overlap_policy     text not null,
  skipped_fires      integer not null,
  last_skipped_at    timestamptz,
  last_triggered_at  timestamptz,
  next_fire_at       timestamptz,
  last_error         text,
  created_at         timestamptz not null,
  updated_at         timestamptz not null
) with (fillfactor = 80);

create index cron_schedules_by_tenant on cron_schedules (tenant_id, created_at, id);
create index cron_schedules_by_sequence on cron_schedules (sequence_id);
-- A row is written once for each fire, which costs far more by itself than this index does.
create index cron_schedules_due on cron_schedules (next_fire_at, id) where enabled;

-- The secret itself is nowhere: only its SHA-256 is kept, in hexadecimal digits.
create table api_keys (
  id            text primary key,
  tenant_id     text not null,
  name          text not null,
  capabilities  json not null,
  secret_hash   text not null,
  created_at    timestamptz not null,
  expires_at    timestamptz,
  last_used_at  timestamptz,
  revoked       boolean not null
);

create unique index api_keys_by_secret on api_keys (secret_hash);
create index api_keys_by_tenant on api_keys (tenant_id, created_at, id);

-- One row per address and event, written with the end of the instance and deleted once delivered.
-- The id leads to the shard of its instance.
create table webhook_outbox (
  id               uuid primary key,
  url              text not null,
  event_type       text not null,
  instance_id      uuid not null,
  tenant_id        text not null,
  body             text not null,
  attempts         integer not null,
  last_error       text,
  delivery_id      uuid,
  status           text not null,
  next_attempt_at  timestamptz,
  claimed_at       timestamptz,
  created_at       timestamptz not null
) with (fillfactor = 80);

create index webhook_outbox_order on webhook_outbox (created_at, id);

-- What is still to be sent, by address: one that does not answer must not stand in the way of others.
-- A parked webhook has no time.
create index webhook_outbox_open on webhook_outbox (url, next_attempt_at, id)
  where next_attempt_at is not null;

-- Attempts, kept for a while after their webhooks are gone.
create table webhook_deliveries (
  id              uuid primary key,
  delivery_id     uuid not null,
  url             text not null,
  event_type      text not null,
  instance_id     uuid not null,
  attempt_number  integer not null,
  attempted_at    timestamptz not null,
  duration_ms     integer not null,
  success         boolean not null,
  status_code     integer,
  error_class     text,
  error_excerpt   text,
  signed          boolean not null
);

create index webhook_deliveries_by_time on webhook_deliveries (attempted_at desc, id desc);
create index webhook_deliveries_by_delivery on webhook_deliveries (delivery_id, attempt_number);

-- One row once the change feed was read: readers may have been shown everything below this time, so
-- the next owner of the database stamps nothing below it.
create table change_mark (
  id           smallint primary key,
  stamps_from  timestamptz not null
) with (fillfactor = 10);

-- Serves the change feed of a tenant, beside instances_by_tenant for birth_audit.
create index audit_log_by_tenant on audit_log (tenant_id, created_at);
