/**
 * What an actor may change, as data: one row per kind of mutation, with its table, its columns, and how
 * several of one kind are put together. The types of rows, the statements (`statements.ts`) and what the
 * simulation does with a mutation follow from this table. Pure.
 */

import {
  type BaseType,
  type ColumnOf,
  columnsBut,
  columnsOf,
  columnType,
  TABLES,
  type TableName,
  type WrittenRow,
} from './tables.js';

type Literal = number | string;
type Literals<C extends string = string> = { readonly [K in C]: Literal };

interface Rule {
  /** `insert`: once per key. `latest`: the last one of its group and key wins. `barrier`: alone. */
  readonly merge: 'insert' | 'latest' | 'barrier';
  /** Kinds of one group write the same row, such as setting and clearing a timer. */
  readonly group: string;
  /** It writes some of the columns of this kind, whose row it does not replace but is laid over. */
  readonly narrows?: string;
}

/** What is told of a row whose key is there already: an error, nothing, or these columns are replaced. */
type OnConflict = 'error' | 'nothing' | readonly string[];

export interface Insert<
  T extends TableName = TableName,
  C extends string = string,
  D extends string = string,
> extends Rule {
  readonly does: 'insert';
  readonly table: T;
  /** Those of the row. */
  readonly columns: readonly C[];
  /** What is stored where the row has null. */
  readonly defaults: Literals<D>;
  readonly onConflict: OnConflict;
}

export interface Update<T extends TableName = TableName, C extends string = string> extends Rule {
  readonly does: 'update';
  readonly table: T;
  /** The key, and the columns that change. */
  readonly columns: readonly C[];
  /** Column → the column whose value it keeps from before that one's first change. */
  readonly keeps: Readonly<Record<string, string>>;
}

export interface Delete<T extends TableName = TableName, C extends string = string> extends Rule {
  readonly does: 'delete';
  readonly table: T;
  /** Those that name the rows. */
  readonly columns: readonly C[];
  /** Only rows with these values. */
  readonly where: Literals;
}

/** A statement of its own: its text is in `statements.ts`. */
export interface Special<F extends Fields = Fields> extends Rule {
  readonly does: 'special';
  readonly fields: F;
}
type Fields = Readonly<Record<string, BaseType>>;

export type Mutation = Insert | Update | Delete | Special;

interface InsertOptions<T extends TableName, W extends string, D extends string> {
  /** Columns that it leaves at null. */
  readonly without?: readonly (W & ColumnOf<T>)[];
  readonly defaults?: Literals<D & ColumnOf<T>>;
}

function insert<
  T extends TableName,
  const W extends ColumnOf<T> = never,
  const D extends ColumnOf<T> = never,
>(
  table: T,
  options: InsertOptions<T, W, D> = {},
  onConflict: OnConflict = 'error',
): Insert<T, Exclude<ColumnOf<T>, W>, D> {
  return {
    does: 'insert',
    table,
    columns: columnsBut(table, ...(options.without ?? [])),
    defaults: (options.defaults ?? {}) as Literals<D>,
    onConflict,
    merge: onConflict === 'error' || onConflict === 'nothing' ? 'insert' : 'latest',
    group: table,
  };
}

/** Inserts the row, or replaces these columns of it. */
function set<T extends TableName, const D extends ColumnOf<T> = never>(
  table: T,
  changing: readonly ColumnOf<T>[],
  options: InsertOptions<T, never, D> = {},
): Insert<T, ColumnOf<T>, D> {
  return insert(table, options, changing);
}

interface UpdateOptions<T extends TableName, C extends ColumnOf<T>> {
  readonly keeps?: { readonly [K in ColumnOf<T>]?: C };
}

function update<T extends TableName, const C extends ColumnOf<T>>(
  table: T,
  changing: readonly C[],
  { keeps = {} }: UpdateOptions<T, C> = {},
) {
  const columns = [...TABLES[table].key, ...changing];
  // Two kinds that change other columns of one row do not replace each other.
  return {
    does: 'update',
    table,
    columns,
    keeps,
    merge: 'latest',
    group: `${table}.${changing[0]}`,
  } as Update<T, C | KeyOf<T>>;
}

type KeyOf<T extends TableName> = (typeof TABLES)[T]['key'][number] & ColumnOf<T>;

