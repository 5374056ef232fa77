/**
 * An instance in its three forms: what its actor holds, its row, and its wire record. Pure.
 */

import type { Block } from '../../schema/blocks.js';
import { toUnixMs } from '../../schema/common.js';
import { type Execution, emptyExecution } from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import { PRIORITIES, priorityRank } from '../../schema/states.js';
import { type JsonObject, type JsonValue, textOfJson } from '../../src/base/json.js';
import { isoTime, isoTimeOrNull, type UnixMs } from '../../src/base/time.js';
import { type CreationBody, idempotencyKeyOf } from '../../src/core/creation-key.js';
import { cancellingIn, shownRuntime } from '../../src/core/instance-state.js';
import type { Snapshot } from '../../src/core/progress.js';
import { objectOf, rowOf } from '../../src/db/lines.js';
import { stamped, targetOf } from '../release/attribution.js';
import type { Route } from '../release/core/routes.js';
import type { NamedId, SequenceName } from '../runtime/sequence-name.js';
import type { InstanceRow } from './loads.js';
import type { Fence } from './orders.js';
import type { RawSections } from './raw-sections.js';
import { INSTANCE } from './tables.js';

/** Columns that the evaluator sees and changes, in its form. */
type Evaluated = keyof Pick<
  InstanceRow,
  'state' | 'next_fire_at' | 'timezone' | 'data' | 'config' | 'runtime' | 'execution' | 'timeout'
>;

/** What columns of JSON hold; everything else is as the row is read. */
interface Values {
  metadata: JsonObject;
  context_audit: JsonValue[];
  /** Why it must not be run here; null: it may. */
  fence: Fence | null;
  /** Blocks of this instance alone, which run after those of its sequence. */
  injected: readonly Block[];
  /** In the execution that it was enrolled in or imported with; 0: it has a scope of its own. */
  ownership_epoch: number;
}

/** The row of an instance, which its actor changes in place. */
export type InstanceRecord = {
  -readonly [K in Exclude<keyof InstanceRow, Evaluated>]: K extends keyof Values
    ? Values[K]
    : InstanceRow[K];
} & {
  readonly snapshot: Snapshot;
  /** Until its row is made: what its creator wrote, of the values that are still those of the body. */
  given?: Given | undefined;
};

interface Given {
  readonly texts: RawSections;
  readonly body: CreationBody;
}

/** An instance that is to be created, as its creator asked for it. */
export interface NewInstance {
  readonly id: string;
  readonly body: CreationBody;
  /** Where the name leads that it was asked by, decided in the turn that makes its unit. */
  readonly named?: NamedId;
  /** Where a release has it go instead, decided in that turn, too. */
  readonly route?: Route | undefined;
  /** Of the request that creates it; absent: it is in no trace. */
  readonly traceparent?: string | undefined;
  /** The sections of the body as they came; absent: they are written anew. */
  readonly texts?: RawSections | undefined;
  /** The instance that starts it as its child; absent: it stands for itself. */
  readonly parent?: string | undefined;
}

/** The name that the sequence is asked for by; undefined when it is by its id. */
export function nameIn(
  body: Pick<CreationBody, 'tenant_id' | 'namespace' | 'sequence' | 'version'>,
): SequenceName | undefined {
  if (body.sequence == null) return undefined;
  const { tenant_id: tenant, namespace, sequence: name, version } = body;
  return { tenant, namespace, name, version: version ?? null };
}

export function givenContext({ context }: Pick<CreationBody, 'context'>): {
  data: JsonObject;
  config: JsonObject;
} {
  return {
    data: (context?.data ?? {}) as JsonObject,
    config: (context?.config ?? {}) as JsonObject,
  };
}

export function newRecord(instance: NewInstance, now: UnixMs): InstanceRecord {
  const { id, body, route, texts, traceparent, parent } = instance;
  const created_at = isoTime(now);
  const { data, config } = givenContext(body);
  return {
    id,
    sequence_id: targetOf(instance),
    tenant_id: body.tenant_id,
    namespace: body.namespace,
    priority: priorityRank(body.priority ?? 'normal'),
    metadata: stamped((body.metadata ?? {}) as JsonObject, route),
    concurrency_key: body.concurrency_key ?? null,
    max_concurrency: body.max_concurrency ?? null,
    idempotency_key: idempotencyKeyOf(body),
    parent_instance_id: parent ?? null,
    release_id: route?.releaseId ?? null,
    release_variant: route?.variant ?? null,
    traceparent: traceparent ?? null,
    continuity_id: null,
    ownership_epoch: 0,
    fence: null,
    created_at,
    updated_at: created_at,
    signal_count: 0,
    audit_count: 0,
    injected: [],
    context_audit: [],
    given: texts && { texts, body },
    snapshot: {
      id,
      timezone: body.timezone ?? 'UTC',
      state: 'scheduled',
      nextFireAt: (body.next_fire_at == null ? undefined : toUnixMs(body.next_fire_at)) ?? now,
      timeoutMs: body.timeout ?? null,
      data,
      config,
      runtime: runtimeOf(body),
      execution: emptyExecution(),
      outputs: new Map(),
      snapshots: new Map(),
    },
  };
}

