-- What starts instances from outside: by a call, by a signed webhook, or by an event.
create table triggers (
  slug           text primary key,
  tenant_id      text not null,
  namespace      text not null,
  sequence_name  text not null,
  version        integer,
  trigger_type   text not null,
  secret         json,
  config         json not null,
  event_name     text,
  enabled        boolean not null,
  created_at     timestamptz not null,
  updated_at     timestamptz not null
);

-- Serves the list.
create index triggers_by_tenant on triggers (tenant_id, created_at, slug);
-- Serves the list of all tenants.
create index triggers_by_time on triggers (created_at, slug);
-- Serves events that come in.
create index triggers_by_event on triggers (tenant_id, event_name) where event_name is not null;
