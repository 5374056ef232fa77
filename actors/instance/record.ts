/** The record of an instance in memory, and its rows. Pure. */

import type { Block } from '../../schema/blocks.js';
import { toUnixMs } from '../../schema/common.js';
import { type Execution, emptyExecution, WAITS_FOR_SLOT } from '../../schema/execution.js';
import type { Failure } from '../../schema/failure.js';
import { PRIORITIES, priorityRank } from '../../schema/states.js';
import { unprocessable } from '../../src/base/errors.js';
import { type JsonObject, type JsonValue, objectText, textOfJson } from '../../src/base/json.js';
import { LazyMap } from '../../src/base/lazy-map.js';
import { isoTime, isoTimeOrNull, type UnixMs } from '../../src/base/time.js';
import { cancelEvents } from '../../src/core/cancel-on.js';
import { type CreationBody, idempotencyKeyOf } from '../../src/core/creation-key.js';
import {
  type FlowKeys,
  type FlowPlan,
  flowKeysOf,
  NO_FLOW_KEYS,
} from '../../src/core/flow-limits.js';
import type { Parsed } from '../../src/core/parsed.js';
import type { Plan } from '../../src/core/plan-nodes.js';
import type { Snapshot } from '../../src/core/progress.js';
import { rowOf } from '../../src/db/lines.js';
import type { Update } from '../../src/db/mutation.js';
import { stamped, targetOf } from '../release/attribution.js';
import type { Route } from '../release/core/routes.js';
import type { NamedId, SequenceName } from '../runtime/sequence-name.js';
import { type DataColumns, dataOf, patchText } from './context-data.js';
import { runtimeText, storedRuntime } from './core/runtime-text.js';
import type { InstanceRow } from './loads.js';
import type { Fence } from './orders.js';
import type { RawSections } from './raw-sections.js';
import { INSTANCE } from './tables.js';

/** Columns that the evaluator's snapshot has. */
type Evaluated =
  | keyof DataColumns
  | ('state' | 'next_fire_at' | 'timezone' | 'config' | 'runtime' | 'execution' | 'timeout');

/** Columns that differ from the row: JSON is parsed, and null has a default. */
interface Values {
  metadata: JsonObject;
  context_audit: JsonValue[];
  /** Set while the instance must not run here. */
  fence: Fence | null;
  /** Blocks of this instance only, after those of its sequence. */
  injected: readonly Block[];
  /** 0 without an execution. */
  ownership_epoch: number;
}

export type InstanceRecord = {
  -readonly [K in Exclude<keyof InstanceRow, Evaluated>]: K extends keyof Values
    ? Values[K]
    : InstanceRow[K];
} & {
  readonly snapshot: Snapshot;
  /** context.data as its column has it, without the patch. */
  stored: JsonObject;
  /** Until the row is inserted: the request, whose text is reused for unchanged sections. */
  raw?: { readonly texts: RawSections; readonly body: CreationBody } | undefined;
};

export interface NewInstance {
  readonly id: string;
  readonly body: CreationBody;
  /** The id of the sequence that was requested by name, as of the turn that makes the unit. */
  readonly named?: NamedId;
  /** The sequence that a release chose instead, as of the same turn. */
  readonly route?: Route | undefined;
  readonly traceparent?: string | undefined;
  /** The sections of the body as text; absent when they have to be serialized. */
  readonly texts?: RawSections | undefined;
  readonly parent?: string | undefined;
  /** The data as given, if `body` has it as the only item of a batch. */
  readonly item?: JsonObject | undefined;
  /** The caller waits for the end. */
  readonly waitMs?: number | undefined;
}

export function nameIn(
  body: Pick<CreationBody, 'tenant_id' | 'namespace' | 'sequence' | 'version'>,
): SequenceName | undefined {
  if (body.sequence == null) return undefined;
  const { tenant_id: tenant, namespace, sequence: name, version } = body;
  return { tenant, namespace, name, version: version ?? null };
}

/** Empty sections are replaced and never changed in place, so that all records can share them. */
const NO_MEMBERS: JsonObject = Object.freeze({});
const NO_ITEMS = Object.freeze([]) as readonly [] as [];

export function givenContext({ context }: Pick<CreationBody, 'context'>): {
  data: JsonObject;
  config: JsonObject;
} {
  return {
    data: (context?.data ?? NO_MEMBERS) as JsonObject,
    config: (context?.config ?? NO_MEMBERS) as JsonObject,
  };
}

