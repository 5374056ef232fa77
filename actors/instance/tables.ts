/** The tables of instances, and tables with at most one row per instance. Pure. */

import { lined } from '../../src/db/lines.js';
import { clear, foundBy, insert, mutations, set, special, update } from '../../src/db/mutation.js';
import { prune } from '../../src/db/statements.js';
import { belonging, columnsBut, columnsOf, type Table, table } from '../../src/db/table.js';
import { TASK_BEFORE } from './old-tables.js';
import { INSTANCE_DETAILS } from './output-tables.js';
import { TASK } from './task-tables.js';

export const INSTANCES = table(
  'instances',
  ['id'],
  {
    id: 'uuid',
    sequence_id: 'uuid',
    tenant_id: 'text',
    namespace: 'text',
    state: 'text',
    next_fire_at: 'timestamptz?',
    priority: 'smallint',
    timezone: 'text',
    metadata: 'json',
    data: 'json patched',
    config: 'json',
    context_audit: 'json',
    runtime: 'json',
    execution: 'json',
    concurrency_key: 'text?',
    max_concurrency: 'integer?',
    idempotency_key: 'text?',
    parent_instance_id: 'uuid?',
    creation_audit: 'json?',
    end_outputs: 'json?',
    signal_count: 'integer',
    audit_count: 'integer',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
    cron_schedule_id: 'uuid?',
    traceparent: 'text?',
    release_id: 'uuid?',
    release_variant: 'text?',
    creation_data: 'json?',
    data_patch: 'json?',
    continuity_id: 'uuid?',
    ownership_epoch: 'bigint?',
    fence: 'json?',
    failure: 'json?',
    timeout: 'bigint?',
  },
  { instance: 'id' },
);

/** Idempotency keys of collected creations, by the id that an instance of the key would have (docs/concurrency.md). */
export const INSTANCE_KEYS = belonging('instance_keys', ['id'], {
  id: 'uuid',
  instance_id: 'uuid',
  tenant_id: 'text',
  idempotency_key: 'text',
  created_at: 'timestamptz',
});

export const INSTANCE_KEY = mutations('instanceKey', {
  insert: { ...insert(INSTANCE_KEYS), gate: { unless: INSTANCES } },
});

/** Columns that change in almost every unit. */
const PROGRESS = columnsOf(
  INSTANCES,
  'state',
  'next_fire_at',
  'runtime',
  'execution',
  'signal_count',
  'audit_count',
  'end_outputs',
  'updated_at',
);

const LATER = ['creation_data', 'data_patch', 'continuity_id', 'ownership_epoch', 'fence'] as const;

/** A context is written only when it changes, and whole only if a patch of it would not be smaller. */
const CHANGE = lined(
  // The first one is kept for replays.
  update(INSTANCES, [...PROGRESS, 'data_patch', 'data'], { keeps: { creation_data: 'data' } }),
);
const PATCH = { ...lined(update(INSTANCES, [...PROGRESS, 'data_patch'])), narrows: [CHANGE] };

/** The parts of a statement that deletes the instances in `doomed` and all their rows. */
function instancesGone(tables: readonly Table[]): string[] {
  return [
    ...tables.flatMap(({ keptOfInstances: kept }) => (kept === undefined ? [] : [kept])),
    ...tables.flatMap(({ name, instance }) => {
      if (instance === undefined) return [];
      return [
        `${name}_gone as (
  delete from ${name} t using doomed d where ${foundBy(`t.${instance}`, 'd.id')}
)`,
      ];
    }),
  ];
}

export const INSTANCE = mutations('instance', {
  insert: {
    ...lined(insert(INSTANCES, { without: LATER })),
    gate: { isOfBatches: true, unless: INSTANCE_KEYS },
  },
  // The unit of the parent may have a gate.
  insertChild: lined(insert(INSTANCES, { without: LATER }, 'nothing')),
  update: { ...lined(update(INSTANCES, PROGRESS)), narrows: [PATCH, CHANGE] },
  patch: PATCH,
  change: CHANGE,
  config: update(INSTANCES, ['config', 'context_audit']),
  rebind: update(INSTANCES, ['sequence_id']),
  trace: update(INSTANCES, ['traceparent']),
  ownership: update(INSTANCES, ['continuity_id', 'ownership_epoch', 'fence']),
  failure: update(INSTANCES, ['failure']),
  delete: special(
    INSTANCES,
    'barrier',
    { id: 'uuid' },
    (rows, tables) => `
with doomed as (
  select id from ${rows}
), ${instancesGone(tables).join(', ')}
select count(*) from doomed`,
  ),
});

export const TIMERS = belonging('timers', ['instance_id'], {
  instance_id: 'uuid',
  fire_at: 'timestamptz?',
  recover: 'boolean',
  rank: 'smallint',
});

