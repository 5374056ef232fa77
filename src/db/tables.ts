/**
 * The tables of the engine as data: every column is spelled here and in the migration that makes it, nowhere else.
 * Statements, types of rows and the tables of the simulation follow from it; a test holds it against a database. Pure.
 */

import { BULK_TABLES } from './bulk-tables.js';
import { LIMIT_TABLES } from './limit-tables.js';
import { SEEN_TABLES } from './seen-tables.js';
import { type BaseType, belonging, type ColumnType, type Table, table } from './table.js';

export type { BaseType, ColumnType, Table };

export const TABLES = {
  lanes: table(['lane'], { lane: 'smallint', epoch: 'bigint' }),
  lane_flushes: table(['lane', 'batch'], { lane: 'smallint', batch: 'bigint' }),
  sequences: table(
    ['id'],
    {
      id: 'uuid',
      tenant_id: 'text',
      namespace: 'text',
      name: 'text',
      version: 'integer',
      deprecated: 'boolean',
      hold: 'boolean',
      status: 'text',
      definition: 'json',
      created_at: 'timestamptz',
    },
    { unique: { sequences_by_name: ['tenant_id', 'namespace', 'name', 'version'] } },
  ),
  sequence_tombstones: table(['id'], { id: 'uuid', created_at: 'timestamptz' }),
  instances: table(
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
      data: 'json',
      config: 'json',
      context_audit: 'json',
      runtime: 'json',
      execution: 'json',
      concurrency_key: 'text?',
      max_concurrency: 'integer?',
      idempotency_key: 'text?',
      parent_instance_id: 'uuid?',
      creation_audit: 'json?',
      signal_count: 'integer',
      audit_count: 'integer',
      created_at: 'timestamptz',
      updated_at: 'timestamptz',
      cron_schedule_id: 'uuid?',
      traceparent: 'text?',
      release_id: 'uuid?',
      release_variant: 'text?',
      creation_data: 'json?',
      continuity_id: 'uuid?',
      ownership_epoch: 'bigint?',
      fence: 'json?',
      failure: 'json?',
      timeout: 'bigint?',
    },
    { instance: 'id' },
  ),
  timers: belonging(['instance_id'], {
    instance_id: 'uuid',
    fire_at: 'timestamptz?',
    recover: 'boolean',
    rank: 'smallint',
  }),
  dead_letters: belonging(['instance_id'], {
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
  }),
  block_outputs: belonging(['instance_id', 'block_id', 'iteration', 'attempt'], {
    id: 'uuid',
    instance_id: 'uuid',
    block_id: 'text',
    iteration: 'text',
    attempt: 'integer',
    try: 'integer',
    output: 'json?',
    output_ref: 'text?',
    output_size: 'integer',
    created_at: 'timestamptz',
    effect: 'json?',
  }),
  iteration_snapshots: belonging(['instance_id', 'key'], {
    instance_id: 'uuid',
    key: 'text',
    items: 'json',
  }),
  signals: belonging(['instance_id', 'seq'], {
    id: 'uuid',
    instance_id: 'uuid',
    seq: 'integer',
    signal_type: 'text',
    payload: 'json?',
    created_at: 'timestamptz',
    traceparent: 'text?',
    status: 'text?',
    taken_at: 'timestamptz?',
    taken_by: 'text?',
    sent_by: 'text?',
  }),
  audit_log: belonging(['instance_id', 'seq'], {
    instance_id: 'uuid',
    seq: 'integer',
    tenant_id: 'text',
    entries: 'json',
    created_at: 'timestamptz',
  }),
  approvals: belonging(['id'], {
    id: 'uuid',
    instance_id: 'uuid',
    tenant_id: 'text',
    namespace: 'text',
    sequence_id: 'uuid',
    block_id: 'text',
    path: 'text',
    iteration: 'text',
    prompt: 'text',
    gate: 'json',
    waiting_since: 'timestamptz',
    deadline: 'timestamptz?',
    outcome: 'text?',
    closed_at: 'timestamptz?',
    answer: 'json?',
  }),
  worker_tasks: belonging(['id'], {
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
  }),
  open_tasks: belonging(['task_id'], {
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
  }),
  kin_notes: table(
    ['to_id', 'from_id'],
    { to_id: 'uuid', from_id: 'uuid', id: 'uuid', word: 'text' },
    { instance: 'to_id' },
  ),
  ...LIMIT_TABLES,
  events: table(['id'], {
    id: 'uuid',
    key_id: 'uuid',
    seq: 'bigint',
    tenant_id: 'text',
    event_name: 'text',
    producer_event_id: 'text',
    correlation_key: 'text?',
    payload: 'json?',
    status: 'text',
    matched: 'integer',
    targets: 'json?',
    created_at: 'timestamptz',
    expires_at: 'timestamptz',
    ended_at: 'timestamptz?',
    fires: 'json?',
  }),
  event_waits: belonging(['instance_id', 'id'], {
    instance_id: 'uuid',
    id: 'uuid',
    key_id: 'uuid',
  }),
  event_takes: belonging(['instance_id', 'event_id', 'wait_id'], {
    instance_id: 'uuid',
    event_id: 'uuid',
    wait_id: 'uuid',
    block_id: 'text',
    outcome: 'text',
    taken_at: 'timestamptz',
  }),
  injected_blocks: belonging(['instance_id'], { instance_id: 'uuid', blocks: 'json' }),
  checkpoints: belonging(['instance_id', 'id'], {
    id: 'uuid',
    instance_id: 'uuid',
    checkpoint_data: 'json?',
    created_at: 'timestamptz',
  }),
  step_logs: belonging(['instance_id', 'id'], {
    id: 'uuid',
    instance_id: 'uuid',
    entries: 'json',
    created_at: 'timestamptz',
  }),
  cron_schedules: table(['id'], {
    id: 'uuid',
    tenant_id: 'text',
    namespace: 'text',
    sequence_id: 'uuid?',
    sequence: 'text?',
    version: 'integer?',
    cron_expr: 'text',
    timezone: 'text',
    enabled: 'boolean',
    metadata: 'json',
    context: 'json',
    priority: 'text',
    timeout: 'bigint?',
    overlap_policy: 'text',
    skipped_fires: 'integer',
    last_skipped_at: 'timestamptz?',
    last_triggered_at: 'timestamptz?',
    next_fire_at: 'timestamptz?',
    last_error: 'text?',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  }),
  api_keys: table(
    ['id'],
    {
      id: 'text',
      tenant_id: 'text',
      name: 'text',
      capabilities: 'json',
      secret_hash: 'text',
      created_at: 'timestamptz',
      last_used_at: 'timestamptz?',
      expires_at: 'timestamptz?',
      revoked: 'boolean',
    },
    { unique: { api_keys_by_secret: ['secret_hash'] } },
  ),
  tenant_limits: table(['tenant_id'], { tenant_id: 'text', limits: 'json', set_at: 'timestamptz' }),
  ...SEEN_TABLES,
  ...BULK_TABLES,
  credentials: table(['tenant_id', 'id'], {
    tenant_id: 'text',
    id: 'text',
    name: 'text',
    kind: 'text',
    description: 'text?',
    value: 'json',
    refresh_url: 'text?',
    refresh_token: 'json?',
    enabled: 'boolean',
    expires_at: 'timestamptz?',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  }),
  triggers: table(['slug'], {
    slug: 'text',
    tenant_id: 'text',
    namespace: 'text',
    sequence_name: 'text',
    version: 'integer?',
    trigger_type: 'text',
    secret: 'json?',
    config: 'json',
    event_name: 'text?',
    enabled: 'boolean',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  }),
  webhook_outbox: table(['id'], {
    id: 'uuid',
    url: 'text',
    event_type: 'text',
    instance_id: 'uuid',
    tenant_id: 'text',
    body: 'text',
    attempts: 'integer',
    last_error: 'text?',
    delivery_id: 'uuid?',
    status: 'text',
    next_attempt_at: 'timestamptz?',
    claimed_at: 'timestamptz?',
    created_at: 'timestamptz',
    subscription_id: 'uuid?',
  }),
  webhook_subscriptions: table(['id'], {
    id: 'uuid',
    tenant_id: 'text',
    url: 'text',
    events: 'json',
    secret: 'json',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  }),
  webhook_deliveries: table(['id'], {
    id: 'uuid',
    delivery_id: 'uuid',
    url: 'text',
    event_type: 'text',
    instance_id: 'uuid',
    attempt_number: 'integer',
    attempted_at: 'timestamptz',
    duration_ms: 'integer',
    success: 'boolean',
    status_code: 'integer?',
    error_class: 'text?',
    error_excerpt: 'text?',
    signed: 'boolean',
    subscription_id: 'uuid?',
  }),
  change_mark: table(['id'], {
    id: 'smallint',
    stamps_from: 'timestamptz',
  }),
  releases: table(['id'], {
    id: 'uuid',
    tenant_id: 'text',
    namespace: 'text',
    sequence_name: 'text',
    baseline_sequence_id: 'uuid',
    baseline_version: 'integer',
    candidate_sequence_id: 'uuid',
    candidate_version: 'integer',
    state: 'text',
    canary_percent: 'smallint',
    gates: 'json',
    in_flight_policy: 'text',
    validation_summary: 'json?',
    canary_started_at: 'timestamptz?',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  }),
  release_decisions: table(['id'], {
    id: 'uuid',
    release_id: 'uuid',
    from_state: 'text',
    to_state: 'text',
    actor: 'text',
    reason: 'text',
    decided_at: 'timestamptz',
  }),
  release_outcomes: belonging(['instance_id'], {
    instance_id: 'uuid',
    release_id: 'uuid',
    sequence_id: 'uuid',
    state: 'text',
    created_at: 'timestamptz',
  }),
  effect_receipts: belonging(['id'], {
    id: 'uuid',
    instance_id: 'uuid',
    continuity_id: 'uuid',
    tenant_id: 'text',
    epoch: 'bigint',
    block_id: 'text',
    attempt: 'integer',
    kind: 'text',
    state: 'text',
    destination_fingerprint: 'text',
    idempotency_key: 'text?',
    request_sha256: 'text',
    provider_receipt_id: 'text?',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
    iteration: 'text?',
  }),
  effect_resolutions: belonging(['id'], {
    id: 'uuid',
    instance_id: 'uuid',
    state: 'text',
    provider_receipt_id: 'text?',
    updated_at: 'timestamptz',
  }),
  continuity_executions: table(
    ['continuity_id'],
    {
      continuity_id: 'uuid',
      tenant_id: 'text',
      current_instance_id: 'uuid',
      owner_runtime_id: 'uuid',
      epoch: 'bigint',
      state: 'text',
      version: 'bigint',
      updated_at: 'timestamptz',
      ended: 'text?',
    },
    { unique: { continuity_executions_by_instance: ['tenant_id', 'current_instance_id'] } },
  ),
  continuity_locations: table(['continuity_id', 'epoch'], {
    continuity_id: 'uuid',
    tenant_id: 'text',
    epoch: 'bigint',
    runtime_id: 'uuid',
    instance_id: 'uuid',
    handoff_id: 'uuid?',
    entered_at: 'timestamptz',
  }),
  provenance_entries: table(['continuity_id', 'seq'], {
    continuity_id: 'uuid',
    seq: 'integer',
    id: 'uuid',
    tenant_id: 'text',
    epoch: 'bigint',
    kind: 'text',
    redacted_summary: 'text?',
    payload_sha256: 'text',
    previous_sha256: 'text?',
    entry_sha256: 'text',
    signing_key_id: 'text?',
    signature: 'text?',
    created_at: 'timestamptz',
  }),
  runtimes: table(['tenant_id', 'runtime_id'], {
    tenant_id: 'text',
    runtime_id: 'uuid',
    capabilities: 'json',
    observed_at: 'timestamptz',
    expires_at: 'timestamptz',
  }),
  placement_decisions: table(['id'], {
    id: 'uuid',
    continuity_id: 'uuid',
    tenant_id: 'text',
    record: 'json',
    created_at: 'timestamptz',
  }),
  handoffs: table(['id'], {
    id: 'uuid',
    continuity_id: 'uuid',
    tenant_id: 'text',
    source_runtime_id: 'uuid',
    destination_runtime_id: 'uuid',
    expected_epoch: 'bigint',
    state: 'text',
    capsule_id: 'uuid?',
    capsule_expires_at: 'timestamptz?',
    placement_decision_id: 'uuid',
    preview_sha256: 'text',
    version: 'integer',
    failure_code: 'text?',
    terms: 'json',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
  }),
  artifacts: belonging(['key'], {
    key: 'text',
    instance_id: 'uuid',
    tenant_id: 'text',
    content_type: 'text',
    content: 'bytea',
    sha256: 'text',
    created_at: 'timestamptz',
  }),
  capsule_imports: table(['tenant_id', 'capsule_id', 'destination_runtime_id'], {
    tenant_id: 'text',
    capsule_id: 'uuid',
    destination_runtime_id: 'uuid',
    instance_id: 'uuid',
    continuity_id: 'uuid',
    source_epoch: 'bigint',
    created_at: 'timestamptz',
  }),
  migrations: table(
    ['id'],
    {
      id: 'uuid',
      continuity_id: 'uuid',
      tenant_id: 'text',
      state: 'text',
      record: 'json',
      secrets: 'json',
      created_at: 'timestamptz',
      updated_at: 'timestamptz',
    },
    { instance: 'continuity_id' },
  ),
} as const satisfies Readonly<Record<string, Table>>;

