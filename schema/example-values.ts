/**
 * The values of the examples in the OpenAPI document that schemas do not imply. They tell one story of the tenant
 * `acme`, which bills its orders: ids agree, and the server accepts the requests in the order of the story.
 */

import { createHash } from 'node:crypto';
import type { JsonObject, JsonValue } from '../src/base/json.js';
import { words } from './states.js';

const IDS = words(
  'sequence nextSequence instance fork arrived task attempt job signal event wait checkpoint',
  'approval schedule subscription outbox delivery decision release runtime laptop migration',
  'placement handoff capsule',
);

/** The id of an object in the story; the same name gives the same id. */
export function exampleId(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex');
  return `0192f0c2-${hex.slice(0, 4)}-7${hex.slice(4, 7)}-8${hex.slice(7, 10)}-${hex.slice(10, 22)}`;
}

export const EXAMPLE_IDS = Object.fromEntries(
  IDS.map((name) => [name, exampleId(name)]),
) as Readonly<Record<(typeof IDS)[number], string>>;

export const EXAMPLE_TENANT = 'acme';
export const AT = '2026-11-02T08:00:00.000Z';
export const UNTIL = '2026-11-02T08:04:00.000Z';

const { sequence, nextSequence, instance, arrived, laptop } = EXAMPLE_IDS;
export const EXAMPLE_DIGEST = `a${'0123456789abcdef'.repeat(4).slice(1)}`;
const KEY_ID = 'ak_6f1d2c3b4a5968778695a4b3c2d1e0ff';
/** Stand for 32, 48 and 64 bytes. */
const BYTES_32 = `${'ZXhh'.repeat(10)}ZXg=`;
const BYTES_48 = 'ZXhh'.repeat(16);
const BYTES_64 = `${'ZXhh'.repeat(21)}ZQ==`;
const HEX_64 = '0123456789abcdef'.repeat(4);

const charge = {
  type: 'step',
  id: 'charge',
  handler: 'charge-card',
  params: { amount: '{{ context.data.amount }}' },
  timeout: 30_000,
  retry: { max_attempts: 3, initial_backoff: 500, max_backoff: 10_000, backoff_multiplier: 2 },
};
const thank = { type: 'step', id: 'thank', handler: 'log', params: { message: 'thank you' } };
const archive = { type: 'step', id: 'archive', handler: 'noop' };
const bySize = {
  type: 'router',
  id: 'by-size',
  routes: [{ condition: 'size == large', blocks: [thank] }],
  default: [{ type: 'step', id: 'nothing-more', handler: 'noop' }],
};
const split = [
  { name: 'short', weight: 1, blocks: [thank] },
  { name: 'long', weight: 3, blocks: [archive] },
];

const data = { amount: 4_200, size: 'large' };
const metadata = { order: 'A-1001' };
const creation = { sequence_id: sequence, tenant_id: EXAMPLE_TENANT, namespace: 'billing' };
const versions = { baseline_sequence_id: sequence, candidate_sequence_id: nextSequence };
const gate = { metric: 'error_rate', max_regression: 0.02, min_sample: 100 };
const settled = {
  event_name: 'payment.settled',
  producer_event_id: 'settlement-4711',
  correlation_key: 'A-1001',
  payload: { amount: 4_200 },
};
const claim = { worker_id: 'worker-1', claim_epoch: 1 };
const refused = { ...claim, message: 'the card was refused', retryable: false };
const output = { charge_id: 'ch_77' };
const result = { kind: 'complete', task_id: EXAMPLE_IDS.task, claim_epoch: 1, output };
const daily = { cron_expr: '0 30 8 * * MON-FRI *', timezone: 'Europe/Berlin' };
const endpoint = { handlers: ['charge'], url: 'https://shop.example/api/tasks' };
const subscription = { url: 'https://hooks.example/engine', events: ['instance.failed'] };
const workerKey = { name: 'billing workers', capabilities: ['worker'] };