function runtimeOf({ dry_run, dry_run_auto_approve: isAuto }: CreationBody): JsonObject {
  if (dry_run !== true) return {};
  return isAuto === true ? { dry_run: true, dry_run_auto_approve: true } : { dry_run: true };
}

export function recordOfRow(row: InstanceRow): InstanceRecord {
  const { state, next_fire_at, timezone, data, config, runtime, execution, timeout, ...columns } =
    row;
  return {
    ...columns,
    metadata: JSON.parse(row.metadata) as JsonObject,
    context_audit: JSON.parse(row.context_audit) as JsonValue[],
    fence: JSON.parse(row.fence ?? 'null') as Fence | null,
    injected: JSON.parse(row.injected ?? '[]') as Block[],
    ownership_epoch: row.ownership_epoch ?? 0,
    snapshot: {
      id: row.id,
      timezone,
      state,
      nextFireAt: next_fire_at === null ? null : Date.parse(next_fire_at),
      timeoutMs: timeout,
      data: JSON.parse(data) as JsonObject,
      config: JSON.parse(config) as JsonObject,
      runtime: JSON.parse(runtime) as JsonObject,
      execution: JSON.parse(execution) as Execution,
      outputs: new Map(),
      snapshots: new Map(),
    },
  };
}

/** The sections of a context that the row carries. They are replaced as a whole, never changed in place. */
export interface Sections {
  readonly data: JsonObject;
  readonly config: JsonObject;
  readonly audit: JsonValue[];
}

export function sectionsOf({ snapshot, context_audit: audit }: InstanceRecord): Sections {
  return { data: snapshot.data, config: snapshot.config, audit };
}

/**
 * The row of `instance.update`: the columns that change without the context. Rows are put together
 * as text, piece by piece: it costs a third of what an object and JSON.stringify do, on the hot path.
 */
export function changingRow(record: InstanceRecord): string {
  return `{${changingPairs(record)}}`;
}

/** The row of `instance.change`: with `context.data`, which is written only when it changed. */
export function changedRow(record: InstanceRecord): string {
  return `{${changingPairs(record)},"data":${textOfJson(record.snapshot.data)}}`;
}

/**
 * The row of `instance.insert`, all columns: as the text of a line, unless a text of it makes it an object.
 *
 * @param creationAudit JSON of the audit entries of the unit that inserts it, with commas
 * @param schedule whose run it is
 */
export function wholeLine(
  record: InstanceRecord,
  creationAudit = '',
  schedule: string | null = null,
): string {
  return rowOf(INSTANCE.insert, wholeCells(record, creationAudit, schedule));
}

/** The same as an object of JSON: for the kinds whose rows are never lines. */
export function wholeRow(record: InstanceRecord): string {
  return objectOf(INSTANCE.insert, wholeCells(record, '', null));
}

function wholeCells(record: InstanceRecord, creationAudit: string, schedule: string | null) {
  const { snapshot, context_audit: audit } = record;
  const failure = failureOf(record);
  return {
    id: record.id,
    sequence_id: record.sequence_id,
    tenant_id: record.tenant_id,
    namespace: record.namespace,
    state: snapshot.state,
    next_fire_at: isoTimeOrNull(snapshot.nextFireAt),
    priority: record.priority,
    timezone: snapshot.timezone,
    metadata: metadataText(record),
    data: dataText(record),
    config: configText(record),
    context_audit: audit.length === 0 ? '[]' : JSON.stringify(audit),
    runtime: objectText(snapshot.runtime),
    execution: JSON.stringify(snapshot.execution),
    concurrency_key: record.concurrency_key,
    max_concurrency: record.max_concurrency,
    idempotency_key: record.idempotency_key,
    parent_instance_id: record.parent_instance_id,
    creation_audit: creationAudit === '' ? null : `[${creationAudit}]`,
    signal_count: record.signal_count,
    audit_count: record.audit_count,
    created_at: record.created_at,
    updated_at: record.updated_at,
    cron_schedule_id: schedule,
    traceparent: record.traceparent,
    release_id: record.release_id,
    release_variant: record.release_variant,
    failure: failure === null ? null : JSON.stringify(failure),
    timeout: snapshot.timeoutMs,
  };
}

