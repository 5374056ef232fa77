-- What tenants give their steps to authenticate with. Values are sealed with the key of the server.
create table credentials (
  tenant_id      text not null,
  id             text not null,
  name           text not null,
  kind           text not null,
  description    text,
  value          json not null,
  refresh_url    text,
  refresh_token  json,
  enabled        boolean not null,
  expires_at     timestamptz,
  created_at     timestamptz not null,
  updated_at     timestamptz not null,
  primary key (tenant_id, id)
);

-- Serves the lists.
create index credentials_by_time on credentials (tenant_id, created_at, id);

-- Where the parameters of a task name credentials; null: nowhere.
alter table worker_tasks add column secrets json;
