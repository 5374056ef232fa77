-- What was created and ended, by tenant and minute, for lines over time. A shard has one row for a tenant and a
-- minute, from the instant of the first change that it counts; after a restart within the minute it begins another.
create table activity (
  tenant_id  text not null,
  at         timestamptz not null,
  shard      smallint not null,
  created    integer not null,
  completed  integer not null,
  failed     integer not null,
  cancelled  integer not null,
  -- Pairs of a bucket and how many durations lie in it.
  durations  json not null,
  primary key (tenant_id, at, shard)
) with (fillfactor = 80);

-- Serves the removal of old ones, and the lines of all tenants.
create index activity_by_time on activity (at);

create policy own_rows on activity for select using (tenant_id = current_setting('engine.tenant', true));