export type TableName = keyof typeof TABLES;
export type ColumnOf<T extends TableName> = keyof (typeof TABLES)[T]['columns'] & string;
type TypeOf<T extends TableName, C extends ColumnOf<T>> = (typeof TABLES)[T]['columns'][C] &
  ColumnType;

type Value<Type extends ColumnType, Json> = Type extends `${infer Base}?`
  ? Value<Base & BaseType, Json> | null
  : Type extends 'json'
    ? Json
    : Type extends 'boolean'
      ? boolean
      : Type extends 'smallint' | 'integer' | 'bigint'
        ? number
        : string;

/** A row as it is read: JSON as its text, times as RFC 3339, bytes in base64. */
export type StoredRow<T extends TableName, C extends ColumnOf<T> = ColumnOf<T>> = {
  readonly [K in C]: Value<TypeOf<T, K>, string>;
};

type Nullable<T extends TableName, C extends ColumnOf<T>> = {
  [K in C]: null extends Value<TypeOf<T, K>, string> ? K : never;
}[C];

/** A row as it is written: JSON as any value that has a text; a column that may be null may be left out. */
export type WrittenRow<T extends TableName, C extends ColumnOf<T> = ColumnOf<T>> = {
  readonly [K in Exclude<C, Nullable<T, C>>]: Value<TypeOf<T, K>, unknown>;
} & { readonly [K in Nullable<T, C>]?: Value<TypeOf<T, K>, unknown> | undefined };

/** All columns of a table but these, in their order. */
export function columnsBut<T extends TableName, const B extends ColumnOf<T>>(
  name: T,
  ...but: readonly B[]
): Exclude<ColumnOf<T>, B>[] {
  const columns = Object.keys(TABLES[name].columns) as ColumnOf<T>[];
  return columns.filter(
    (column): column is Exclude<ColumnOf<T>, B> => !(but as readonly string[]).includes(column),
  );
}

/** These columns of a table. */
export function columnsOf<T extends TableName, const C extends ColumnOf<T>>(
  _name: T,
  ...columns: readonly C[]
): readonly C[] {
  return columns;
}

/** Columns as a SELECT names them. */
export function selected(columns: readonly string[], alias?: string): string {
  return columns.map((column) => (alias === undefined ? column : `${alias}.${column}`)).join(', ');
}

/** The type of a column without its question mark, and whether it has one. */
export function columnType(
  name: TableName,
  column: string,
): { base: BaseType; isNullable: boolean } {
  const type = (TABLES[name].columns as Readonly<Record<string, ColumnType>>)[column]!;
  const isNullable = type.endsWith('?');
  return { base: (isNullable ? type.slice(0, -1) : type) as BaseType, isNullable };
}
