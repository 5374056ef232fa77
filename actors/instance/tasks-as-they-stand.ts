/**
 * Worker tasks as they stand: what a task was made with and how it ended is in `worker_tasks`; who has it,
 * while it is open, in the narrower row of `open_tasks`, so that a claim writes no more than itself
 * (docs/decisions/0031-claims.md). Whoever asks for the state or the claims of tasks reads them by this. Pure.
 */

import { SILENCE_REASON } from '../../src/core/effects.js';
import { type ColumnOf, columnsBut } from '../../src/db/table.js';
import { WORKER_TASKS } from './task-tables.js';

/** Columns of both tables: while the task is open, its own row goes before. */
const CLAIM_COLUMNS: ReadonlySet<string> = new Set([
  'worker_id',
  'claim_epoch',
  'lost_claims',
  'claimed_at',
  'heartbeat_at',
  'checkpoint_seq',
  'history',
]);

/** A column of the task `t` whose open row, if there is one, is `o`. */
export function standing(column: ColumnOf<typeof WORKER_TASKS>): string {
  if (column === 'state') return "case when o.claimed_at is null then t.state else 'claimed' end";
  return CLAIM_COLUMNS.has(column) ? `coalesce(o.${column}, t.${column})` : `t.${column}`;
}

/** These columns, as a SELECT names them. */
export function selectedStanding(columns: readonly ColumnOf<typeof WORKER_TASKS>[]): string {
  return columns.map((column) => `${standing(column)} as ${column}`).join(', ');
}

/** The tables of `standing`. */
export const WITH_OPEN_ROWS = 'worker_tasks t left join open_tasks o on o.task_id = t.id';
export const OF_OPEN_ROWS = 'open_tasks o join worker_tasks t on t.id = o.task_id';

/** Tasks with all columns of `worker_tasks`, as a table of a FROM, which needs an alias. */
export const TASKS = `(select ${selectedStanding(columnsBut(WORKER_TASKS))} from ${WITH_OPEN_ROWS})`;

/** Whether the history of a task has such an entry. */
function hasEntry(condition: string): string {
  return `exists (select 1 from json_array_elements(t.history) h where ${condition})`;
}

/** The word of a worker that a task of `t` failed. */
export const IS_REPORTED = `(t.state = 'failed' and ${hasEntry("h ->> 'event' = 'failed'")})`;

/** Some worker has it, or had it when it ended, or fell silent over it: see `TaskFacts`. */
export const IS_TOUCHED = `(t.claim_epoch > 0 and (t.worker_id is not null or ${hasEntry(
  `h ->> 'event' = 'reclaimed' and h ->> 'reason' = '${SILENCE_REASON}'`,
)}))`;
