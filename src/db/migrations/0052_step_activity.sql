-- How often the blocks of a version ended and how long they took, by intervals of five minutes. A shard has one row for
-- a version and an interval, from the instant of the first end that it counts; after a restart it begins another.
create table step_activity (
  tenant_id    text not null,
  sequence_id  uuid not null,
  at           timestamptz not null,
  shard        smallint not null,
  -- Of each block: its id, its runs, its failures, their milliseconds, and pairs of a bucket and how many
  -- durations lie in it.
  blocks       json not null,
  primary key (tenant_id, sequence_id, at, shard)
) with (fillfactor = 80);

-- Serves the removal of old ones.
create index step_activity_by_time on step_activity (at);

create policy own_rows on step_activity for select using (tenant_id = current_setting('engine.tenant', true));
