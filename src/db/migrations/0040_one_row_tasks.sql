-- A task has one row from its creation to its end; the queues have partial indexes over the open ones. Existing rows
-- stay where they are, so that this takes no time, and are moved by the running engine (docs/operate/upgrade.md).
alter table worker_tasks rename to worker_tasks_before;
alter index worker_tasks_pkey rename to worker_tasks_before_pkey;
alter index worker_tasks_by_tenant rename to worker_tasks_before_by_tenant;
alter index worker_tasks_by_instance_time rename to worker_tasks_before_by_instance_time;

-- Columns that change come last: an update within a page logs what lies between the first and the last changed byte.
-- A page has room for a claim of each of its rows, so that claims change no index.
create table worker_tasks (
  id                 uuid primary key,
  instance_id        uuid not null,
  created_at         timestamptz not null,
  timeout_ms         bigint,
  -- The epoch at which the task was dispatched; null is 0. With the rest of the row that is its receipt.
  ownership_epoch    bigint,
  node               integer not null,
  attempt            integer not null,
  priority           smallint not null,
  idempotency_key    uuid,
  tenant_id          text not null,
  block_id           text not null,
  iteration          text not null,
  handler_name       text not null,
  queue_name         text,
  params             json not null,
  -- What a for_each adds to context.data for this step; null outside of loops.
  overlay            json,
  -- Where the parameters name credentials; null: nowhere.
  secrets            json,
  resume_checkpoint  json,
  -- Claims, reclaims and ends, in order; at most 100 entries. Empty: they follow from the row.
  history            json not null,
  -- The place in the queues, 0 critical … 3 low, and 100 less while the task is not offered; null: it has ended.
  rank               smallint,
  lost_claims        integer not null default 0,
  checkpoint_seq     integer not null,
  claim_epoch        integer not null,
  claimed_at         timestamptz,
  heartbeat_at       timestamptz,
  state              text not null,
  worker_id          text,
  -- A withdrawn task is neither offered nor listed; its history stays readable.
  withdrawn          boolean not null default false,
  completed_at       timestamptz,
  output             json,
  error_message      text,
  error_retryable    boolean
) with (fillfactor = 50);

create index worker_tasks_by_instance_time on worker_tasks (instance_id, created_at);
create index worker_tasks_by_tenant on worker_tasks (tenant_id, created_at desc, id desc);

-- Exactly the order in which tasks are offered, for each kind of poll. A claim changes no column of an index.
create index worker_tasks_order on worker_tasks (handler_name, rank, created_at, id) where rank is not null;
create index worker_tasks_of_tenant on worker_tasks (
  handler_name, tenant_id, rank, created_at, id) where rank is not null;
create index worker_tasks_of_queue on worker_tasks (
  handler_name, queue_name, rank, created_at, id) where rank is not null and queue_name is not null;
create index worker_tasks_of_tenant_queue on worker_tasks (
  handler_name, tenant_id, queue_name, rank, created_at, id) where rank is not null and queue_name is not null;

-- Serves the lists of open tasks, newest first.
create index worker_tasks_open_by_tenant on worker_tasks (tenant_id, created_at desc, id desc)
  where rank is not null;

create policy own_rows on worker_tasks for select using (tenant_id = current_setting('engine.tenant', true));
