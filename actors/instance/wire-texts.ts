/**
 * Wire records as JSON text. JSON columns are inserted unchanged, since Postgres has checked them,
 * so that a list of large contexts is not parsed. Pure.
 */

import { type JsonObject, objectText, textOfJson } from '../../src/base/json.js';
import { isoTimeOrNull } from '../../src/base/time.js';
import { NOTE_MARK } from '../../src/core/progress.js';
import { columnsBut, type StoredRow } from '../../src/db/table.js';
import { dataText } from './context-data.js';
import { runtimeText } from './core/runtime-text.js';
import type { ListedOutput } from './loads.js';
import { CHECKPOINTS } from './output-tables.js';
import { failureOf, type InstanceRecord, priorityLabel } from './record.js';
import { INSTANCES } from './tables.js';
import { WORKER_TASKS } from './task-tables.js';
import {
  taskIdempotencyKey,
  textOrNull,
  timeOrNull,
  type WorkerTaskRecord,
} from './worker-task.js';

export const INSTANCE_COLUMNS = columnsBut(
  INSTANCES,
  'execution',
  'creation_audit',
  'end_outputs',
  'signal_count',
  'audit_count',
  'cron_schedule_id',
  'release_id',
  'release_variant',
  'creation_data',
  'continuity_id',
  'ownership_epoch',
  'fence',
);
export type InstanceWireRow = StoredRow<typeof INSTANCES, (typeof INSTANCE_COLUMNS)[number]>;

export const TASK_COLUMNS = columnsBut(
  WORKER_TASKS,
  'tenant_id',
  'node',
  'priority',
  'withdrawn',
  'history',
  'rank',
  'ownership_epoch',
);
export const TASK_INSTANCE_COLUMNS = ['data', 'data_patch', 'config', 'traceparent'] as const;
export type TaskWireRow = StoredRow<typeof WORKER_TASKS, (typeof TASK_COLUMNS)[number]> &
  StoredRow<typeof INSTANCES, (typeof TASK_INSTANCE_COLUMNS)[number]>;

export const CHECKPOINT_COLUMNS = columnsBut(CHECKPOINTS);
export type CheckpointWireRow = StoredRow<typeof CHECKPOINTS>;

/** `TaskInstance`. */
export function instanceText(row: InstanceWireRow): string {
  return instanceRecordText(row, wholeRow(row));
}

/** With the whole texts of columns that are stored in parts. */
export function wholeRow(row: InstanceWireRow) {
  return { ...row, data: dataText(row), runtime: runtimeText(row.id, row) };
}

/** `TaskInstance` from memory. */
export function wireInstance(record: InstanceRecord): string {
  const { snapshot } = record;
  const failure = failureOf(record);
  const context = contextColumns(record);
  return instanceRecordText(record, {
    data: context.data,
    config: context.config,
    context_audit: context.context_audit,
    runtime: context.runtime,
    state: snapshot.state,
    next_fire_at: isoTimeOrNull(snapshot.nextFireAt),
    timezone: snapshot.timezone,
    metadata: objectText(record.metadata),
    failure: failure === null ? null : JSON.stringify(failure),
    timeout: snapshot.timeoutMs ?? null,
  });
}

/**
 * `InstanceResult`.
 *
 * @param outputs as JSON, by block
 */
export function resultText(
  record: InstanceRecord,
  deduplicated: boolean,
  outputs: ReadonlyMap<string, string> | undefined,
): string {
  const members = outputs && [...outputs].map(([id, text]) => `${quote(id)}:${text}`).join(',');
  const fits = members !== undefined && members.length <= RESULT_CHARACTERS_MAX;
  return (
    `{"id":"${record.id}","deduplicated":${deduplicated},"state":"${record.snapshot.state}"` +
    `${fits ? `,"outputs":{${members}}` : ''},"failure":${JSON.stringify(failureOf(record))}}`
  );
}

/** Of the outputs in a response to a caller who waited; a larger one would delay others. */
const RESULT_CHARACTERS_MAX = 1024 * 1024;

/** `InstanceContext` from memory. */
export function wireContext(record: InstanceRecord): string {
  return contextText(contextColumns(record));
}

function contextColumns({ snapshot, context_audit }: InstanceRecord): ContextRow {
  return {
    data: objectText(snapshot.data),
    config: objectText(snapshot.config),
    context_audit: context_audit.length === 0 ? '[]' : JSON.stringify(context_audit),
    runtime: objectText(snapshot.runtime),
  };
}

interface ContextRow extends Pick<InstanceWireRow, 'config' | 'context_audit' | 'runtime'> {
  readonly data: string;
}
type Progressed = ContextRow &
  Pick<InstanceWireRow, 'state' | 'next_fire_at' | 'timezone' | 'metadata' | 'failure' | 'timeout'>;

