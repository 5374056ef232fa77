-- Limits that the operator set for a tenant; members that are absent or null are the defaults.
create table tenant_limits (
  tenant_id  text primary key,
  limits     json not null,
  set_at     timestamptz not null
);
