/** The tasks of instances: one row as a task was made and how it ended, and a narrow one while it is open. Pure. */

import { lined } from '../../src/db/lines.js';
import { foundBy, insert, mutations, special, update } from '../../src/db/mutation.js';
import { belonging, columnsOf } from '../../src/db/table.js';

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
  // Only when there is more to tell than the claim.
  history: update(OPEN_TASKS, ['history']),
  // Its place while its instance is paused, and after that.
  rank: update(OPEN_TASKS, ['rank']),
});

/** What is written of a task that ends. */
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
  // It is open no more, and its row says how it ended.
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
  // What is still done with one that has ended.
  note: update(WORKER_TASKS, ['checkpoint_seq', 'history']),
});
