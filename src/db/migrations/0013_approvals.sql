-- The gates at which people are asked. A row stays when its gate is closed: whoever answers too late, or
-- twice, is told what became of it.
create table approvals (
  id             uuid primary key,
  instance_id    uuid not null,
  tenant_id      text not null,
  namespace      text not null,
  sequence_id    uuid not null,
  block_id       text not null,
  path           text not null,
  iteration      text not null,
  prompt         text not null,
  -- Choices, and what else the definition says of the gate.
  gate           json not null,
  waiting_since  timestamptz not null,
  deadline       timestamptz,
  -- Null while it is open; answered, timed_out, escalated or withdrawn.
  outcome        text,
  closed_at      timestamptz,
  answer         json
) with (fillfactor = 80);

-- Serves the list of a tenant, oldest first.
create index approvals_open_by_tenant on approvals (tenant_id, waiting_since, id)
  where outcome is null;
-- Serves the list of all tenants, and the gauge.
create index approvals_open on approvals (waiting_since, id) where outcome is null;
-- Serves the explanation of an instance, and its removal.
create index approvals_by_instance on approvals (instance_id);
