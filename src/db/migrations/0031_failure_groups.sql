-- What failures are put together by stands in the narrow row of each, so that summing them up reads no instance
-- (docs/decisions/0149). The reason is folded as in src/core/failure-reason.ts. Rows without a failure, from
-- before there were any, are in no group.
alter table dead_letters
  add column namespace text,
  add column sequence_id uuid,
  add column failure_code text,
  add column block_id text,
  add column handler text,
  add column folded_reason text;

update dead_letters d
set namespace = i.namespace,
  sequence_id = i.sequence_id,
  failure_code = i.failure ->> 'code',
  block_id = i.failure ->> 'block_id',
  handler = i.failure ->> 'handler',
  folded_reason = regexp_replace(
    regexp_replace(i.failure ->> 'message', '"[^"]*"|''[^'']*''|`[^`]*`', '"…"', 'g'),
    '[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*', '#', 'g')
from instances i
where i.id = d.instance_id and i.failure is not null;
