-- The claim of a task lies with its place in the queues, so that a claim and a heartbeat write a narrow
-- row. No index has these columns. `worker_tasks` has of an open task what it was made with, and gets the
-- last claim when the task ends. Null: it is not claimed, or the column is as `worker_tasks` has it.
alter table open_tasks
  add column worker_id text,
  add column claim_epoch integer,
  add column claimed_at timestamptz,
  add column heartbeat_at timestamptz,
  add column checkpoint_seq integer,
  -- Where there is more to tell than that it was claimed once.
  add column history json;

-- Room for a claim of most of the rows of a page.
alter table open_tasks set (fillfactor = 60);

update open_tasks o set
  worker_id = t.worker_id, claim_epoch = t.claim_epoch, claimed_at = t.claimed_at,
  heartbeat_at = t.heartbeat_at, checkpoint_seq = t.checkpoint_seq, history = t.history
from worker_tasks t
where t.id = o.task_id and t.claim_epoch > 0;

update worker_tasks t set state = 'pending', worker_id = null, claimed_at = null, heartbeat_at = null
from open_tasks o
where o.task_id = t.id and t.state = 'claimed';