/** @throws EngineError 422 when the plan's limits have no key for it */
export function newRecord(instance: NewInstance, now: UnixMs, plan: CreationPlan): InstanceRecord {
  const { id, body, route, texts, traceparent, parent } = instance;
  const created_at = isoTime(now);
  const { data, config } = givenContext(body);
  const keys = keysOf(instance, plan);
  if (!keys.ok) throw unprocessable(keys.message);
  const { concurrency_key, max_concurrency, throttle_key } = keys.value;
  const execution = firstExecution(instance, plan);
  if (throttle_key !== null) execution.i = throttle_key;
  return {
    id,
    sequence_id: targetOf(instance),
    tenant_id: body.tenant_id,
    namespace: body.namespace,
    priority: priorityRank(body.priority ?? 'normal'),
    metadata: stamped((body.metadata ?? {}) as JsonObject, route),
    concurrency_key: concurrency_key ?? body.concurrency_key ?? null,
    max_concurrency: max_concurrency ?? body.max_concurrency ?? null,
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
    end_outputs: null,
    injected: NO_ITEMS,
    context_audit: NO_ITEMS,
    raw: texts && { texts, body },
    stored: data,
    snapshot: {
      id,
      timezone: body.timezone ?? 'UTC',
      state: 'scheduled',
      nextFireAt: firstStart(body, now),
      timeoutMs: body.timeout ?? null,
      data,
      config,
      runtime: runtimeOf(body),
      execution,
      outputs: new LazyMap(),
      snapshots: new LazyMap(),
    },
  };
}

/** The requested start. */
export function firstStart({ next_fire_at: at }: CreationBody, now: UnixMs): UnixMs {
  return (at == null ? undefined : toUnixMs(at)) ?? now;
}

type CreationPlan = Pick<Plan, 'flow' | 'name' | 'cancelOn'> | undefined;

/** A dry run is not limited, and has the problem of a real one. `ok: false` names the member without a key. */
export function keysOf(instance: NewInstance, plan: CreationPlan): Parsed<FlowKeys> {
  if (plan?.flow === undefined) return UNLIMITED;
  const keys = renderedKeys(instance, plan.flow, plan.name);
  return keys.ok && instance.body.dry_run === true ? UNLIMITED : keys;
}

function renderedKeys(
  { id, body }: NewInstance,
  flow: FlowPlan,
  name: Plan['name'],
): Parsed<FlowKeys> {
  const known = RENDERED.get(body);
  if (known?.flow === flow) return known.keys;
  const keys = flowKeysOf(flow, name, { id, namespace: body.namespace, ...givenContext(body) });
  RENDERED.set(body, { flow, keys });
  return keys;
}

/** The keys are rendered once for the check, the slot and the record of a creation. */
const RENDERED = new WeakMap<CreationBody, { flow: FlowPlan; keys: Parsed<FlowKeys> }>();

const UNLIMITED = { ok: true, value: NO_FLOW_KEYS } as const;

/** A dry run is not cancelled by real events. */
function firstExecution({ id, body }: NewInstance, plan: CreationPlan): Execution {
  const execution = emptyExecution();
  if (plan?.cancelOn === undefined || body.dry_run === true) return execution;
  const events = cancelEvents(plan.cancelOn, { id, ...givenContext(body) });
  if (!events.ok) throw unprocessable(events.message);
  execution.E = events.value;
  return execution;
}

function runtimeOf({ dry_run, dry_run_auto_approve: isAuto }: CreationBody): JsonObject {
  if (dry_run !== true) return {};
  return isAuto === true ? { dry_run: true, dry_run_auto_approve: true } : { dry_run: true };
}

export function recordOfRow(row: InstanceRow): InstanceRecord {
  const { state, next_fire_at, timezone, config, runtime: _, execution, timeout, ...others } = row;
  const { data: _data, data_patch: _patch, ...columns } = others;
  const { stored, data } = dataOf(row);
  return {
    ...columns,
    stored,
    metadata: JSON.parse(row.metadata) as JsonObject,
    context_audit: row.context_audit === '[]' ? NO_ITEMS : JSON.parse(row.context_audit),
    fence: JSON.parse(row.fence ?? 'null') as Fence | null,
    injected: row.injected === null ? NO_ITEMS : JSON.parse(row.injected),
    ownership_epoch: row.ownership_epoch ?? 0,
    snapshot: {
      id: row.id,
      timezone,
      state,
      nextFireAt: next_fire_at === null ? null : Date.parse(next_fire_at),
      timeoutMs: timeout,
      data,
      config: config === '{}' ? NO_MEMBERS : JSON.parse(config),
      runtime: JSON.parse(runtimeText(row.id, row)) as JsonObject,
      execution: JSON.parse(execution) as Execution,
      outputs: new LazyMap(),
      snapshots: new LazyMap(),
    },
  };
}

/** The stored sections of a context, which are replaced and never changed in place. */
export function sectionsOf({ snapshot, context_audit: audit }: InstanceRecord) {
  return { data: snapshot.data, config: snapshot.config, audit };
}

