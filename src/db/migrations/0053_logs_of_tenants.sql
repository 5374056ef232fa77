-- The log of a tenant, newest first. Rows from before have no tenant and are in the logs of their instances only: to
-- name the tenant of each would rewrite the table. So the index has no entries at first, and costs one for each new row.
alter table step_logs add column tenant text;
create index step_logs_by_tenant on step_logs (tenant, created_at, id) where tenant is not null;