const checkpoint_data = { safe_boundary: 'charge', completed_blocks: [], context_snapshot: data };
const transform = {
  version: 1,
  transform: 'copy',
  from_path: 'context_snapshot.size',
  to_path: 'context_snapshot.order.size',
};
const capabilities = {
  runtime_id: laptop,
  kind: 'desktop',
  trust: 'registered',
  handlers: ['charge-card'],
  observed_at: AT,
  expires_at: UNTIL,
};
const requirements = { handlers: ['charge-card'], minimum_trust: 'registered' };
const locality_policy = {
  version: 1,
  rules: [{ classification: 'confidential', allowed_runtime_ids: [laptop] }],
};
const terms = { requirements, locality_policy, data_classification: 'confidential' };
const transfer = { payload_base64: BYTES_48, payload_key_base64: BYTES_32 };

/** Of members and parameters, by name, where the schema admits the value. */
export const FIELDS: JsonObject = {
  ...creation,
  ...versions,
  ...{ data, metadata, output, params: data, blocks: [charge, bySize], capabilities: ['worker'] },
  ...{ data_classification: 'confidential', filter: { namespace: 'billing', states: ['failed'] } },

  // Names and places in the story.
  ...{ actor: 'operator', block_id: 'charge', block_type: 'step', blocks_added: ['archive'] },
  ...{ handler: 'charge-card', handler_name: 'charge-card', queue_name: 'eu', name: 'order' },
  ...{ resumed_from: 'charge', sequence_name: 'order', slug: 'orders-in', trigger: 'orders-in' },
  ...{ key: 'payments', store_as: 'approve', variant: 'candidate', worker_id: 'worker-1' },
  ...{ path: 'orders[2]/charge', file: 'swagger-ui.css', url: subscription.url },

  // Ids, addresses and versions.
  ...{ capsule_id: EXAMPLE_IDS.capsule, continuity_id: instance, version: 1 },
  ...{ destination_instance_id: arrived, destination_runtime_id: laptop },
  ...{ placement_decision_id: EXAMPLE_IDS.placement, selected_runtime_id: laptop },
  ...{ to_sequence_id: nextSequence, to_version: 2, candidate_version: 2 },
  ...{ address: '10.0.0.1:8080', addresses: ['10.0.0.1:8080'], own: 'east', cluster: true },
  ...{ database_url: 'postgresql://engine@db:5432/app', from_cell: 'east', to_cell: 'west' },

  // Events, signals and webhooks.
  ...{ correlation_key: 'A-1001', event_name: 'payment.settled', payload: settled.payload },
  ...{ event_type: 'instance.failed', producer_event_id: 'settlement-4711' },
  ...{ signal_type: 'custom:approved', secret: 'a long random text' },
  ...{ payload_base64: BYTES_48, public_key: BYTES_32, signature: BYTES_64 },
  ...{ statement: '{"kind":"ownership_granted"}', token: 'WyIwMTkyIl0.c2lnbmVk' },

  // Times and numbers.
  ...{ ...daily, expires_at: UNTIL, until: UNTIL, local: '2026-11-02T09:00:00.000+01:00' },
  ...{ attempt: 0, failed: 0, limit: 100, max_count: 100, share: 0.1, window_seconds: 60 },
  ...{
    alive: true,
    complete: true,
    enabled: true,
    valid: true,
    checkpoint_data: { lines_done: 12 },
  },

  // Texts.
  ...{ comment: 'agreed by phone', error: 'the card was refused', message: 'the card was refused' },
  ...{ iteration: '', label: 'Yes', level: 'info', method: 'POST', value: 'yes' },
  ...{ prompt: 'Refund 42 EUR to Ada?', reason: 'canary at 20%' },
  summary: 'Step charge waits for a worker: no worker polls for the handler charge-card.',
};

