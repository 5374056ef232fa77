-- Lists of open tasks have an index of their own, so the other one has the ended tasks only: an entry less for each.
-- Newest last: a page that is filled at its end splits less often, and leaves full pages behind.
drop index worker_tasks_by_tenant;
create index worker_tasks_ended_by_tenant on worker_tasks (tenant_id, created_at, id) where rank is null;
drop index worker_tasks_open_by_tenant;
create index worker_tasks_open_by_tenant on worker_tasks (tenant_id, created_at, id) where rank is not null;
