/**
 * An instance in its three forms: what its actor holds, its row, and its wire record. Pure.
 */

import type { Block } from '../../schema/blocks.js';
import { toUnixMs } from '../../schema/common.js';
import type { BodyOf } from '../../schema/routes.js';
import { type Execution, emptyExecution } from '../../src/core/execution.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import type { Snapshot } from '../../src/core/progress.js';
import type { Attribution } from '../../src/core/releases/release.js';
import type { Route } from '../../src/core/releases/routes.js';
import { PRIORITIES, priorityRank } from '../../src/core/states.js';
import { isoTime, isoTimeOrNull, type UnixMs } from '../../src/core/time.js';
import { tooLarge } from '../../src/errors.js';
import { stamped, targetOf } from '../release/attribution.js';
import type { InstanceRow } from '../runtime/rows.js';
import type { Fence } from './orders.js';

/** What the evaluator sees and changes is in `snapshot`; the rest belongs to the actor alone. */
export interface InstanceRecord {
  readonly id: string;
  /** Changes when the instance goes over to another version. */
  sequenceId: string;
  readonly tenantId: string;
  readonly namespace: string;
  /** 0 low … 3 critical. */
  readonly priority: number;
  readonly metadata: JsonObject;
  readonly concurrencyKey: string | null;
  readonly maxConcurrency: number | null;
  readonly idempotencyKey: string | null;
  readonly parentInstanceId: string | null;
  /** The release that routed it, if one did. */
  readonly release?: Attribution | undefined;
  /** The trace of whoever asked for it last; its work continues that one. */
  traceparent: string | null;
  /** The execution that it was enrolled in or imported with; null: it has a scope of its own. */
  continuityId: string | null;
  /** Its epoch there. */
  ownershipEpoch: number;
  /** Why it must not be run here; null: it may. */
  fence: Fence | null;
  /** Also the time of the audit entries of its creation. */
  createdAt: UnixMs;
  readonly snapshot: Snapshot;
  /** Blocks of this instance alone, which run after those of its sequence. */
  injected: readonly Block[];
  contextAudit: JsonValue[];
  updatedAt: UnixMs;
  signalCount: number;
  auditCount: number;
}

export type CreationBody = BodyOf<'instances.create'>;

/** An instance that is to be created, as its creator asked for it. */
export interface NewInstance {
  readonly id: string;
  readonly body: CreationBody;
  /** Where a release has it go instead, decided in the turn that makes its unit. */
  readonly route?: Route | undefined;
  /** Of the request that creates it; absent: it is in no trace. */
  readonly traceparent?: string | undefined;
}

/** Keys of dry runs begin with this, lest a real run be taken for done. */
const DRY_RUN_KEY = 'dryrun:';

/** As it is stored; an empty key is none. */
export function idempotencyKeyOf({ idempotency_key, dry_run }: CreationBody): string | null {
  if (!idempotency_key) return null;
  return dry_run === true ? DRY_RUN_KEY + idempotency_key : idempotency_key;
}

export function givenContext({ context }: CreationBody): { data: JsonObject; config: JsonObject } {
  return {
    data: (context?.data ?? {}) as JsonObject,
    config: (context?.config ?? {}) as JsonObject,
  };
}

/** @throws EngineError 413 */
export function checkContextBytes(sections: object, max: number, place: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(sections));
  if (bytes > max) throw tooLarge(`${place}context is ${bytes} bytes, the limit is ${max}`);
}

export function newRecord(instance: NewInstance, now: UnixMs): InstanceRecord {
  const { id, body, route, traceparent } = instance;
  return {
    id,
    sequenceId: targetOf(instance),
    tenantId: body.tenant_id,
    namespace: body.namespace,
    priority: priorityRank(body.priority ?? 'normal'),
    metadata: stamped((body.metadata ?? {}) as JsonObject, route),
    concurrencyKey: body.concurrency_key ?? null,
    maxConcurrency: body.max_concurrency ?? null,
    idempotencyKey: idempotencyKeyOf(body),
    parentInstanceId: null,
    release: route && { releaseId: route.releaseId, variant: route.variant },
    traceparent: traceparent ?? null,
    continuityId: null,
    ownershipEpoch: 0,
    fence: null,
    createdAt: now,
    updatedAt: now,
    signalCount: 0,
    auditCount: 0,
    injected: [],
    contextAudit: [],
    snapshot: {
      id,
      timezone: body.timezone ?? 'UTC',
      state: 'scheduled',
      nextFireAt: (body.next_fire_at == null ? undefined : toUnixMs(body.next_fire_at)) ?? now,
      ...givenContext(body),
      runtime: body.dry_run === true ? { dry_run: true } : {},
      execution: emptyExecution(),
      outputs: new Map(),
      snapshots: new Map(),
    },
  };
}

