/**
 * One example of each named schema. They tell one story, of the tenant `acme` that bills its orders:
 * the ids in them agree, and the server takes the requests in the order of the story.
 */

import type { JsonValue } from '../src/core/json.js';
import { AT, EXAMPLE_IDS, EXAMPLE_TENANT, LATER } from './example-ids.js';
import { CONTINUITY_EXAMPLES } from './examples-continuity.js';
import { RELEASE_EXAMPLES } from './examples-releases.js';

/** Of parameters, by name; those named `id` by the path. */
export const PARAMETER_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
  name: 'order',
  block_id: 'charge',
  key: 'payments',
  delivery_id: EXAMPLE_IDS.delivery,
  checkpoint_id: EXAMPLE_IDS.checkpoint,
  file: 'swagger-ui.css',
};

const ID_EXAMPLES: Readonly<Record<string, string>> = {
  sequences: EXAMPLE_IDS.sequence,
  instances: EXAMPLE_IDS.instance,
  workers: EXAMPLE_IDS.task,
  cron: EXAMPLE_IDS.schedule,
  releases: EXAMPLE_IDS.release,
  webhooks: EXAMPLE_IDS.outbox,
  'api-keys': 'ak_6f1d2c3b4a5968778695a4b3c2d1e0ff',
  // Below /continuity.
  executions: EXAMPLE_IDS.instance,
  effects: EXAMPLE_IDS.task,
  migrations: EXAMPLE_IDS.migration,
  handoffs: EXAMPLE_IDS.handoff,
};

/** Of the parameter `id` in a path; '' where there is none. */
export function exampleIdIn(path: string): string {
  const [first = '', second = ''] = path.split('/').slice(1);
  return ID_EXAMPLES[first === 'continuity' ? second : first] ?? '';
}

const charge = {
  type: 'step',
  id: 'charge',
  handler: 'charge-card',
  params: { amount: '{{ context.data.amount }}' },
  timeout: 30_000,
  retry: { max_attempts: 3, initial_backoff: 500, max_backoff: 10_000, backoff_multiplier: 2 },
};
const thank = {
  type: 'step',
  id: 'thank',
  handler: 'log',
  params: { message: 'thank you', level: 'info' },
};
const blocks: JsonValue = [
  charge,
  {
    type: 'router',
    id: 'by-size',
    routes: [{ condition: 'size == large', blocks: [thank] }],
    default: [{ type: 'step', id: 'nothing-more', handler: 'noop' }],
  },
];

const sequence = {
  id: EXAMPLE_IDS.sequence,
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
  name: 'order',
  version: 1,
};

const creation = {
  sequence_id: EXAMPLE_IDS.sequence,
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
};

const data = { amount: 4_200, size: 'large' };
const context = {
  data,
  config: {},
  audit: [],
  runtime: { instance_id: EXAMPLE_IDS.instance, current_step: 'charge', attempt: 0 },
};

const filter = { namespace: 'billing', states: ['failed'] };
const claim = { worker_id: 'worker-1', claim_epoch: 1 };

const task = {
  id: EXAMPLE_IDS.task,
  instance_id: EXAMPLE_IDS.instance,
  block_id: 'charge',
  handler_name: 'charge-card',
  params: { amount: 4_200 },
  context: { data, config: {} },
  attempt: 0,
  timeout_ms: 30_000,
  state: 'claimed',
  ...claim,
  claimed_at: AT,
  heartbeat_at: AT,
  completed_at: null,
  output: null,
  error_message: null,
  error_retryable: null,
  checkpoint_seq: 0,
  created_at: AT,
};

const schedule = {
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
  sequence_id: EXAMPLE_IDS.sequence,
  cron_expr: '0 30 8 * * MON-FRI *',
  timezone: 'Europe/Berlin',
  metadata: { source: 'nightly' },
  enabled: true,
  overlap_policy: 'skip',
};

