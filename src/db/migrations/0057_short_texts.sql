-- Transitions in the audit are stored as arrays, and times of the start that are that of the creation as 0. Older engines
-- read neither, and refuse a schema with this migration. Rows of before stay as they are.
comment on column audit_log.entries is 'entries of one unit; a transition without more is [id, from, to]';
comment on column instances.creation_audit is 'entries of the creating unit, like those of audit_log';
comment on column instances.runtime is 'without instance_id once it is started; 0 in started_at and current_step_started_at is created_at';