function instanceRecordText(
  row: Omit<InstanceWireRow, keyof Progressed | 'data_patch'>,
  progressed: Progressed,
): string {
  const texts = cancellingTexts(progressed);
  const { cancelling } = texts;
  return (
    `{"id":"${row.id}","sequence_id":"${row.sequence_id}"` +
    `,"tenant_id":${quote(row.tenant_id)},"namespace":${quote(row.namespace)}` +
    `,"state":"${progressed.state}","next_fire_at":${timeOrNull(progressed.next_fire_at)}` +
    `,"priority":"${priorityLabel(row.priority)}","timezone":${quote(progressed.timezone)}` +
    `,"metadata":${progressed.metadata},"context":${contextText(progressed, texts)}` +
    unlessNull('concurrency_key', row.concurrency_key) +
    unlessNull('max_concurrency', row.max_concurrency) +
    unlessNull('idempotency_key', row.idempotency_key) +
    unlessNull('parent_instance_id', row.parent_instance_id) +
    unlessNull('timeout', progressed.timeout) +
    unlessNull('traceparent', row.traceparent) +
    `,"failure":${progressed.failure}` +
    (cancelling === undefined ? '' : `,"cancelling":${cancelling}`) +
    `,"created_at":"${row.created_at}","updated_at":"${row.updated_at}"}`
  );
}

/** The field `cancelling` of an instance that is being cancelled, and `runtime` without it. */
function cancellingTexts({ runtime }: Pick<InstanceWireRow, 'runtime'>): {
  readonly cancelling?: string;
  readonly runtime?: string;
} {
  if (!runtime.includes('"cancelling":')) return {};
  const { cancelling, ...shown } = JSON.parse(runtime) as JsonObject;
  return { cancelling: JSON.stringify(cancelling), runtime: JSON.stringify(shown) };
}

/** `InstanceContext`. */
export function contextText(row: ContextRow, texts = cancellingTexts(row)): string {
  const { data, config, context_audit: audit } = row;
  const { runtime = row.runtime } = texts;
  return `{"data":${data},"config":${config},"audit":${audit},"runtime":${runtime}}`;
}

/** `WorkerTask`. */
export function taskText(row: TaskWireRow): string {
  return taskRecordText(row, dataText(row, row.overlay), row.config, row.traceparent);
}

/** `WorkerTask` from memory. The overlay is added to `context.data` for the step. */
export function wireTask(
  task: WorkerTaskRecord,
  { data, config }: { readonly data: JsonObject; readonly config: JsonObject },
  overlay: JsonObject | null,
  traceparent: string | null = null,
): string {
  const text = textOfJson(overlay === null ? data : { ...data, ...overlay });
  return taskRecordText(task, text, JSON.stringify(config), traceparent);
}

type ShownTask = Pick<TaskWireRow, Exclude<(typeof TASK_COLUMNS)[number], 'overlay' | 'secrets'>>;

/** Concatenated, because it is half the cost of a reply to a worker. */
function taskRecordText(
  task: ShownTask,
  data: string,
  config: string,
  traceparent: string | null,
): string {
  return (
    `{"id":"${task.id}","instance_id":"${task.instance_id}","block_id":${quote(task.block_id)}` +
    `,"handler_name":${quote(task.handler_name)}${unlessNull('queue_name', task.queue_name)}` +
    `,"params":${task.params},"context":{"data":${data},"config":${config}}` +
    `,"attempt":${task.attempt},"idempotency_key":"${taskIdempotencyKey(task)}"` +
    `,"timeout_ms":${task.timeout_ms},"state":"${task.state}"` +
    `,"worker_id":${textOrNull(task.worker_id)},"claim_epoch":${task.claim_epoch}` +
    `,"lost_claims":${task.lost_claims}` +
    `,"claimed_at":${timeOrNull(task.claimed_at)},"heartbeat_at":${timeOrNull(task.heartbeat_at)}` +
    `,"completed_at":${timeOrNull(task.completed_at)},"output":${task.output}` +
    `,"error_message":${textOrNull(task.error_message)}` +
    `,"error_retryable":${task.error_retryable},"checkpoint_seq":${task.checkpoint_seq}` +
    (task.resume_checkpoint === null ? '' : `,"resume_checkpoint":${task.resume_checkpoint}`) +
    unlessNull('traceparent', traceparent) +
    `,"created_at":"${task.created_at}"}`
  );
}

/** `BlockOutput`. */
export function outputText(row: ListedOutput): string {
  return (
    `{"id":"${row.id}","instance_id":"${row.instance_id}","block_id":${quote(row.block_id)}` +
    `,"output":${row.output},"output_ref":${quote(row.output_ref)}` +
    `,"output_size":${row.output_size},"attempt":${row.attempt}${iterationText(row)}` +
    `,"created_at":"${row.created_at}"}`
  );
}

/** The field is present for blocks in loops. A note has a mark after its iteration. */
export function iterationText({ iteration }: Pick<ListedOutput, 'iteration'>): string {
  const [place] = iteration.split(NOTE_MARK);
  return place === '' ? '' : `,"iteration":${JSON.stringify(place)}`;
}

/** `Checkpoint`; null data becomes the JSON value null. */
export function checkpointText(row: CheckpointWireRow): string {
  return (
    `{"id":"${row.id}","instance_id":"${row.instance_id}"` +
    `,"checkpoint_data":${row.checkpoint_data},"created_at":"${row.created_at}"}`
  );
}

function quote(value: string | null): string {
  return JSON.stringify(value);
}

function unlessNull(name: string, value: string | number | null): string {
  return value === null ? '' : `,"${name}":${JSON.stringify(value)}`;
}