const key = {
  id: 'ak_6f1d2c3b4a5968778695a4b3c2d1e0ff',
  tenant_id: EXAMPLE_TENANT,
  name: 'billing workers',
  capabilities: ['worker'],
};

const audit = {
  id: EXAMPLE_IDS.audit,
  instance_id: EXAMPLE_IDS.instance,
  tenant_id: EXAMPLE_TENANT,
  event_type: 'state_changed',
  from_state: 'scheduled',
  to_state: 'running',
  details: {},
  created_at: AT,
};

const webhook = {
  event_type: 'instance.failed',
  instance_id: EXAMPLE_IDS.instance,
  timestamp: LATER,
  data: { state: 'failed' },
};

const delivery = {
  delivery_id: EXAMPLE_IDS.delivery,
  url: 'https://hooks.example.com/engine',
  event_type: 'instance.failed',
  instance_id: EXAMPLE_IDS.instance,
};

const step = { type: 'step', id: 'archive', handler: 'noop' };

const BLOCK_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  Block: charge,
  StepBlock: charge,
  ParallelBlock: { type: 'parallel', id: 'both', branches: [[thank], [step]] },
  RaceBlock: {
    type: 'race',
    id: 'faster',
    branches: [
      [{ type: 'step', id: 'wait', handler: 'sleep', params: { duration_ms: 50 } }],
      [step],
    ],
    semantics: 'first_to_succeed',
  },
  RouterBlock: blocks[1] as JsonValue,
  TryCatchBlock: { type: 'try_catch', id: 'safely', try_block: [charge], catch_block: [thank] },
  LoopBlock: { type: 'loop', id: 'again', condition: 'more', body: [step], max_iterations: 10 },
  ForEachBlock: {
    type: 'for_each',
    id: 'each-line',
    collection: 'lines',
    item_var: 'line',
    body: [step],
  },
};

