/**
 * One example of each named schema. They tell one story, of the tenant `acme` that bills its orders:
 * the ids in them agree, and the server takes the requests in the order of the story. A field has the
 * same value wherever it stands, unless the example of its schema says otherwise.
 */

import type { TSchema } from '@sinclair/typebox';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/base/json.js';
import { AT, EXAMPLE_IDS, EXAMPLE_TENANT, LATER, UNTIL } from './example-ids.js';
import { CELL_EXAMPLES } from './examples-cells.js';
import { CONTINUITY_EXAMPLES } from './examples-continuity.js';
import { CRON_EXAMPLES } from './examples-cron.js';
import { HISTORY_EXAMPLES } from './examples-history.js';
import { KEY_EXAMPLES } from './examples-keys.js';
import { RELEASE_EXAMPLES } from './examples-releases.js';
import { STATISTIC_EXAMPLES } from './examples-statistics.js';

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
const settled = {
  event_name: 'payment.settled',
  producer_event_id: 'settlement-4711',
  correlation_key: 'A-1001',
  payload: { amount: 4_200 },
};
const receipt = {
  event_id: EXAMPLE_IDS.event,
  duplicate: false,
  matched_wait: EXAMPLE_IDS.wait,
  satisfied: true,
  matched: 1,
};
const storedEvent = {
  id: EXAMPLE_IDS.event,
  tenant_id: EXAMPLE_TENANT,
  ...settled,
  status: 'consumed',
  matched: 1,
  created_at: AT,
  expires_at: '2026-11-03T08:00:00.000Z',
  consumed_at: LATER,
};
const archive = { type: 'step', id: 'archive', handler: 'noop' };
const bySize = {
  type: 'router',
  id: 'by-size',
  routes: [{ condition: 'size == large', blocks: [thank] }],
  default: [{ type: 'step', id: 'nothing-more', handler: 'noop' }],
};

const data = { amount: 4_200, size: 'large' };
const context = {
  data,
  config: {},
  audit: [],
  runtime: { instance_id: EXAMPLE_IDS.instance, current_step: 'charge', attempt: 0 },
};
const contextOfSmall = { ...context, data: { ...data, size: 'small' } };

const creation = {
  sequence_id: EXAMPLE_IDS.sequence,
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
};

/** A delivery whose address was not there. */
const refused = {
  instance_id: EXAMPLE_IDS.instance,
  status_code: 503,
  error_class: 'http_status',
};

const filter = { namespace: 'billing', states: ['failed'] };
const claim = { worker_id: 'worker-1', claim_epoch: 1 };
const output = { charge_id: 'ch_77' };
const completed = { kind: 'complete', task_id: EXAMPLE_IDS.task, claim_epoch: 1, output };
const byHandler = { pending: 4, claimed: 1 };

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
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
  sequence_id: EXAMPLE_IDS.sequence,
  sequence_name: 'order',
  sequence_version: 1,
  metadata: { order: 'A-1001' },
  failure: null,
  data: { error: 'the card was refused', attempts: 3, block_id: 'charge' },
};

const subscription = { url: 'https://hooks.example/engine', events: ['instance.failed'] };
const SUBSCRIPTION_SECRET = `whsec_${'0123456789abcdef'.repeat(4)}`;

/** Of required fields, by name; an instant is that of the beginning, and null what may be null. */
const FIELDS: JsonObject = {
  ...creation,
  attempt: 0,
  attempts: 3,
  block_id: 'charge',
  blocks: [charge, bySize],
  capabilities: ['worker'],
  checkpoint_data: { lines_done: 12 },
  checkpoint_seq: 0,
  claim_epoch: 1,
  data,
  delivery_id: EXAMPLE_IDS.delivery,
  event_type: 'instance.failed',
  failed: 0,
  filter,
  handler_name: 'charge-card',
  has_more: false,
  instance_id: EXAMPLE_IDS.instance,
  max_count: 100,
  metadata: { order: 'A-1001' },
  name: 'order',
  output,
  state: 'scheduled',
  timezone: 'Europe/Berlin',
  url: 'https://hooks.example.com/engine',
  version: 1,
  window_seconds: 60,
  worker_id: 'worker-1',
};

