/**
 * `worker_tasks` has each task as created and ended, `open_tasks` a narrow row while it is open, so
 * that a claim writes little (docs/decisions/0031-claims.md). Pure.
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
  // Written by a claim, its end and each heartbeat.
  claim: update(OPEN_TASKS, CLAIM),
  // Written only when it is not derived from the claim.
  history: update(OPEN_TASKS, ['history']),
  // Written when the instance is paused and resumed.
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
  // For a task that has ended.
  note: update(WORKER_TASKS, ['checkpoint_seq', 'history']),
});

/** Columns that both tables have. The open row takes precedence. */
const CLAIM_COLUMNS: ReadonlySet<string> = new Set([...CLAIM, 'history']);

/** The current value of a column of the task `t`, whose open row, if any, is `o`. */
export function standing(column: ColumnOf<typeof WORKER_TASKS>): string {
  if (column === 'state') return "case when o.claimed_at is null then t.state else 'claimed' end";
  return CLAIM_COLUMNS.has(column) ? `coalesce(o.${column}, t.${column})` : `t.${column}`;
}

export function selectedStanding(columns: readonly ColumnOf<typeof WORKER_TASKS>[]): string {
  return columns.map((column) => `${standing(column)} as ${column}`).join(', ');
}

export const WITH_OPEN_ROWS = 'worker_tasks t left join open_tasks o on o.task_id = t.id';
export const OF_OPEN_ROWS = 'open_tasks o join worker_tasks t on t.id = o.task_id';

/** Current tasks with all columns of `worker_tasks`, for a FROM with an alias. */
export const TASKS = `(select ${selectedStanding(columnsBut(WORKER_TASKS))} from ${WITH_OPEN_ROWS})`;

function hasEntry(condition: string): string {
  return `exists (select 1 from json_array_elements(t.history) h where ${condition})`;
}

export const IS_REPORTED = `(t.state = 'failed' and ${hasEntry("h ->> 'event' = 'failed'")})`;

/** A worker holds the task, ended it, or fell silent with it: see `TaskFacts`. */
export const IS_TOUCHED = `(t.claim_epoch > 0 and (t.worker_id is not null or ${hasEntry(
  `h ->> 'event' = 'reclaimed' and h ->> 'reason' = '${SILENCE_REASON}'`,
)}))`;