/** By the `$id` of the schema. */
export const EXAMPLES: Readonly<Record<string, JsonValue>> = {
  ...BLOCK_EXAMPLES,
  ErrorBody: { error: `not found: instance ${EXAMPLE_IDS.instance}` },
  Health: { status: 'ok' },
  NotReady: {
    error: 'unavailable: the database takes no writes: its disk is full (53100)',
    reason: { kind: 'disk-full', sql_state: '53100' },
  },
  Info: {
    version: '0.8.0',
    storage_schema_version: 4,
    contract_schema_version: 1,
    env_label: null,
    env_color: null,
  },

  CreateSequence: { ...sequence, blocks },
  SequenceCreated: { id: EXAMPLE_IDS.sequence },
  SequenceDefinition: {
    ...sequence,
    deprecated: false,
    status: 'production',
    blocks,
    created_at: AT,
  },

  CreateInstance: {
    ...creation,
    priority: 'high',
    timezone: 'Europe/Berlin',
    metadata: { order: 'A-1001' },
    context: { data },
    idempotency_key: 'order-A-1001',
  },
  InstanceCreated: { id: EXAMPLE_IDS.instance, deduplicated: false },
  CreateBatch: { instances: [creation, { ...creation, priority: 'low' }] },
  BatchCreated: { count: 2, created: 2 },
  TaskInstance: {
    id: EXAMPLE_IDS.instance,
    ...creation,
    state: 'waiting',
    next_fire_at: null,
    priority: 'High',
    timezone: 'Europe/Berlin',
    metadata: { order: 'A-1001' },
    context,
    idempotency_key: 'order-A-1001',
    created_at: AT,
    updated_at: LATER,
  },
  InstanceContext: context,
  PatchState: { state: 'paused' },
  PatchContext: { context: { data: { ...data, size: 'small' } } },
  ContextPatched: { context: { ...context, data: { ...data, size: 'small' } } },
  SendSignal: { signal_type: 'update_context', payload: { approved: true } },
  SignalAccepted: { signal_id: EXAMPLE_IDS.signal },
  InstanceRetried: { id: EXAMPLE_IDS.instance, state: 'scheduled' },
  BulkState: { filter, state: 'scheduled' },
  BulkUpdated: { count: 3, updated: 3 },
  BlockOutput: {
    id: EXAMPLE_IDS.output,
    instance_id: EXAMPLE_IDS.instance,
    block_id: 'charge',
    output: { charge_id: 'ch_77' },
    output_ref: null,
    output_size: 21,
    attempt: 0,
    created_at: LATER,
  },
  TreeNode: {
    id: EXAMPLE_IDS.node,
    instance_id: EXAMPLE_IDS.instance,
    block_id: 'charge',
    parent_id: null,
    block_type: 'step',
    branch_index: null,
    state: 'completed',
    started_at: AT,
    completed_at: LATER,
  },
  AuditEntry: audit,
  Timeline: {
    instance: {
      id: EXAMPLE_IDS.instance,
      sequence_id: EXAMPLE_IDS.sequence,
      state: 'waiting',
      created_at: AT,
      updated_at: LATER,
    },
    state_transitions: [{ from_state: 'scheduled', to_state: 'running', at: AT }],
    entries: [
      {
        block_id: 'charge',
        attempt: 0,
        completed_at: LATER,
        output: { charge_id: 'ch_77' },
        is_sentinel: false,
      },
    ],
    offset: 0,
    limit: 200,
    has_more: false,
  },

  InjectBlocks: { blocks: [step] },
  BlocksInjected: { injected_block_ids: ['archive'], position: 0, total_injected: 1 },
  ResumeFrom: { context: { amount: 4_100 } },
  ResumedFrom: {
    id: EXAMPLE_IDS.instance,
    state: 'scheduled',
    resumed_from: 'charge',
    outputs_deleted: 2,
    signals_enqueued: 0,
  },
  ForkInstance: { from_block_id: 'charge', dry_run: true },
  InstanceForked: {
    id: EXAMPLE_IDS.fork,
    forked_from: EXAMPLE_IDS.instance,
    state: 'scheduled',
    copied_blocks: [],
    rerun_blocks: ['charge', 'by-size'],
    dry_run: true,
  },
  MigrateInstance: {
    instance_id: EXAMPLE_IDS.instance,
    target_sequence_id: EXAMPLE_IDS.nextSequence,
  },
  InstanceMigrated: {
    migrated: true,
    instance_id: EXAMPLE_IDS.instance,
    from_sequence_id: EXAMPLE_IDS.sequence,
    to_sequence_id: EXAMPLE_IDS.nextSequence,
  },
  BulkReschedule: { filter: { namespace: 'billing' }, offset_secs: 3_600 },
  BatchAction: { filter, action: 'retry', limit: 100 },
  BatchActionResult: { matched: 3, applied: 3, skipped: 0, failed: 0, dry_run: false },
  SaveCheckpoint: { checkpoint_data: { lines_done: 12 } },
  CheckpointSaved: { id: EXAMPLE_IDS.checkpoint },
  Checkpoint: {
    id: EXAMPLE_IDS.checkpoint,
    instance_id: EXAMPLE_IDS.instance,
    checkpoint_data: { lines_done: 12 },
    created_at: LATER,
  },
  PruneCheckpoints: { keep: 1 },
  CheckpointsPruned: { count: 4 },
  StepLogLine: { block_id: 'charge', ts: AT, level: 'info', message: 'card charged' },

  PollTasks: { handler_name: 'charge-card', worker_id: 'worker-1', limit: 10 },
  PollQueue: {
    handler_name: 'charge-card',
    worker_id: 'worker-1',
    queue_name: 'eu',
    wait_ms: 0,
  },
  WorkerTask: task,
  HeartbeatTask: { ...claim, checkpoint_seq: 0, checkpoint: { lines_done: 6 } },
  HeartbeatAccepted: { checkpoint_seq: 1 },
  CompleteTask: { ...claim, output: { charge_id: 'ch_77' } },
  FailTask: { ...claim, message: 'the card was refused', retryable: false },
  WorkerAttempt: {
    id: EXAMPLE_IDS.attempt,
    task_id: EXAMPLE_IDS.task,
    claim_epoch: 1,
    worker_id: 'worker-1',
    event: 'claimed',
    created_at: AT,
  },
  TaskStats: {
    by_state: { pending: 4, claimed: 1 },
    by_handler: { 'charge-card': { pending: 4, claimed: 1 } },
    active_workers: ['worker-1'],
  },
  WorkerInfo: {
    worker_id: 'worker-1',
    handlers: ['charge-card'],
    queues: [],
    version: '2.4.1',
    last_seen_at: AT,
    alive: true,
    in_flight: 1,
  },
  HandlerNames: { builtin: ['log', 'noop'], external: ['charge-card'] },
  PutRateLimit: { max_count: 100, window_seconds: 60 },
  RateLimit: {
    tenant_id: EXAMPLE_TENANT,
    key: 'payments',
    max_count: 100,
    window_seconds: 60,
    updated_at: AT,
  },

  CreateSchedule: schedule,
  ScheduleCreated: { id: EXAMPLE_IDS.schedule, next_fire_at: '2026-11-03T07:30:00.000Z' },
  UpdateSchedule: { cron_expr: '0 0 9 * * MON-FRI *', enabled: false },
  CronSchedule: {
    id: EXAMPLE_IDS.schedule,
    ...schedule,
    skipped_fires: 0,
    last_skipped_at: null,
    last_triggered_at: null,
    next_fire_at: '2026-11-03T07:30:00.000Z',
    last_error: null,
    created_at: AT,
    updated_at: AT,
  },
  NextFires: { timezone: 'Europe/Berlin', fires: ['2026-11-03T07:30:00.000Z'] },

  ...RELEASE_EXAMPLES,

  ...CONTINUITY_EXAMPLES,

  MintKey: { tenant_id: EXAMPLE_TENANT, name: 'billing workers', capabilities: ['worker'] },
  KeyMinted: {
    ...key,
    secret: `sk_${'0123456789abcdef'.repeat(4)}`,
    created_at: AT,
    expires_at: null,
  },
  ApiKey: { ...key, created_at: AT, last_used_at: null, expires_at: null, revoked: false },

  Changes: { changes: [audit], next_cursor: 'MTczMDUzNDQwMDAwMA', has_more: false },
  WebhookBody: webhook,
  OutboxEntry: {
    id: EXAMPLE_IDS.outbox,
    url: 'https://hooks.example.com/engine',
    event_type: 'instance.failed',
    instance_id: EXAMPLE_IDS.instance,
    payload: webhook,
    attempts: 3,
    last_error: 'status 503',
    created_at: AT,
    delivery_id: EXAMPLE_IDS.delivery,
    status: 'pending',
    next_attempt_at: LATER,
  },
  Redelivered: { redelivered: true, delivery_id: EXAMPLE_IDS.delivery },
  RedeliverPreview: {
    url: 'https://hooks.example.com/engine',
    event_type: 'instance.failed',
    payload_bytes: 187,
    will_be_signed: true,
    previous_delivery_id: EXAMPLE_IDS.delivery,
    previous_attempts: 3,
    last_error: 'status 503',
  },
  DeliverySummary: {
    ...delivery,
    attempts: 1,
    delivered: false,
    first_attempted_at: AT,
    last_attempted_at: AT,
    status_code: 503,
    error_class: 'http_status',
  },
  DeliveryAttempt: {
    id: EXAMPLE_IDS.attempt,
    ...delivery,
    attempt_number: 1,
    attempted_at: AT,
    duration_ms: 41,
    success: false,
    status_code: 503,
    error_class: 'http_status',
    signed: true,
  },
};