export function recordOfRow(row: InstanceRow): InstanceRecord {
  return {
    id: row.id,
    sequenceId: row.sequence_id,
    tenantId: row.tenant_id,
    namespace: row.namespace,
    priority: row.priority,
    metadata: JSON.parse(row.metadata) as JsonObject,
    concurrencyKey: row.concurrency_key,
    maxConcurrency: row.max_concurrency,
    idempotencyKey: row.idempotency_key,
    parentInstanceId: row.parent_instance_id,
    release: releaseOfRow(row),
    traceparent: row.traceparent,
    continuityId: row.continuity_id,
    ownershipEpoch: row.ownership_epoch ?? 0,
    fence: row.fence === null ? null : (JSON.parse(row.fence) as Fence),
    createdAt: Date.parse(row.created_at),
    updatedAt: Date.parse(row.updated_at),
    signalCount: row.signal_count,
    auditCount: row.audit_count,
    injected: row.injected ? (JSON.parse(row.injected) as Block[]) : [],
    contextAudit: JSON.parse(row.context_audit) as JsonValue[],
    snapshot: {
      id: row.id,
      timezone: row.timezone,
      state: row.state,
      nextFireAt: row.next_fire_at === null ? null : Date.parse(row.next_fire_at),
      data: JSON.parse(row.data) as JsonObject,
      config: JSON.parse(row.config) as JsonObject,
      runtime: JSON.parse(row.runtime) as JsonObject,
      execution: JSON.parse(row.execution) as Execution,
      outputs: new Map(),
      snapshots: new Map(),
    },
  };
}

function releaseOfRow({ release_id: releaseId, release_variant: variant }: InstanceRow) {
  return releaseId === null || variant === null ? undefined : { releaseId, variant };
}

/**
 * The row of `instance.update`: the columns that change without the context. Rows are put together
 * as text, piece by piece: it costs a third of what an object and JSON.stringify do, on the hot path.
 */
export function changingRow(record: InstanceRecord): string {
  return `{${changingPairs(record)}}`;
}

/** The row of `instance.context`: written only when it changed, because contexts are large. */
export function contextRow(record: InstanceRecord): string {
  return `{"id":"${record.id}",${contextPairs(record)}}`;
}

/**
 * The row of `instance.insert`: all columns.
 *
 * @param birthAudit the audit entries of the unit that inserts it
 */
export function wholeRow(record: InstanceRecord, birthAudit: readonly object[] = []): string {
  const audit = birthAudit.length === 0 ? 'null' : JSON.stringify(birthAudit);
  return (
    `{${changingPairs(record)},${contextPairs(record)},${fixedPairs(record)},` +
    `"birth_audit":${audit}}`
  );
}

function changingPairs(record: InstanceRecord): string {
  const { snapshot } = record;
  return (
    `"id":"${record.id}","state":"${snapshot.state}",` +
    `"next_fire_at":${timeText(snapshot.nextFireAt)},` +
    `"runtime":${JSON.stringify(snapshot.runtime)},` +
    `"execution":${JSON.stringify(snapshot.execution)},` +
    `"signal_count":${record.signalCount},"audit_count":${record.auditCount},` +
    `"updated_at":"${isoTime(record.updatedAt)}"`
  );
}

function contextPairs(record: InstanceRecord): string {
  return (
    `"data":${JSON.stringify(record.snapshot.data)},` +
    `"config":${JSON.stringify(record.snapshot.config)},` +
    `"context_audit":${JSON.stringify(record.contextAudit)}`
  );
}

function fixedPairs(record: InstanceRecord): string {
  return (
    `"sequence_id":"${record.sequenceId}","tenant_id":${JSON.stringify(record.tenantId)},` +
    `"namespace":${JSON.stringify(record.namespace)},"priority":${record.priority},` +
    `"timezone":${JSON.stringify(record.snapshot.timezone)},` +
    `"metadata":${JSON.stringify(record.metadata)},` +
    `"concurrency_key":${JSON.stringify(record.concurrencyKey)},` +
    `"max_concurrency":${record.maxConcurrency},` +
    `"idempotency_key":${JSON.stringify(record.idempotencyKey)},` +
    `"parent_instance_id":${JSON.stringify(record.parentInstanceId)},` +
    (record.traceparent === null ? '' : `"traceparent":"${record.traceparent}",`) +
    releasePairs(record.release) +
    `"created_at":"${isoTime(record.createdAt)}"`
  );
}

function releasePairs(release: Attribution | undefined): string {
  if (release === undefined) return '';
  return `"release_id":"${release.releaseId}","release_variant":"${release.variant}",`;
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
    audit: record.contextAudit,
    runtime: record.snapshot.runtime,
  };
}

/** The wire record (schema `TaskInstance`); fields that are not set are left out. */
export function wireInstance(record: InstanceRecord): object {
  const { snapshot } = record;
  return {
    id: record.id,
    sequence_id: record.sequenceId,
    tenant_id: record.tenantId,
    namespace: record.namespace,
    state: snapshot.state,
    next_fire_at: isoTimeOrNull(snapshot.nextFireAt),
    priority: priorityLabel(record.priority),
    timezone: snapshot.timezone,
    metadata: record.metadata,
    context: contextOf(record),
    concurrency_key: record.concurrencyKey ?? undefined,
    max_concurrency: record.maxConcurrency ?? undefined,
    idempotency_key: record.idempotencyKey ?? undefined,
    parent_instance_id: record.parentInstanceId ?? undefined,
    created_at: isoTime(record.createdAt),
    updated_at: isoTime(record.updatedAt),
  };
}

/** What the instance has to do with its key: a slot is held while it is running or waiting. */
export type PermitStatus = 'none' | 'wanted' | 'held';

/** Both fields are needed: a key without a limit limits nothing. */
export function isKeyed(record: InstanceRecord): boolean {
  return record.concurrencyKey !== null && record.maxConcurrency !== null;
}

export function permitStatus(record: InstanceRecord): PermitStatus {
  if (!isKeyed(record)) return 'none';
  const { state, execution } = record.snapshot;
  if (execution.w === 1) return 'wanted';
  return state === 'running' || state === 'waiting' ? 'held' : 'none';
}