function changingPairs(record: InstanceRecord): string {
  const { snapshot } = record;
  return (
    `"id":"${record.id}","state":"${snapshot.state}",` +
    `"next_fire_at":${timeText(snapshot.nextFireAt)},` +
    `"runtime":${objectText(snapshot.runtime)},` +
    `"execution":${JSON.stringify(snapshot.execution)},` +
    `"signal_count":${record.signal_count},"audit_count":${record.audit_count},` +
    `"updated_at":"${record.updated_at}"`
  );
}

function dataText({ snapshot: { data }, given }: InstanceRecord): string {
  const isGiven = data === given?.body.context?.data;
  return (isGiven ? given?.texts.data : undefined) ?? objectText(data);
}

function configText({ snapshot: { config }, given }: InstanceRecord): string {
  const isGiven = config === given?.body.context?.config;
  return (isGiven ? given?.texts.config : undefined) ?? objectText(config);
}

function metadataText({ metadata, given }: InstanceRecord): string {
  const isGiven = metadata === given?.body.metadata;
  return (isGiven ? given?.texts.metadata : undefined) ?? objectText(metadata);
}

/** A call of JSON.stringify costs more than it takes to see that there is nothing to write. */
function objectText(object: JsonObject): string {
  for (const _ in object) return JSON.stringify(object);
  return '{}';
}

function timeText(ms: UnixMs | null): string {
  return ms === null ? 'null' : `"${isoTime(ms)}"`;
}

/** `low` … `critical` as responses show them. */
export function priorityLabel(rank: number): string {
  const word = PRIORITIES[rank] ?? 'normal';
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** The `context` section of a record, and the answer of PATCH context. */
export function contextOf(record: InstanceRecord): JsonObject {
  return {
    data: record.snapshot.data,
    config: record.snapshot.config,
    audit: record.context_audit,
    runtime: shownRuntime(record.snapshot.runtime),
  };
}

/**
 * Why it is failed; null when it is not, or failed under an engine that did not note why. One that was
 * paused since is failed still: it goes on by a retry.
 */
export function failureOf({ snapshot: { state, execution } }: InstanceRecord): Failure | null {
  const isFailed = state === 'failed' || (state === 'paused' && execution.f === 1);
  return isFailed ? (execution.y ?? null) : null;
}

/** The wire record (schema `TaskInstance`); fields that are not set are left out. */
export function wireInstance(record: InstanceRecord): object {
  const { snapshot } = record;
  return {
    id: record.id,
    sequence_id: record.sequence_id,
    tenant_id: record.tenant_id,
    namespace: record.namespace,
    state: snapshot.state,
    next_fire_at: isoTimeOrNull(snapshot.nextFireAt),
    priority: priorityLabel(record.priority),
    timezone: snapshot.timezone,
    metadata: record.metadata,
    context: contextOf(record),
    concurrency_key: record.concurrency_key ?? undefined,
    max_concurrency: record.max_concurrency ?? undefined,
    idempotency_key: record.idempotency_key ?? undefined,
    parent_instance_id: record.parent_instance_id ?? undefined,
    timeout: snapshot.timeoutMs ?? undefined,
    failure: failureOf(record),
    cancelling: cancellingIn(snapshot.runtime),
    created_at: record.created_at,
    updated_at: record.updated_at,
  };
}

/**
 * What the instance has to do with its key: a slot is held while it is running or waiting, and where it is
 * neither, for as long as `limits.ts` lets it keep it.
 */
export type PermitStatus = 'none' | 'wanted' | 'held';

/** Both fields are needed: a key without a limit limits nothing. */
export function isKeyed(record: InstanceRecord): boolean {
  return record.concurrency_key !== null && record.max_concurrency !== null;
}

export function permitStatus(record: InstanceRecord): PermitStatus {
  if (!isKeyed(record)) return 'none';
  const { state, execution } = record.snapshot;
  if (execution.w === 1) return 'wanted';
  return state === 'running' || state === 'waiting' || execution.r === 1 ? 'held' : 'none';
}

/**
 * Whether workers may begin what waits for them: not of an instance that is paused, that is put off to a time, or
 * that has no slot of its concurrency key.
 */
export function offersTasks(record: InstanceRecord): boolean {
  const { state, execution } = record.snapshot;
  if (state === 'paused' || execution.h !== undefined) return false;
  return !isKeyed(record) || permitStatus(record) === 'held';
}
