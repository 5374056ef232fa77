-- The order in which tasks are offered, for each kind of poll that does not take the tasks of all
-- tenants and queue names; 0001 has the order for that one. Few tasks name a queue, so most rows are
-- in one of these indexes only.
create index open_tasks_of_tenant on open_tasks (
  handler_name, tenant_id, rank, created_at, task_id);
create index open_tasks_of_queue on open_tasks (
  handler_name, queue_name, rank, created_at, task_id) where queue_name is not null;
create index open_tasks_of_tenant_queue on open_tasks (
  handler_name, tenant_id, queue_name, rank, created_at, task_id) where queue_name is not null;
