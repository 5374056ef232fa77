-- What a worker tells others so that a step is done once, however often it is tried. Null: the task is from before
-- there were keys, and has that of a step that was never begun anew (actors/instance/worker-task.ts).
alter table worker_tasks add column idempotency_key uuid;
