/**
 * Worker tasks as they stand: what a task was made with and how it ended is in `worker_tasks`; who has it,
 * while it is open, in the narrower row of `open_tasks`, so that a claim writes no more than itself
 * (docs/decisions/0116). Whoever asks for the state or the claims of tasks reads them by this. Pure.
 */

import { columnsBut } from './tables.js';

/** Columns of both tables: while the task is open, its own row goes before. */
const CLAIM_COLUMNS: ReadonlySet<string> = new Set([
  'worker_id',
  'claim_epoch',
  'claimed_at',
  'heartbeat_at',
  'checkpoint_seq',
  'history',
]);

function standing(column: string): string {
  if (column === 'state') {
    return "case when o.claimed_at is null then t.state else 'claimed' end as state";
  }
  return CLAIM_COLUMNS.has(column)
    ? `coalesce(o.${column}, t.${column}) as ${column}`
    : `t.${column}`;
}

/** Tasks with all columns of `worker_tasks`, as a table of a FROM, which needs an alias. */
export const TASKS =
  `(select ${columnsBut('worker_tasks').map(standing).join(', ')} ` +
  'from worker_tasks t left join open_tasks o on o.task_id = t.id)';
