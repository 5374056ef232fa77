-- What an instance left is read in the order of time, page by page, so that the page of a long loop costs what
-- it shows (docs/decisions/0141).
create index block_outputs_by_time on block_outputs (instance_id, created_at);
create index worker_tasks_by_instance_time on worker_tasks (instance_id, created_at);
drop index worker_tasks_by_instance;