const failure = {
  block_id: 'charge',
  path: 'orders[2]/charge',
  handler: 'charge_card',
  attempt: 2,
  code: 'retries_exhausted',
  message: 'the bank is busy',
  at: LATER,
};

const wait = {
  kind: 'task',
  summary:
    'Step charge waits for a worker: no worker polls for the handler charge_card; none ever did.',
  block_id: 'charge',
  path: 'charge',
  since: AT,
  until: null,
  handler: 'charge_card',
  workers: { polled_lately: 0, last_polled_at: null },
};

const poll = {
  action: 'poll',
  method: 'POST',
  path: '/workers/tasks/poll',
  body: { handler_name: 'charge_card', worker_id: 'my-worker' },
  why: 'A worker takes the task by this; without one that polls for charge_card it waits for ever.',
};

const again = {
  kind: 'step',
  summary: 'Step charge runs again.',
  block_id: 'charge',
  path: 'charge',
  repeats: [],
  repeats_effects: false,
};

const approval = {
  id: EXAMPLE_IDS.approval,
  instance_id: EXAMPLE_IDS.instance,
  tenant_id: EXAMPLE_TENANT,
  namespace: 'billing',
  sequence_id: EXAMPLE_IDS.sequence,
  sequence_name: 'order',
  block_id: 'approve',
  path: 'approve',
  prompt: 'Refund 42 EUR to Ada?',
  choices: [{ label: 'Yes', value: 'yes' }],
  store_as: 'approve',
  timeout_seconds: 240,
  escalation_handler: null,
  allow_comment: true,
  waiting_since: AT,
  deadline: UNTIL,
  metadata: { order: 'A-1001' },
};
const split = {
  id: 'wording',
  variants: [
    { name: 'short', weight: 1, blocks: [thank] },
    { name: 'long', weight: 3, blocks: [archive] },
  ],
};

