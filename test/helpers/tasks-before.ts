/** Stores tasks as the versions before migration 0040 did. */

import { OPEN_TASKS_BEFORE, TASKS_BEFORE } from '../../actors/instance/old-tables.js';
import { columnsBut } from '../../src/db/table.js';

const AS_CREATED: Readonly<Record<string, string>> = {
  state: "'pending'",
  worker_id: 'null',
  claim_epoch: '0',
  lost_claims: '0',
  claimed_at: 'null',
  heartbeat_at: 'null',
  history: "'[]'",
};
const OF_CLAIM = new Set(columnsBut(OPEN_TASKS_BEFORE).slice(-7));

const stored = columnsBut(TASKS_BEFORE);
const values = stored.map((column) => {
  const created = AS_CREATED[column];
  return created === undefined
    ? column
    : `case when rank is null then ${column} else ${created} end`;
});
const opened = columnsBut(OPEN_TASKS_BEFORE).map((column) => {
  if (column === 'task_id') return 'id';
  return OF_CLAIM.has(column) ? `case when claim_epoch > 0 then ${column} end` : column;
});

/** Moves all rows back, while no engine runs. */
export const STORE_AS_BEFORE = `
with moved as (
  delete from worker_tasks returning *
), opened as (
  insert into open_tasks (${columnsBut(OPEN_TASKS_BEFORE).join(', ')})
  select ${opened.join(', ')} from moved where rank is not null
)
insert into worker_tasks_before (${stored.join(', ')}) select ${values.join(', ')} from moved`;
