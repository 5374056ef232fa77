-- Endpoints to which tasks are delivered by POST. The secret is sealed where the server has a key.
create table worker_endpoints (
  tenant_id         text not null,
  name              text not null,
  handlers          json not null,
  url               text not null,
  secret            json not null,
  concurrency       integer not null,
  timeout_ms        integer not null,
  enabled           boolean not null,
  receives_secrets  boolean not null,
  created_at        timestamptz not null,
  updated_at        timestamptz not null,
  primary key (tenant_id, name)
);

create policy own_rows on worker_endpoints for select
  using (tenant_id = current_setting('engine.tenant', true));