/** Deletes the row with this key. */
function clear<T extends TableName>(table: T): Delete<T, KeyOf<T>> {
  const columns = TABLES[table].key as readonly string[] as readonly KeyOf<T>[];
  return { does: 'delete', table, columns, where: {}, merge: 'latest', group: table };
}

function special<const F extends Fields>(
  merge: Rule['merge'],
  group: string,
  fields: F,
): Special<F> {
  return { does: 'special', fields, merge, group };
}

/** What almost every unit of an instance changes. */
const PROGRESS = columnsOf(
  'instances',
  'state',
  'next_fire_at',
  'runtime',
  'execution',
  'signal_count',
  'audit_count',
  'updated_at',
);

const CLAIM = columnsOf(
  'open_tasks',
  'worker_id',
  'claim_epoch',
  'lost_claims',
  'claimed_at',
  'heartbeat_at',
  'checkpoint_seq',
);

/**
 * Every kind of mutation, in the order in which a batch runs its statements. That order makes one
 * statement per kind equal to the units one after the other, because:
 * - a row is inserted before it is updated, and deleted after it was inserted;
 * - of several snapshots of one row the last one wins (`latest`);
 * - kinds for which neither holds are barriers: their unit is a batch of its own.
 */
export const MUTATIONS = {
  'sequence.insert': insert('sequences', {
    defaults: { deprecated: 'false', hold: 'false', status: "'production'" },
  }),
  'sequence.update': update('sequences', ['deprecated']),
  'sequence.hold': update('sequences', ['hold']),
  // With its schedules; its instances follow, as long as its tombstone is there.
  'sequence.delete': special('barrier', 'sequences', { id: 'uuid' }),
  'tombstone.clear': clear('sequence_tombstones'),
  'tombstone.set': set('sequence_tombstones', ['created_at']),
  'instance.insert': insert('instances', {
    without: ['creation_data', 'continuity_id', 'ownership_epoch', 'fence'],
  }),
  // Made by its parent, whose unit may have a gate of its own.
  'instance.insertChild': insert(
    'instances',
    { without: ['creation_data', 'continuity_id', 'ownership_epoch', 'fence'] },
    'nothing',
  ),
  'instance.update': { ...update('instances', PROGRESS), narrows: 'instance.change' },
  // Contexts are large: they are written when they change. What was there at creation is kept for replays.
  'instance.change': update('instances', [...PROGRESS, 'data'], {
    keeps: { creation_data: 'data' },
  }),
  'instance.config': update('instances', ['config', 'context_audit']),
  'instance.rebind': update('instances', ['sequence_id']),
  'instance.trace': update('instances', ['traceparent']),
  'instance.ownership': update('instances', ['continuity_id', 'ownership_epoch', 'fence']),
  // When it fails, and when a retry takes that back.
  'instance.failure': update('instances', ['failure']),
  'instance.delete': special('barrier', 'instances', { id: 'uuid' }),
  'injection.set': set('injected_blocks', ['blocks']),
  'output.dropErrors': {
    ...clear('block_outputs'),
    columns: ['instance_id'],
    where: { output_ref: "'__error__'" },
    merge: 'barrier',
  } as Delete<'block_outputs', 'instance_id'>,
  'output.dropBlocks': special('barrier', 'block_outputs', {
    instance_id: 'uuid',
    block_ids: 'json',
  }),
  'output.insert': insert('block_outputs'),
  'snapshot.clear': clear('iteration_snapshots'),
  'snapshot.set': set('iteration_snapshots', ['items']),
  'signal.insert': insert('signals'),
  // A kept one is taken.
  'signal.update': update('signals', ['status', 'taken_at', 'taken_by']),
  'approval.insert': insert('approvals'),
  // When its time is moved, or the instance goes over to another version.
  'approval.update': update('approvals', ['sequence_id', 'path', 'prompt', 'gate', 'deadline']),
  'approval.close': update('approvals', ['outcome', 'closed_at', 'answer']),
  'audit.insert': insert('audit_log'),
  'stepLog.insert': insert('step_logs'),
  'checkpoint.insert': insert('checkpoints'),
  // All but the newest ones; `keep` is how many stay.
  'checkpoint.prune': special('barrier', 'checkpoints', { instance_id: 'uuid', keep: 'integer' }),
  'task.insert': insert('worker_tasks'),
  'task.checkpoint': update('worker_tasks', ['resume_checkpoint']),
  'openTask.insert': insert('open_tasks', { without: [...CLAIM, 'history'] }),
  // A claim, its end, and each heartbeat.
  'openTask.claim': update('open_tasks', CLAIM),
  // Only when there is more to tell than the claim.
  'openTask.history': update('open_tasks', ['history']),
  // Its place while its instance is paused, and after that.
  'openTask.rank': update('open_tasks', ['rank']),
  // It is open no more, and its row says how it ended.
  'task.end': special('latest', 'worker_tasks.state', {
    id: 'uuid',
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
  }),
  // What is still done with one that has ended.
  'task.note': update('worker_tasks', ['checkpoint_seq', 'history']),
  'timer.clear': clear('timers'),
  'timer.set': set('timers', ['fire_at', 'recover', 'rank'], { defaults: { rank: 2 } }),
  'deadLetter.clear': clear('dead_letters'),
  'deadLetter.set': set('dead_letters', columnsBut('dead_letters', 'instance_id')),
  'deadLetter.rebind': update('dead_letters', ['sequence_id']),
  'kinNote.set': set('kin_notes', ['id', 'word']),
  // The one that was read, by an id that no other ever has: one that has come in its place stays.
  'kinNote.clear': {
    ...clear('kin_notes'),
    columns: ['to_id', 'from_id', 'id'],
    group: 'kin_notes.id',
  } as Delete<'kin_notes', 'to_id' | 'from_id' | 'id'>,
  'permitRequest.clear': clear('permit_requests'),
  'permitRequest.set': set('permit_requests', ['number']),
  'permit.clear': clear('permits'),
  'permit.set': set('permits', ['number']),
  'event.insert': insert('events'),
  'event.update': update('events', ['status', 'matched', 'targets', 'ended_at']),
  'event.fired': update('events', ['fires']),
  'event.prune': special('latest', 'events.prune', { before: 'timestamptz' }),
  'eventWait.clear': clear('event_waits'),
  'eventWait.set': set('event_waits', ['key_id']),
  // It may be told twice that the wait has no use for the event.
  'eventTake.insert': insert('event_takes', {}, 'nothing'),
  'rateLimit.clear': clear('rate_limits'),
  'rateLimit.set': set('rate_limits', ['max_count', 'window_seconds', 'updated_at']),
  'rateGrant.prune': special('latest', 'rate_grants.prune', {
    limit_id: 'uuid',
    before: 'timestamptz',
  }),
  'rateGrant.insert': insert('rate_grants'),
  'activity.prune': special('latest', 'activity.prune', { before: 'timestamptz' }),
  'activity.set': set('activity', ['created', 'completed', 'failed', 'cancelled', 'durations']),
  'worker.seen': set('workers', ['version', 'last_seen_at'], { defaults: { queue_name: "''" } }),
  'cron.clear': clear('cron_schedules'),
  'cron.set': set(
    'cron_schedules',
    columnsBut(
      'cron_schedules',
      'id',
      'tenant_id',
      'namespace',
      'sequence_id',
      'sequence',
      'version',
      'created_at',
    ),
  ),
  'apiKey.insert': insert('api_keys'),
  'apiKey.update': update('api_keys', ['last_used_at', 'revoked']),
  'tenantLimits.clear': clear('tenant_limits'),
  'tenantLimits.set': set('tenant_limits', ['limits', 'set_at']),
  'bulkJob.insert': insert('bulk_jobs'),
  'bulkJob.update': update('bulk_jobs', [
    'state',
    'matched',
    'applied',
    'skipped',
    'failed',
    'repeats_effects',
    'error',
    'place',
    'updated_at',
    'ended_at',
  ]),
  'bulkJob.clear': clear('bulk_jobs'),
  'bulkChange.insert': insert('bulk_changes'),
  'bulkChange.clear': clear('bulk_changes'),
  'credential.clear': clear('credentials'),
  'credential.set': set('credentials', columnsBut('credentials', 'tenant_id', 'id', 'created_at')),
  'trigger.clear': clear('triggers'),
  'trigger.set': set(
    'triggers',
    columnsBut('triggers', 'slug', 'tenant_id', 'namespace', 'trigger_type', 'created_at'),
  ),
  'webhook.clear': clear('webhook_outbox'),
  'webhook.set': set('webhook_outbox', [
    'attempts',
    'last_error',
    'delivery_id',
    'status',
    'next_attempt_at',
    'claimed_at',
  ]),
  // Of a subscription that is deleted; the others are given up by the shards that have them.
  'webhook.dropParked': {
    ...clear('webhook_outbox'),
    columns: ['subscription_id'],
    where: { status: "'parked'" },
    merge: 'barrier',
  } as Delete<'webhook_outbox', 'subscription_id'>,
  'subscription.clear': clear('webhook_subscriptions'),
  'subscription.set': set('webhook_subscriptions', ['url', 'events', 'secret', 'updated_at']),
  'delivery.insert': insert('webhook_deliveries'),
  'delivery.prune': special('latest', 'webhook_deliveries.prune', { before: 'timestamptz' }),
  'changeMark.set': set('change_mark', ['stamps_from']),
  'release.set': set('releases', [
    'state',
    'canary_percent',
    'validation_summary',
    'canary_started_at',
    'updated_at',
  ]),
  'releaseDecision.insert': insert('release_decisions'),
  'releaseOutcome.clear': clear('release_outcomes'),
  'releaseOutcome.set': set('release_outcomes', ['sequence_id', 'state']),
  'effect.insert': insert('effect_receipts', {}, 'nothing'),
  'effectResolution.set': set('effect_resolutions', ['state', 'provider_receipt_id', 'updated_at']),
  'execution.insert': insert('continuity_executions', {
    without: ['ended'],
    defaults: { version: 0 },
  }),
  // Fails with 22P02, and with it the whole unit, when the row has another version than the one that
  // was decided on.
  'execution.update': special('barrier', 'continuity_executions', {
    continuity_id: 'uuid',
    current_instance_id: 'uuid',
    owner_runtime_id: 'uuid',
    epoch: 'bigint',
    state: 'text',
    version: 'bigint',
    updated_at: 'timestamptz',
  }),
  'location.insert': insert('continuity_locations'),
  'provenance.insert': insert('provenance_entries'),
  // What was observed earlier does not replace what was observed later.
  'runtime.set': special('insert', 'runtimes', {
    tenant_id: 'text',
    runtime_id: 'uuid',
    capabilities: 'json',
    observed_at: 'timestamptz',
    expires_at: 'timestamptz',
  }),
  'placement.insert': insert('placement_decisions'),
  'handoff.set': set('handoffs', [
    'state',
    'capsule_id',
    'capsule_expires_at',
    'version',
    'failure_code',
    'updated_at',
  ]),
  'artifact.insert': insert('artifacts'),
  'capsuleImport.insert': insert('capsule_imports'),
  'migration.set': set('migrations', ['state', 'record', 'updated_at']),
} as const satisfies Readonly<Record<string, Mutation>>;

