-- How many claims of a task, which is one try of its step, were lost: their workers fell silent. While the task is
-- open it lies with the claim; null there: none.
alter table worker_tasks add column lost_claims integer not null default 0;
alter table open_tasks add column lost_claims integer;
-- Of an instance that is put off to a time, or waits for a slot of its concurrency key, nothing is offered either.
update open_tasks o set rank = o.rank - 100
from instances i
where i.id = o.instance_id and o.rank >= 0 and o.claimed_at is null and i.state = 'scheduled'
  and (i.execution ->> 'h' is not null or i.execution ->> 'w' = '1');
