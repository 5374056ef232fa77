/**
 * The tasks of instances: `worker_tasks` has each task as it was created and how it ended, `open_tasks` a narrow row
 * while it is open, so that a claim writes no more than itself (docs/decisions/0031-claims.md). The state and the
 * claims of tasks are read from both by `standing`. Pure.
 */

import { SILENCE_REASON } from '../../src/core/effects.js';
import { lined } from '../../src/db/lines.js';
import { foundBy, insert, mutations, special, update } from '../../src/db/mutation.js';
import { belonging, type ColumnOf, columnsBut, columnsOf } from '../../src/db/table.js';

export const WORKER_TASKS = belonging('worker_tasks', ['id'], {
  id: 'uuid',
  instance_id: 'uuid',
  tenant_id: 'text',
  block_id: 'text',
  node: 'integer',
  iteration: 'text',
  handler_name: 'text',
  queue_name: 'text?',
  params: 'json',
  overlay: 'json?',
  secrets: 'json?',
  attempt: 'integer',
  idempotency_key: 'uuid?',
  timeout_ms: 'bigint?',
  priority: 'smallint',
  state: 'text',
  withdrawn: 'boolean',
  worker_id: 'text?',
  claim_epoch: 'integer',
  lost_claims: 'integer',
  claimed_at: 'timestamptz?',
  heartbeat_at: 'timestamptz?',
  completed_at: 'timestamptz?',
  output: 'json?',
  error_message: 'text?',
  error_retryable: 'boolean?',
  checkpoint_seq: 'integer',
  resume_checkpoint: 'json?',
  history: 'json',
  created_at: 'timestamptz',
  ownership_epoch: 'bigint?',
});

export const OPEN_TASKS = belonging('open_tasks', ['task_id'], {
  task_id: 'uuid',
  instance_id: 'uuid',
  tenant_id: 'text',
  handler_name: 'text',
  queue_name: 'text?',
  rank: 'smallint',
  created_at: 'timestamptz',
  worker_id: 'text?',
  claim_epoch: 'integer?',
  lost_claims: 'integer?',
  claimed_at: 'timestamptz?',
  heartbeat_at: 'timestamptz?',
  checkpoint_seq: 'integer?',
  history: 'json?',
});

const CLAIM = columnsOf(
  OPEN_TASKS,
  'worker_id',
  'claim_epoch',
  'lost_claims',
  'claimed_at',
  'heartbeat_at',
  'checkpoint_seq',
);

export const OPEN_TASK = mutations('openTask', {
  insert: lined(insert(OPEN_TASKS, { without: [...CLAIM, 'history'] })),
  // A claim, its end, and each heartbeat.
  claim: update(OPEN_TASKS, CLAIM),
  // Only when it does not follow from the claim.
  history: update(OPEN_TASKS, ['history']),
  // When its instance is paused, and after that.
  rank: update(OPEN_TASKS, ['rank']),
});

const END = {
  state: 'text',
  withdrawn: 'boolean',
  worker_id: 'text',
  claim_epoch: 'integer',
  lost_claims: 'integer',
  claimed_at: 'timestamptz',
  heartbeat_at: 'timestamptz',
  completed_at: 'timestamptz',
  output: 'json',
  error_message: 'text',
  error_retryable: 'boolean',
  checkpoint_seq: 'integer',
  history: 'json',
} as const;

export const TASK = mutations('task', {
  insert: lined(insert(WORKER_TASKS)),
  checkpoint: update(WORKER_TASKS, ['resume_checkpoint']),
  end: special(
    WORKER_TASKS,
    'latest',
    { id: 'uuid', ...END },
    (rows) => `
with ended as (
  select * from ${rows}
), closed as (
  delete from open_tasks o using ended r where ${foundBy('o.task_id', 'r.id')}
)
update worker_tasks t set
  ${Object.keys(END)
    .map((column) => `${column} = r.${column}`)
    .join(', ')}
from ended r
where ${foundBy('t.id', 'r.id')}`,
  ),
  // After its end.
  note: update(WORKER_TASKS, ['checkpoint_seq', 'history']),
});

// ---------------------------------------------------------------- tasks as they are now

/** Columns of both tables: while the task is open, its open row takes precedence. */
const CLAIM_COLUMNS: ReadonlySet<string> = new Set([...CLAIM, 'history']);

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

/** A worker reported that the task `t` failed. */
export const IS_REPORTED = `(t.state = 'failed' and ${hasEntry("h ->> 'event' = 'failed'")})`;

/** A worker has the task, had it at its end, or fell silent with it: see `TaskFacts`. */
export const IS_TOUCHED = `(t.claim_epoch > 0 and (t.worker_id is not null or ${hasEntry(
  `h ->> 'event' = 'reclaimed' and h ->> 'reason' = '${SILENCE_REASON}'`,
)}))`;
