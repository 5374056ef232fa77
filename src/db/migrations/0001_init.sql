-- The tables of sequences, instances and worker tasks.
--
-- Every row has one owner, an actor, and only that owner's commit units change it. Columns that hold
-- JSON are of type json, not jsonb: they are written and read whole, the text keeps the order of
-- keys and the spelling of numbers, and it costs less to write. No index mentions a column that
-- changes, so that updates stay heap-only (HOT); what must be found by a changing fact (due timers,
-- open tasks, dead letters) has a narrow table of its own.

create table sequences (
  id          uuid primary key,
  tenant_id   text not null,
  namespace   text not null,
  name        text not null,
  version     integer not null,
  deprecated  boolean not null default false,
  status      text not null default 'production',
  definition  json not null,
  created_at  timestamptz not null
);

-- Serves uniqueness, by-name (the newest version first) and the order of the list.
create unique index sequences_by_name on sequences (tenant_id, namespace, name, version desc);

create table instances (
  id                  uuid primary key,
  sequence_id         uuid not null,
  tenant_id           text not null,
  namespace           text not null,
  state               text not null,
  next_fire_at        timestamptz,
  priority            smallint not null,
  timezone            text not null,
  metadata            json not null,
  data                json not null,
  config              json not null,
  context_audit       json not null,
  runtime             json not null,
  -- The evaluator's snapshot: states, tries and deadlines of the nodes that are not pending.
  execution           json not null,
  concurrency_key     text,
  max_concurrency     integer,
  idempotency_key     text,
  parent_instance_id  uuid,
  -- The audit entries of the unit that created the instance: an instance that completes at once then
  -- costs one row less. Later ones are in audit_log.
  birth_audit         json,
  -- How many signals and audit rows the instance has; their numbers order them.
  signal_count        integer not null,
  audit_count         integer not null,
  created_at          timestamptz not null,
  updated_at          timestamptz not null
) with (fillfactor = 80);

-- Serves the list of a tenant, newest first.
create index instances_by_tenant on instances (tenant_id, created_at desc, id desc);
-- Serves the list of a sequence, and the check before a sequence is deleted.
create index instances_by_sequence on instances (sequence_id, created_at desc, id desc);
create index instances_by_parent on instances (parent_instance_id, created_at, id)
  where parent_instance_id is not null;

-- One row per instance that has something to do at a known time, or that must be looked at when the
-- engine starts (`recover`: it was in the middle of work inside the process).
create table timers (
  instance_id  uuid primary key,
  fire_at      timestamptz,
  recover      boolean not null default false
) with (fillfactor = 80);

create index timers_due on timers (fire_at, instance_id);
create index timers_recover on timers (instance_id) where recover;

create table dead_letters (
  instance_id  uuid primary key,
  tenant_id    text not null,
  created_at   timestamptz not null,
  failed_at    timestamptz not null,
  reason       text not null
);

create index dead_letters_by_tenant on dead_letters (tenant_id, created_at desc, instance_id desc);

create table block_outputs (
  id            uuid not null,
  instance_id   uuid not null,
  block_id      text not null,
  -- The path of loop and for_each counters, '' outside of loops; `try` counts within one iteration.
  iteration     text not null,
  attempt       integer not null,
  try           integer not null,
  output        json,
  output_ref    text,
  output_size   integer not null,
  created_at    timestamptz not null,
  primary key (instance_id, block_id, iteration, attempt)
);

create table iteration_snapshots (
  instance_id  uuid not null,
  key          text not null,
  items        json not null,
  primary key (instance_id, key)
);

create table signals (
  id            uuid not null,
  instance_id   uuid not null,
  seq           integer not null,
  signal_type   text not null,
  payload       json,
  created_at    timestamptz not null,
  primary key (instance_id, seq)
);

-- The audit entries of one commit unit are packed in one row; see also instances.birth_audit.
create table audit_log (
  instance_id  uuid not null,
  seq          integer not null,
  tenant_id    text not null,
  entries      json not null,
  created_at   timestamptz not null,
  primary key (instance_id, seq)
);

create table worker_tasks (
  id                 uuid primary key,
  instance_id        uuid not null,
  tenant_id          text not null,
  block_id           text not null,
  node               integer not null,
  iteration          text not null,
  handler_name       text not null,
  queue_name         text,
  params             json not null,
  -- What a for_each adds to context.data for this step; null outside of loops.
  overlay            json,
  attempt            integer not null,
  timeout_ms         bigint,
  priority           smallint not null,
  state              text not null,
  -- A withdrawn task is neither offered nor listed; its history stays readable.
  withdrawn          boolean not null default false,
  worker_id          text,
  claim_epoch        integer not null,
  claimed_at         timestamptz,
  heartbeat_at       timestamptz,
  completed_at       timestamptz,
  output             json,
  error_message      text,
  error_retryable    boolean,
  checkpoint_seq     integer not null,
  resume_checkpoint  json,
  -- Claims, reclaims and ends, in order; at most 100 entries.
  history            json not null,
  created_at         timestamptz not null
) with (fillfactor = 70);

create index worker_tasks_by_instance on worker_tasks (instance_id);
create index worker_tasks_by_tenant on worker_tasks (tenant_id, created_at desc, id desc);

-- The tasks that wait for a worker or are claimed by one: what a queue is rebuilt from.
create table open_tasks (
  task_id       uuid primary key,
  instance_id   uuid not null,
  tenant_id     text not null,
  handler_name  text not null,
  queue_name    text,
  -- 0 critical … 3 low: ascending, so that one row comparison reads on from a place.
  rank          smallint not null,
  created_at    timestamptz not null
);

-- Exactly the order in which a queue offers its tasks.
create index open_tasks_order on open_tasks (handler_name, rank, created_at, task_id);

create table workers (
  tenant_id      text not null,
  worker_id      text not null,
  handler_name   text not null,
  queue_name     text not null,
  version        text,
  last_seen_at   timestamptz not null,
  primary key (tenant_id, worker_id, handler_name, queue_name)
);