/** The kind or the value of the parameter `id` in paths of a resource with another name than its objects. */
export const PATH_IDS: Readonly<Record<string, string>> = {
  workers: 'task',
  cron: 'schedule',
  'pending-starts': 'instance',
  webhooks: 'subscription',
  executions: 'instance',
  effects: 'task',
  'api-keys': KEY_ID,
  credentials: 'stripe',
  tenants: EXAMPLE_TENANT,
};

/** By `$id` of the schema: the members that are not derived, and optional ones that the example shows. */
export const EXAMPLES: Readonly<Record<string, JsonValue>> = {
  StepBlock: charge,
  ParallelBlock: { id: 'both', branches: [[thank], [archive]] },
  RaceBlock: { id: 'faster', branches: [[thank], [archive]], semantics: 'first_to_succeed' },
  RouterBlock: bySize,
  TryCatchBlock: { id: 'safely', try_block: [charge], catch_block: [thank] },
  LoopBlock: { id: 'again', condition: 'more', body: [archive], max_iterations: 10 },
  ForEachBlock: { id: 'each-line', collection: 'lines', item_var: 'line', body: [archive] },
  CancellationScopeBlock: { id: 'to-the-end', blocks: [charge, thank] },
  SagaStep: { id: 'paid', action: charge, compensation: thank },
  SagaBlock: { id: 'order', steps: [{ id: 'paid', action: charge, compensation: thank }] },
  AbSplitBlock: { id: 'wording', variants: split },
  SplitVariant: split[0]!,
  Block: charge,
  CreateSequence: { id: sequence },
  PatchState: { state: 'paused' },
  CreateInstance: {
    ...creation,
    ...{ priority: 'high', timezone: daily.timezone, metadata, context: { data } },
    idempotency_key: 'order-A-1001',
  },
  CreateBatch: { instances: [creation, { ...creation, priority: 'low' }] },
  RetryInstance: { context: { amount: 4_100 }, context_mode: 'merge' },
  ResumeFrom: { context: { amount: 4_100 } },
  ForkInstance: { from_block_id: 'charge', dry_run: true },
  PatchContext: { context: { data: { size: 'small' } } },
  SendSignal: { signal_type: 'update_context', payload: { approved: true } },
  SendEvent: settled,
  InjectBlocks: { blocks: [archive] },
  MigrateInstance: { target_sequence_id: nextSequence },
  BulkReschedule: { filter: { namespace: 'billing' }, offset_secs: 3_600 },
  BatchAction: { limit: 100 },
  PruneCheckpoints: { keep: 1 },
  AnswerApproval: { comment: 'agreed by phone', answer_id: 'mail-17' },
  AnswerByLink: { value: 'yes' },
  MakeApprovalLink: { recipient: 'ada@example.com', expires_in_seconds: 86_400 },
  ApprovalLink: { url: 'https://engine.example/api/v1/approvals/by-link/WyIwMTkyIl0.c2lnbmVk' },
  BulkJob: { request: { filter: { states: ['waiting'] }, state: 'cancelled' }, error: null },
  Info: { version: '0.9.0', cell: 'public' },
  NotReady: { reason: { kind: 'disk-full', sql_state: '53100' } },
  TaskInstance: { state: 'waiting', idempotency_key: 'order-A-1001' },
  InstanceForked: { id: EXAMPLE_IDS.fork, rerun_blocks: ['charge', 'by-size'] },
  AuditEntry: { event_type: 'state_changed', from_state: 'scheduled', to_state: 'running' },
  StepAttempt: { params: data, output },
  Wait: { handler: 'charge-card', workers: { polled_lately: 0, last_polled_at: null } },
  NextAction: { path: '/workers/tasks/poll', why: 'A worker takes the task.' },
  EventReceipt: { matched_wait: EXAMPLE_IDS.wait },
  EventDetails: { taken_by: [] },
  PollTasks: { limit: 10 },
  PollQueue: { wait_ms: 0 },
  HeartbeatTask: { ...claim, checkpoint_seq: 0, checkpoint: { lines_done: 6 } },
  CompleteTask: { ...claim, output },
  FailTask: refused,
  TaskResult: result,
  CompleteTaskResult: result,
  ExchangeTasks: {
    worker_id: 'worker-1',
    results: [result],
    poll: { handlers: ['charge-card'], limit: 50 },
  },
  WorkerTask: { state: 'claimed', claimed_at: AT, heartbeat_at: AT, output: null },
  WorkerInfo: { version: '2.4.1' },
  TaskOutcome: { status: 200 },
  TasksExchanged: { outcomes: [], tasks: [] },
  TaskStats: {
    by_handler: { 'charge-card': { pending: 4, claimed: 1 } },
    by_state: { pending: 4 },
  },
  CreateSchedule: { ...creation, ...daily, metadata, enabled: true, overlap_policy: 'skip' },
  UpdateSchedule: { cron_expr: '0 0 9 * * MON-FRI *', enabled: false },
  PreviewSchedule: { ...daily, count: 1 },
  RunSchedule: { idempotency_key: 'monday' },
  MintKey: workerKey,
  KeyMinted: { id: KEY_ID, ...workerKey, secret: `sk_${HEX_64}` },
  ApiKey: { id: KEY_ID, ...workerKey },
  PutTenantLimits: { rows_per_second: 200, queue_depth_max: 10_000 },
  CreateCredential: { id: 'stripe', name: 'Stripe, live', value: 'sk_live_0123456789' },
  UpdateCredential: { value: 'sk_live_9876543210' },
  Credential: { id: 'stripe', name: 'Stripe, live' },
  CreateTrigger: { sequence_name: 'order', namespace: 'billing', secret: 'a long random text' },
  EndpointState: 'idle',
  PutWorkerEndpoint: { ...endpoint, secret: 'a long random text' },
  WorkerEndpoint: endpoint,
  UpdateTrigger: { enabled: true },
  CreateSubscription: subscription,
  UpdateSubscription: { events: ['instance.completed', 'instance.failed'] },
  WebhookSubscription: subscription,
  SubscriptionCreated: { ...subscription, secret: `whsec_${HEX_64}` },
  WebhookBody: { ...creation, sequence_name: 'order', metadata, data: { error: refused.message } },
  CellEngine: { version: '1.0.0' },
  Cell: { name: 'east' },
  TenantMove: { state: 'done', rows: null, error: null, ended_at: UNTIL },
  CreateRelease: { tenant_id: EXAMPLE_TENANT, ...versions, gates: [gate], in_flight_policy: 'pin' },
  Gate: gate,
  ValidateRelease: { sample: 20 },
  StartCanary: { percent: 20 },
  PromoteRelease: { force: false },
  TenantBody: { tenant_id: EXAMPLE_TENANT },
  ResolveEffect: { state: 'verified', provider_receipt_id: 'ch_77' },
  ProvenanceEntry: { kind: 'execution_created' },
  MigrateTo: { version: 2 },
  MigrateInstances: { version: 2, filter: { states: ['waiting'] }, dry_run: true },
  Transform: transform,
  PlanMigration: { transforms: [transform], capture_checkpoint: true },
  ApplyMigration: { approved: true },
  CheckpointBoundaryDetail: { checkpoint_data },
  RegisterRuntime: { capabilities },
  RuntimeCapabilities: capabilities,
  Requirements: requirements,
  LocalityPolicy: locality_policy,
  PlaceExecution: terms,
  PreviewHandoff: terms,
  CreateHandoff: terms,
  ExportHandoff: {
    ...{ requirements, expires_in_seconds: 300, payload_key_base64: BYTES_32 },
    capture_checkpoint: true,
  },
  PayloadArtifact: { key: `capsules/${EXAMPLE_IDS.capsule}` },
  ImportCapsule: transfer,
  AttachCapsule: transfer,
};