export type MutationKind = keyof typeof MUTATIONS;

export const MUTATION_KINDS = Object.keys(MUTATIONS) as readonly MutationKind[];

type FieldValue<B extends BaseType> = B extends 'json'
  ? unknown
  : B extends 'smallint' | 'integer' | 'bigint'
    ? number
    : string;

type RowOf<M> =
  M extends Insert<infer T, infer C, infer D>
    ? WrittenRow<T, Exclude<C, D> & ColumnOf<T>> & Partial<WrittenRow<T, D & ColumnOf<T>>>
    : M extends Update<infer T, infer C> | Delete<infer T, infer C>
      ? WrittenRow<T, C & ColumnOf<T>>
      : M extends Special<infer F>
        ? { readonly [K in keyof F]: FieldValue<F[K]> }
        : never;

/** What the rows of a mutation have, with its types. */
export function fieldsOf(mutation: Mutation): (readonly [name: string, type: BaseType])[] {
  if (mutation.does === 'special') return Object.entries(mutation.fields);
  const { table, columns } = mutation;
  return columns.map((column) => [column, columnType(table, column).base] as const);
}

/** The columns of one mutation: JSON as any value that has a text. */
export type MutationRow<K extends MutationKind> = RowOf<(typeof MUTATIONS)[K]>;
