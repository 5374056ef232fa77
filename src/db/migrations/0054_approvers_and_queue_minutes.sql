-- The groups whose members may answer, in one text of sorted names, so that the open approvals of a caller are a few
-- stretches of an index. Empty: anyone with the capability.
alter table approvals add column approvers text not null default '';
alter table api_keys add column groups text not null default '';
-- The groups of a sender who may answer only for them. Null: the sender may answer all approvals.
alter table signals add column sent_groups text;

-- Serves the list of a tenant by approvers, and the different approvers of its open approvals.
create index approvals_open_by_approvers on approvals (tenant_id, approvers, waiting_since, id)
  where outcome is null;

-- Tasks that came to a queue, left it and ended, by minute. A shard has one row for a queue and a minute, from the
-- instant of the first change that it counts; after a restart within the minute it begins another.
create table queue_minutes (
  tenant_id       text not null,
  handler_name    text not null,
  -- '': tasks without a queue.
  queue_name      text not null,
  at              timestamptz not null,
  shard           smallint not null,
  arrived         integer not null,
  taken           integer not null,
  withdrawn       integer not null,
  ended           integer not null,
  -- Of the tasks that were claimed, in milliseconds.
  longest_wait    bigint not null,
  primary key (tenant_id, handler_name, queue_name, at, shard)
) with (fillfactor = 80);

-- Serves the removal of old ones.
create index queue_minutes_by_time on queue_minutes (at);

create policy own_rows on queue_minutes for select using (tenant_id = current_setting('engine.tenant', true));
