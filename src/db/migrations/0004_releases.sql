-- Releases between versions of a sequence. The rules of 0001 hold here too.

-- Which release routed the instance, and to which side: what callers write in `metadata` counts
-- for nothing.
alter table instances add column release_id uuid;
alter table instances add column release_variant text;

-- context.data as it was at creation, once it has changed: what a replay begins with.
alter table instances add column birth_data json;

create table releases (
  id                     uuid primary key,
  tenant_id              text not null,
  namespace              text not null,
  sequence_name          text not null,
  baseline_sequence_id   uuid not null,
  baseline_version       integer not null,
  candidate_sequence_id  uuid not null,
  candidate_version      integer not null,
  state                  text not null,
  canary_percent         smallint not null,
  gates                  json not null,
  in_flight_policy       text not null,
  validation_summary     json,
  canary_started_at      timestamptz,
  created_at             timestamptz not null,
  updated_at             timestamptz not null
) with (fillfactor = 70);

create index releases_by_tenant on releases (tenant_id, created_at desc, id desc);
-- Serves the list of all tenants.
create index releases_by_time on releases (created_at desc, id desc);
-- Serve the check before a sequence is deleted.
create index releases_by_baseline on releases (baseline_sequence_id);
create index releases_by_candidate on releases (candidate_sequence_id);
-- Serves the table of routes. A release is written a few times in its life, which costs far more by
-- itself than this index does.
create index releases_active on releases (state, id) where state in ('canary', 'promoted', 'validating');

-- Never updated, and deleted by no route.
create table release_decisions (
  id          uuid primary key,
  release_id  uuid not null,
  from_state  text not null,
  to_state    text not null,
  actor       text not null,
  reason      text not null,
  decided_at  timestamptz not null
);

create index release_decisions_by_release on release_decisions (release_id, decided_at, id);

-- One narrow row for each ended instance that a release routed: what gates are judged by.
create table release_outcomes (
  instance_id  uuid primary key,
  release_id   uuid not null,
  sequence_id  uuid not null,
  state        text not null,
  created_at   timestamptz not null
);

-- Holds all that the sums are made of.
create index release_outcomes_by_release
  on release_outcomes (release_id, created_at, sequence_id, state);