export const TIMER = mutations('timer', {
  clear: clear(TIMERS),
  set: set(TIMERS, ['fire_at', 'recover', 'rank'], { defaults: { rank: 2 } }),
});

export const DEAD_LETTERS = belonging('dead_letters', ['instance_id'], {
  instance_id: 'uuid',
  tenant_id: 'text',
  created_at: 'timestamptz',
  failed_at: 'timestamptz',
  reason: 'text',
  namespace: 'text?',
  sequence_id: 'uuid?',
  failure_code: 'text?',
  block_id: 'text?',
  handler: 'text?',
  folded_reason: 'text?',
});

export const DEAD_LETTER = mutations('deadLetter', {
  clear: clear(DEAD_LETTERS),
  set: set(DEAD_LETTERS, columnsBut(DEAD_LETTERS, 'instance_id')),
  rebind: update(DEAD_LETTERS, ['sequence_id']),
});

/** What an instance is found by (`search-terms.ts`). */
export const SEARCH_TERMS = belonging('search_terms', ['instance_id', 'term'], {
  instance_id: 'uuid',
  term: 'text',
  tenant_id: 'text',
  created_at: 'timestamptz',
});

export const SEARCH_TERM = mutations('searchTerm', {
  /** With the instance, before which there was none: looking for conflicts would cost as much as the row. */
  insert: lined(insert(SEARCH_TERMS)),
  clear: clear(SEARCH_TERMS),
  set: set(SEARCH_TERMS, ['created_at']),
});

export const INJECTED_BLOCKS = belonging('injected_blocks', ['instance_id'], {
  instance_id: 'uuid',
  blocks: 'json',
});

export const INJECTION = mutations('injection', { set: set(INJECTED_BLOCKS, ['blocks']) });

export const FAMILY_MESSAGES = table(
  'kin_notes',
  ['to_id', 'from_id'],
  { to_id: 'uuid', from_id: 'uuid', id: 'uuid', word: 'text' },
  { instance: 'to_id' },
);

export const FAMILY_MESSAGE = mutations('familyMessage', {
  set: set(FAMILY_MESSAGES, ['id', 'word']),
  // By the id of the message that was read, so that a newer one stays.
  clear: clear(FAMILY_MESSAGES, 'id'),
});

export const PERMIT_REQUESTS = belonging('permit_requests', ['instance_id'], {
  instance_id: 'uuid',
  key_id: 'uuid',
  max_concurrency: 'integer',
  number: 'integer',
  created_at: 'timestamptz',
  when_full: 'text?',
  has_slot: 'boolean',
});

export const PERMIT_REQUEST = mutations('permitRequest', {
  clear: clear(PERMIT_REQUESTS),
  set: set(PERMIT_REQUESTS, ['number', 'when_full', 'has_slot']),
});

export const START_REQUESTS = belonging('start_requests', ['instance_id'], {
  instance_id: 'uuid',
  key_id: 'uuid',
  max_starts: 'integer',
  per_ms: 'bigint',
  burst: 'integer',
  created_at: 'timestamptz',
});

export const START_REQUEST = mutations('startRequest', {
  clear: clear(START_REQUESTS),
  set: set(START_REQUESTS, ['key_id', 'max_starts', 'per_ms', 'burst']),
});

export const BULK_CHANGES = belonging(
  'bulk_changes',
  ['job_id', 'instance_id'],
  { job_id: 'uuid', instance_id: 'uuid' },
  { ofTenant: 'job_id in (select id from bulk_jobs where tenant_id = $T)' },
);

export const BULK_CHANGE = mutations('bulkChange', {
  insert: insert(BULK_CHANGES),
  clear: clear(BULK_CHANGES),
});

/** What a job has retried; its owner deletes old rows. */
export const BULK_RETRIES = belonging(
  'bulk_retries',
  ['job_id', 'instance_id'],
  { job_id: 'uuid', instance_id: 'uuid', retried_at: 'timestamptz' },
  { ofTenant: 'job_id in (select id from bulk_jobs where tenant_id = $T)' },
);

export const BULK_RETRY = mutations('bulkRetry', {
  insert: insert(BULK_RETRIES),
  prune: prune(BULK_RETRIES, ['retried_at']),
});

export const INSTANCE_STORE = [
  // Before the changes and deletions of the tasks that it moves.
  TASK_BEFORE,
  INSTANCE,
  INSTANCE_KEY,
  TIMER,
  DEAD_LETTER,
  SEARCH_TERM,
  INJECTION,
  FAMILY_MESSAGE,
  PERMIT_REQUEST,
  START_REQUEST,
  BULK_CHANGE,
  BULK_RETRY,
  TASK,
  ...INSTANCE_DETAILS,
];
