-- Serves the lists of open tasks of a tenant, newest first, so that one whose filters match little looks at a
-- bounded number of them.
create index open_tasks_by_tenant on open_tasks (tenant_id, created_at desc, task_id desc);
