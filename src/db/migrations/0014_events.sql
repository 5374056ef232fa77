-- Events that producers send, and what takes them. An event belongs to the actor of its key: the hash of
-- tenant, name and correlation key. Its id follows from tenant and producer_event_id, so that the primary
-- key keeps one from being stored twice.
create table events (
  id                 uuid primary key,
  key_id             uuid not null,
  seq                bigint not null,
  tenant_id          text not null,
  event_name         text not null,
  producer_event_id  text not null,
  correlation_key    text,
  payload            json,
  status             text not null,
  matched            integer not null,
  -- The waits that were told and have not answered, with their instances.
  targets            json,
  created_at         timestamptz not null,
  expires_at         timestamptz not null,
  -- When it was consumed, or was found to have expired.
  ended_at           timestamptz
);

create index events_by_tenant on events (tenant_id, created_at desc, id desc);
-- What the actor of a key is brought to life with, in the order in which events are taken.
create index events_open on events (key_id, seq, id) where status = 'pending' or targets is not null;
create index events_by_expiry on events (expires_at) where status = 'pending';
-- Serves the removal of old ones.
create index events_ended on events (ended_at, id) where status <> 'pending' and targets is null;

-- One row for each open wait of an instance.
create table event_waits (
  instance_id  uuid not null,
  id           uuid not null,
  key_id       uuid not null,
  primary key (instance_id, id)
);

create index event_waits_by_key on event_waits (key_id, id, instance_id);

-- Which wait took which event, and whether it had a use for it: written with what came of it.
create table event_takes (
  instance_id  uuid not null,
  event_id     uuid not null,
  wait_id      uuid not null,
  block_id     text not null,
  outcome      text not null,
  taken_at     timestamptz not null,
  primary key (instance_id, event_id, wait_id)
);

create index event_takes_by_event on event_takes (event_id);

-- Signals that are kept for a wait, and what became of them; null: it took effect when it came.
alter table signals add column status text;
alter table signals add column taken_at timestamptz;
alter table signals add column taken_by text;

create index signals_kept on signals (instance_id, seq) where status = 'kept';
