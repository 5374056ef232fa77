/**
 * Rows as wire records, in JSON text. JSON columns arrive as text that Postgres has checked, and are
 * spliced in as they are: a list of large contexts is not parsed and written again. The fields and
 * their order are those of the records that actors build from memory (`wireInstance`, `wireTask`).
 * Pure.
 */

import type { JsonObject } from '../../src/base/json.js';
import { shownRuntime } from '../../src/core/instance-state.js';
import { NOTE_MARK } from '../../src/core/progress.js';
import { columnsBut, columnsOf, type StoredRow } from '../../src/db/table.js';
import type { ListedOutput } from './loads.js';
import { CHECKPOINTS } from './output-tables.js';
import { priorityLabel } from './record.js';
import { INSTANCES } from './tables.js';
import { WORKER_TASKS } from './task-tables.js';
import { taskIdempotencyKey } from './worker-task.js';

/** The evaluator's snapshot is the actor's alone. */
export const INSTANCE_COLUMNS = columnsBut(
  INSTANCES,
  'execution',
  'creation_audit',
  'signal_count',
  'audit_count',
  'cron_schedule_id',
  'traceparent',
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
  'ownership_epoch',
);
/** What a task shows of its instance. */
export const TASK_INSTANCE_COLUMNS = columnsOf(INSTANCES, 'data', 'config', 'traceparent');
export type TaskWireRow = StoredRow<typeof WORKER_TASKS, (typeof TASK_COLUMNS)[number]> &
  StoredRow<typeof INSTANCES, (typeof TASK_INSTANCE_COLUMNS)[number]>;

export const CHECKPOINT_COLUMNS = columnsBut(CHECKPOINTS);
export type CheckpointWireRow = StoredRow<typeof CHECKPOINTS>;

/** `TaskInstance`. */
export function instanceText(row: InstanceWireRow): string {
  const texts = cancellingTexts(row);
  const { cancelling } = texts;
  return (
    `{"id":"${row.id}","sequence_id":"${row.sequence_id}"` +
    `,"tenant_id":${quote(row.tenant_id)},"namespace":${quote(row.namespace)}` +
    `,"state":"${row.state}","next_fire_at":${quote(row.next_fire_at)}` +
    `,"priority":"${priorityLabel(row.priority)}","timezone":${quote(row.timezone)}` +
    `,"metadata":${row.metadata},"context":${contextText(row, texts)}` +
    unlessNull('concurrency_key', row.concurrency_key) +
    unlessNull('max_concurrency', row.max_concurrency) +
    unlessNull('idempotency_key', row.idempotency_key) +
    unlessNull('parent_instance_id', row.parent_instance_id) +
    unlessNull('timeout', row.timeout) +
    `,"failure":${row.failure}${cancelling === undefined ? '' : `,"cancelling":${cancelling}`}` +
    `,"created_at":"${row.created_at}","updated_at":"${row.updated_at}"}`
  );
}

/** Of one that is being cancelled: what its record says of that, and its section without it. */
function cancellingTexts({ runtime }: Pick<InstanceWireRow, 'runtime'>): {
  readonly cancelling?: string;
  readonly runtime?: string;
} {
  if (!runtime.includes('"cancelling":')) return {};
  const section = JSON.parse(runtime) as JsonObject;
  const { cancelling } = section;
  return { cancelling: JSON.stringify(cancelling), runtime: JSON.stringify(shownRuntime(section)) };
}

/** `InstanceContext`. */
export function contextText(row: InstanceWireRow, texts = cancellingTexts(row)): string {
  const { data, config, context_audit: audit } = row;
  const { runtime = row.runtime } = texts;
  return `{"data":${data},"config":${config},"audit":${audit},"runtime":${runtime}}`;
}

/** `WorkerTask`. */
export function taskText(row: TaskWireRow): string {
  return (
    `{"id":"${row.id}","instance_id":"${row.instance_id}","block_id":${quote(row.block_id)}` +
    `,"handler_name":${quote(row.handler_name)}${unlessNull('queue_name', row.queue_name)}` +
    `,"params":${row.params}` +
    `,"context":{"data":${overlaid(row.data, row.overlay)},"config":${row.config}}` +
    `,"attempt":${row.attempt},"idempotency_key":"${taskIdempotencyKey(row)}"` +
    `,"timeout_ms":${row.timeout_ms},"state":"${row.state}"` +
    `,"worker_id":${quote(row.worker_id)},"claim_epoch":${row.claim_epoch}` +
    `,"lost_claims":${row.lost_claims}` +
    `,"claimed_at":${quote(row.claimed_at)},"heartbeat_at":${quote(row.heartbeat_at)}` +
    `,"completed_at":${quote(row.completed_at)},"output":${row.output}` +
    `,"error_message":${quote(row.error_message)},"error_retryable":${row.error_retryable}` +
    `,"checkpoint_seq":${row.checkpoint_seq}` +
    (row.resume_checkpoint === null ? '' : `,"resume_checkpoint":${row.resume_checkpoint}`) +
    unlessNull('traceparent', row.traceparent) +
    `,"created_at":"${row.created_at}"}`
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

/** Of what a block in a loop left; a note of such a block has a mark behind it. */
export function iterationText({ iteration }: Pick<ListedOutput, 'iteration'>): string {
  const [place] = iteration.split(NOTE_MARK);
  return place === '' ? '' : `,"iteration":${JSON.stringify(place)}`;
}

/** `Checkpoint`: data of null is the JSON value null. */
export function checkpointText(row: CheckpointWireRow): string {
  return (
    `{"id":"${row.id}","instance_id":"${row.instance_id}"` +
    `,"checkpoint_data":${row.checkpoint_data},"created_at":"${row.created_at}"}`
  );
}

/** What a for_each adds to context.data for the step; only then is anything parsed. */
function overlaid(data: string, overlay: string | null): string {
  if (overlay === null) return data;
  return JSON.stringify({ ...JSON.parse(data), ...JSON.parse(overlay) });
}

function quote(value: string | null): string {
  return JSON.stringify(value);
}

function unlessNull(name: string, value: string | number | null): string {
  return value === null ? '' : `,"${name}":${JSON.stringify(value)}`;
}
