-- How long an instance may take from its first step on, in ms; null: for ever.
alter table instances add column timeout bigint;
alter table cron_schedules add column timeout bigint;
-- Of a paused instance nothing is offered: its tasks that wait stand before where queues are read.
update open_tasks o set rank = o.rank - 100
from worker_tasks t, instances i
where t.id = o.task_id and t.state = 'pending' and i.id = o.instance_id and i.state = 'paused';