/** By the `$id` of the schema: what is not in `FIELDS`, or otherwise there. */
export const EXAMPLES: Readonly<Record<string, JsonValue>> = {
  StepBlock: charge,
  ParallelBlock: { type: 'parallel', id: 'both', branches: [[thank], [archive]] },
  RaceBlock: {
    type: 'race',
    id: 'faster',
    branches: [
      [{ type: 'step', id: 'wait', handler: 'sleep', params: { duration_ms: 50 } }],
      [archive],
    ],
    semantics: 'first_to_succeed',
  },
  RouterBlock: bySize,
  TryCatchBlock: { type: 'try_catch', id: 'safely', try_block: [charge], catch_block: [thank] },
  LoopBlock: { type: 'loop', id: 'again', condition: 'more', body: [archive], max_iterations: 10 },
  ForEachBlock: {
    type: 'for_each',
    id: 'each-line',
    collection: 'lines',
    item_var: 'line',
    body: [archive],
  },
  CancellationScopeBlock: { type: 'cancellation_scope', id: 'to-the-end', blocks: [charge, thank] },
  SagaStep: { id: 'paid', action: charge, compensation: thank },
  SagaBlock: {
    type: 'saga',
    id: 'order',
    steps: [{ id: 'paid', action: charge, compensation: thank }],
  },
  AbSplitBlock: { type: 'ab_split', ...split },
  Block: charge,

  ErrorBody: { error: `not found: instance ${EXAMPLE_IDS.instance}` },
  NotReady: {
    error: 'unavailable: the database takes no writes: its disk is full (53100)',
    reason: { kind: 'disk-full', sql_state: '53100' },
  },
  Info: {
    version: '0.8.0',
    storage_schema_version: 4,
    contract_schema_version: 1,
    cell: 'public',
    env_label: null,
    env_color: null,
    encryption_key: 'fits',
  },

  CreateSequence: { id: EXAMPLE_IDS.sequence },
  SequenceCreated: { id: EXAMPLE_IDS.sequence },
  SequenceDefinition: { id: EXAMPLE_IDS.sequence, deprecated: false, status: 'production' },

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
    state: 'waiting',
    priority: 'High',
    context,
    idempotency_key: 'order-A-1001',
    failure: null,
    updated_at: LATER,
  },
  Failure: failure,
  Wait: wait,
  NextAction: poll,
  ExplanationWarning: {
    block_id: 'orders',
    summary:
      'The output of block orders was too large to be kept whole: expressions that read it see a note in its place.',
  },
  RunsAgainBlock: again,
  RunsAgain: { blocks: [again], blocks_count: 1, stays: [], stays_count: 0 },
  InstanceExplanation: {
    id: EXAMPLE_IDS.instance,
    state: 'waiting',
    since: AT,
    summary: wait.summary,
    waiting_for: [wait],
    failure: null,
    next: [poll],
  },
  GateChoice: { label: 'Yes', value: 'yes' },
  Approval: approval,
  ApprovalPage: { items: [approval], total: 1 },
  AnswerApproval: { value: 'yes', comment: 'agreed by phone', answer_id: 'mail-17' },
  ApprovalAnswered: {
    id: EXAMPLE_IDS.approval,
    value: 'yes',
    comment: 'agreed by phone',
    answered_by: 'desk of Ada',
    answered_at: LATER,
    repeated: false,
  },
  MakeApprovalLink: { recipient: 'ada@example.com', expires_in_seconds: 86_400 },
  ApprovalLink: {
    url: 'https://engine.example/api/v1/approvals/by-link/WyIwMTkyIl0.c2lnbmVk',
    expires_at: UNTIL,
  },
  AnswerByLink: { value: 'yes' },
  InstanceContext: context,
  PatchState: { state: 'paused' },
  PatchContext: { context: { data: contextOfSmall.data } },
  ContextPatched: { context: contextOfSmall },
  SendSignal: { signal_type: 'update_context', payload: { approved: true } },
  StoredSignal: {
    id: EXAMPLE_IDS.signal,
    instance_id: EXAMPLE_IDS.instance,
    signal_type: 'custom:approved',
    payload: { by: 'ada' },
    created_at: AT,
    status: 'taken',
    taken_at: LATER,
    taken_by: 'wait-for-approval',
  },
  SendEvent: settled,
  SendEvents: { events: [settled] },
  EventReceipt: receipt,
  EventReceipts: { outcomes: [receipt] },
  StoredEvent: storedEvent,
  EventTaker: {
    instance_id: EXAMPLE_IDS.instance,
    block_id: 'paid',
    outcome: 'taken',
    taken_at: LATER,
  },
  EventDetails: { ...storedEvent, taken_by: [] },
  SignalAccepted: { signal_id: EXAMPLE_IDS.signal },
  InstanceRetried: { id: EXAMPLE_IDS.instance },
  BulkUpdated: { count: 3, updated: 3 },
  BulkJob: {
    id: EXAMPLE_IDS.bulkJob,
    tenant_id: EXAMPLE_TENANT,
    operation: 'state',
    request: { filter: { states: ['waiting'] }, state: 'cancelled' },
    state: 'running',
    ...{ matched: 120_500, applied: 120_497, skipped: 3, failed: 0 },
    ...{ error: null, created_at: AT, updated_at: LATER, ended_at: null },
  },
  BlockOutput: { id: EXAMPLE_IDS.output, output_size: 21, created_at: LATER },
  TreeNode: {
    id: EXAMPLE_IDS.node,
    block_type: 'step',
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
    entries: [{ block_id: 'charge', attempt: 0, completed_at: LATER, output, is_sentinel: false }],
    offset: 0,
    limit: 200,
  },

  InjectBlocks: { blocks: [archive] },
  BlocksInjected: { injected_block_ids: ['archive'], position: 0, total_injected: 1 },
  ResumeFrom: { context: { amount: 4_100 } },
  ResumedFrom: {
    id: EXAMPLE_IDS.instance,
    resumed_from: 'charge',
    outputs_deleted: 2,
    signals_enqueued: 0,
  },
  ForkInstance: { from_block_id: 'charge', dry_run: true },
  InstanceForked: {
    id: EXAMPLE_IDS.fork,
    forked_from: EXAMPLE_IDS.instance,
    copied_blocks: [],
    rerun_blocks: ['charge', 'by-size'],
    dry_run: true,
  },
  MigrateInstance: { target_sequence_id: EXAMPLE_IDS.nextSequence },
  InstanceMigrated: {
    from_sequence_id: EXAMPLE_IDS.sequence,
    to_sequence_id: EXAMPLE_IDS.nextSequence,
  },
  BulkReschedule: { filter: { namespace: 'billing' }, offset_secs: 3_600 },
  BatchAction: { action: 'retry', limit: 100 },
  BatchActionResult: { matched: 3, applied: 3, skipped: 0, dry_run: false },
  CheckpointSaved: { id: EXAMPLE_IDS.checkpoint },
  Checkpoint: { id: EXAMPLE_IDS.checkpoint, created_at: LATER },
  PruneCheckpoints: { keep: 1 },
  CheckpointsPruned: { count: 4 },
  StepLogLine: { level: 'info', message: 'card charged' },

  PollTasks: { limit: 10 },
  PollQueue: { handler_name: 'charge-card', worker_id: 'worker-1', queue_name: 'eu', wait_ms: 0 },
  WorkerTask: {
    id: EXAMPLE_IDS.task,
    params: { amount: 4_200 },
    context: { data, config: {} },
    timeout_ms: 30_000,
    state: 'claimed',
    claimed_at: AT,
    heartbeat_at: AT,
    output: null,
  },
  HeartbeatTask: { ...claim, checkpoint_seq: 0, checkpoint: { lines_done: 6 } },
  HeartbeatAccepted: { checkpoint_seq: 1 },
  CompleteTask: { ...claim, output },
  FailTask: { ...claim, message: 'the card was refused', retryable: false },
  TaskResult: completed,
  CompleteTaskResult: completed,
  FailTaskResult: {
    kind: 'fail',
    task_id: EXAMPLE_IDS.task,
    claim_epoch: 1,
    message: 'the card was refused',
    retryable: false,
  },
  HeartbeatTaskResult: { kind: 'heartbeat', task_id: EXAMPLE_IDS.task, claim_epoch: 1 },
  ExchangeTasks: {
    worker_id: 'worker-1',
    results: [completed],
    poll: { handlers: ['charge-card'], limit: 50 },
  },
  TaskOutcome: { task_id: EXAMPLE_IDS.task, status: 200 },
  WorkerAttempt: {
    id: EXAMPLE_IDS.attempt,
    task_id: EXAMPLE_IDS.task,
    worker_id: 'worker-1',
    event: 'claimed',
  },
  TaskStats: {
    by_state: byHandler,
    by_handler: { 'charge-card': byHandler },
    active_workers: ['worker-1'],
  },
  WorkerInfo: {
    handlers: ['charge-card'],
    queues: [],
    version: '2.4.1',
    alive: true,
    in_flight: 1,
  },
  HandlerNames: { builtin: ['log', 'noop'], external: ['charge-card'] },
  RateLimit: { key: 'payments' },

  ...CRON_EXAMPLES,
  ...HISTORY_EXAMPLES,
  ...RELEASE_EXAMPLES,
  ...STATISTIC_EXAMPLES,

  ...CONTINUITY_EXAMPLES,

  ...KEY_EXAMPLES,
  ...CELL_EXAMPLES,

  Changes: { changes: [audit], next_cursor: 'MTczMDUzNDQwMDAwMA' },
  WebhookBody: webhook,
  CreateCredential: { id: 'stripe', name: 'Stripe, live', value: 'sk_live_0123456789' },
  UpdateCredential: { value: 'sk_live_9876543210' },
  Credential: {
    id: 'stripe',
    name: 'Stripe, live',
    kind: 'api_key',
    description: null,
    enabled: true,
    expires_at: null,
    refresh_url: null,
    has_refresh_token: false,
  },
  CreateTrigger: {
    slug: 'orders-in',
    tenant_id: EXAMPLE_TENANT,
    namespace: 'billing',
    sequence_name: 'order',
    secret: 'a long random text',
  },
  UpdateTrigger: { enabled: true },
  Trigger: {
    slug: 'orders-in',
    tenant_id: EXAMPLE_TENANT,
    namespace: 'billing',
    sequence_name: 'order',
    version: null,
    trigger_type: 'webhook',
    secret: '[REDACTED]',
    config: {},
    enabled: true,
  },
  TriggerFired: {
    instance_id: EXAMPLE_IDS.instance,
    trigger: 'orders-in',
    sequence_name: 'order',
  },
  WebhookTaken: { instance_id: EXAMPLE_IDS.instance, trigger: 'orders-in' },
  CreateSubscription: subscription,
  UpdateSubscription: { events: ['instance.completed', 'instance.failed'] },
  WebhookSubscription: { id: EXAMPLE_IDS.subscription, ...subscription },
  SubscriptionCreated: {
    id: EXAMPLE_IDS.subscription,
    ...subscription,
    secret: SUBSCRIPTION_SECRET,
  },
  OutboxEntry: {
    id: EXAMPLE_IDS.outbox,
    instance_id: EXAMPLE_IDS.instance,
    payload: webhook,
    last_error: 'status 503',
    delivery_id: EXAMPLE_IDS.delivery,
    status: 'pending',
    next_attempt_at: LATER,
  },
  RedeliverPreview: {
    payload_bytes: 187,
    will_be_signed: true,
    previous_delivery_id: EXAMPLE_IDS.delivery,
    previous_attempts: 3,
    last_error: 'status 503',
  },
  DeliverySummary: { ...refused, attempts: 1, delivered: false },
  DeliveryAttempt: {
    ...refused,
    id: EXAMPLE_IDS.attempt,
    attempt_number: 1,
    duration_ms: 41,
    success: false,
    signed: true,
  },
};

