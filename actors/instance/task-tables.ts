/**
 * A task is one row from its creation to its end. While it is open it has a rank, by which the partial
 * indexes of the queues find it; a claim changes no indexed column (docs/decisions/0031-claims.md). Pure.
 */

import { SILENCE_REASON } from '../../src/core/effects.js';
import { lined } from '../../src/db/lines.js';
import { insert, mutations, update } from '../../src/db/mutation.js';
import { belonging, columnsOf } from '../../src/db/table.js';

export const WORKER_TASKS = belonging(
  'worker_tasks',
  ['id'],
  {
    id: 'uuid',
    instance_id: 'uuid',
    created_at: 'timestamptz',
    timeout_ms: 'bigint?',
    ownership_epoch: 'bigint?',
    node: 'integer',
    attempt: 'integer',
    priority: 'smallint',
    idempotency_key: 'uuid?',
    tenant_id: 'text',
    block_id: 'text',
    iteration: 'text',
    handler_name: 'text',
    queue_name: 'text?',
    params: 'json',
    overlay: 'json?',
    secrets: 'json?',
    resume_checkpoint: 'json?',
    history: 'json',
    rank: 'smallint?',
    lost_claims: 'integer',
    checkpoint_seq: 'integer',
    claim_epoch: 'integer',
    claimed_at: 'timestamptz?',
    heartbeat_at: 'timestamptz?',
    state: 'text',
    worker_id: 'text?',
    withdrawn: 'boolean',
    completed_at: 'timestamptz?',
    output: 'json?',
    error_message: 'text?',
    error_retryable: 'boolean?',
  },
  // No index has the tasks of a tenant, open and ended.
  { ofTenant: 'instance_id in (select id from instances where tenant_id = $T)' },
);

/** The end of a task has these columns first: it replaces a claim in the same batch, and no claim follows it. */
const CLAIM = columnsOf(
  WORKER_TASKS,
  'state',
  'worker_id',
  'claim_epoch',
  'lost_claims',
  'claimed_at',
  'heartbeat_at',
  'checkpoint_seq',
);
const END = columnsOf(
  WORKER_TASKS,
  ...CLAIM,
  'rank',
  'withdrawn',
  'completed_at',
  'output',
  'error_message',
  'error_retryable',
  'history',
);

export const TASK = mutations('task', {
  insert: lined(insert(WORKER_TASKS)),
  // Written by a claim, when it is given back, and by each heartbeat.
  claim: lined(update(WORKER_TASKS, CLAIM)),
  // Written only when it is not derived from the claim.
  history: update(WORKER_TASKS, ['history']),
  // Written when the instance is paused and resumed.
  rank: update(WORKER_TASKS, ['rank']),
  checkpoint: update(WORKER_TASKS, ['resume_checkpoint']),
  end: lined(update(WORKER_TASKS, END)),
  // For a task that has ended.
  note: update(WORKER_TASKS, ['checkpoint_seq', 'history']),
});

function hasEntry(condition: string): string {
  return `exists (select 1 from json_array_elements(t.history) h where ${condition})`;
}

export const IS_REPORTED = `(t.state = 'failed' and ${hasEntry("h ->> 'event' = 'failed'")})`;

/** A worker holds the task, ended it, or fell silent with it: see `TaskFacts`. */
export const IS_TOUCHED = `(t.claim_epoch > 0 and (t.worker_id is not null or ${hasEntry(
  `h ->> 'event' = 'reclaimed' and h ->> 'reason' = '${SILENCE_REASON}'`,
)}))`;