/** The narrowest mutation that writes what has changed, with its row, which counts as stored from now on. */
export function changeOf(record: InstanceRecord, isNewData: boolean): readonly [Update, string] {
  const { update, patch, change } = INSTANCE;
  const { data } = record.snapshot;
  const cells = progressCells(record);
  if (!isNewData) return [update, rowOf(update, cells)];
  cells.data_patch = patchText(record.stored, data);
  if (cells.data_patch !== undefined) return [patch, rowOf(patch, cells)];
  record.stored = data;
  cells.data = textOfJson(data);
  return [change, rowOf(change, cells)];
}

/** The row of `instance.insert` and `instance.insertChild`. @param schedule the id of the one that has started it */
export function wholeLine(
  record: InstanceRecord,
  creationAudit: readonly string[] = [],
  schedule: string | null = null,
): string {
  const { snapshot, context_audit: audit, raw } = record;
  const failure = failureOf(record);
  return rowOf(INSTANCE.insert, {
    id: record.id,
    sequence_id: record.sequence_id,
    tenant_id: record.tenant_id,
    namespace: record.namespace,
    state: snapshot.state,
    next_fire_at: isoTimeOrNull(snapshot.nextFireAt),
    priority: record.priority,
    timezone: snapshot.timezone,
    metadata: sectionText(record.metadata, raw?.body.metadata, raw?.texts.metadata),
    data: sectionText(snapshot.data, raw?.body.context?.data, raw?.texts.data),
    config: sectionText(snapshot.config, raw?.body.context?.config, raw?.texts.config),
    context_audit: audit.length === 0 ? '[]' : JSON.stringify(audit),
    runtime: storedRuntime(record.id, record.created_at, snapshot.runtime),
    execution: JSON.stringify(snapshot.execution),
    concurrency_key: record.concurrency_key,
    max_concurrency: record.max_concurrency,
    idempotency_key: record.idempotency_key,
    parent_instance_id: record.parent_instance_id,
    creation_audit: creationAudit.length === 0 ? null : `[${creationAudit.join(',')}]`,
    signal_count: record.signal_count,
    audit_count: record.audit_count,
    end_outputs: record.end_outputs,
    created_at: record.created_at,
    updated_at: record.updated_at,
    cron_schedule_id: schedule,
    traceparent: record.traceparent,
    release_id: record.release_id,
    release_variant: record.release_variant,
    failure: failure === null ? null : JSON.stringify(failure),
    timeout: snapshot.timeoutMs,
  });
}

/** With the cells of a changed context, because copying the object takes longer than the rest. */
function progressCells(record: InstanceRecord) {
  const { id, snapshot, signal_count, audit_count, end_outputs, updated_at } = record;
  return {
    id,
    state: snapshot.state,
    next_fire_at: isoTimeOrNull(snapshot.nextFireAt),
    runtime: storedRuntime(record.id, record.created_at, snapshot.runtime),
    execution: JSON.stringify(snapshot.execution),
    signal_count,
    audit_count,
    end_outputs,
    updated_at,
    data_patch: undefined as string | undefined,
    data: undefined as string | undefined,
  };
}

/** @param text used if the section is still `raw`, the one of the request */
function sectionText(section: JsonObject, raw: unknown, text: string | undefined): string {
  return (section === raw ? text : undefined) ?? objectText(section);
}

export function priorityLabel(rank: number): string {
  const word = PRIORITIES[rank] ?? 'normal';
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Null unless failed. A failed instance that is paused keeps its failure. */
export function failureOf({ snapshot: { state, execution } }: InstanceRecord): Failure | null {
  const isFailed = state === 'failed' || (state === 'paused' && execution.f === 1);
  return isFailed ? (execution.y ?? null) : null;
}

/** A slot is held while the instance is running or waiting, or kept as `limits.ts` describes. */
export type PermitStatus = 'none' | 'wanted' | 'held';

/** A key without a limit has no effect. */
export function isKeyed(record: InstanceRecord): boolean {
  return record.concurrency_key !== null && record.max_concurrency !== null;
}

export function permitStatus(record: InstanceRecord): PermitStatus {
  if (!isKeyed(record)) return 'none';
  const { state, execution } = record.snapshot;
  if (execution.w === WAITS_FOR_SLOT) return 'wanted';
  return state === 'running' || state === 'waiting' || execution.r === 1 ? 'held' : 'none';
}

/** No tasks while paused, postponed, or without a slot of the concurrency key. */
export function offersTasks(record: InstanceRecord): boolean {
  const { state, execution } = record.snapshot;
  if (state === 'paused' || execution.h !== undefined) return false;
  return !isKeyed(record) || permitStatus(record) === 'held';
}
