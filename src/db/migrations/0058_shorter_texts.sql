-- Texts that follow from others are no longer stored. Older engines cannot read what is left, and refuse a schema with this
-- migration. Rows of before stay as they are.
comment on column audit_log.entries is 'entries of one unit. A transition without more is [id, from, to], where a state is 0 scheduled, 1 running, 2 waiting, 3 paused, 4 failed, 5 completed or 6 cancelled, before migration 0058 its name. Only the first entry has an id: the others have 8001, 8002, ... for its fourth group';
comment on column instances.creation_audit is 'entries of the creating unit, like those of audit_log';
comment on column instances.runtime is 'if the current step was not retried [started_at, current_step, current_step_started_at, total_steps_executed], where a time of 0 is created_at';
comment on column worker_tasks.idempotency_key is 'null for the first run of the step in its iteration: the key follows from instance, step and iteration';
-- Half of each page is free for the next versions of its rows, so that most updates change no index.
alter table instances set (fillfactor = 50);