/** Of a named schema; undefined when one of its required fields is told nowhere. */
export function exampleOf(schema: TSchema): JsonValue | undefined {
  const given = EXAMPLES[schema.$id ?? ''] ?? {};
  const required = new Set<string>(schema.required);
  if (!isJsonObject(given) || [...required].every((field) => field in given)) return given;
  const found: Record<string, JsonValue> = {};
  for (const [field, inner] of Object.entries<TSchema>(schema.properties)) {
    const value = field in given ? given[field] : fieldExample(field, inner);
    if (value !== undefined && (field in given || required.has(field))) found[field] = value;
    else if (required.has(field)) return undefined;
  }
  return found;
}

/** What the story does not tell is null, the first instant, or the plainest value of its type. */
function fieldExample(field: string, schema: TSchema): JsonValue | undefined {
  if (field in FIELDS) return FIELDS[field];
  // Of a block: what becomes a key of the outputs.
  if (schema['x-check'] === 'plain-name') return archive.id;
  if (schema.type?.includes('null')) return null;
  if (schema.format === 'date-time') return AT;
  if (schema.format === 'uuid') return EXAMPLE_IDS.instance;
  return schema.const ?? schema.enum?.[0] ?? PLAINEST[schema.type];
}

const PLAINEST: JsonObject = { string: 'text', integer: 1, number: 1, boolean: true, array: [] };
