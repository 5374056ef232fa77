/**
 * What a capsule carries of an instance, read while the instance is fenced. Beside what the
 * importer shows, that is everything that keeps it from doing again what is done: outputs, the place
 * in the plan, the items of running loops, and the instance's own blocks.
 */

import type { Block } from '../../schema/blocks.js';
import type { CheckpointRecord } from '../../schema/continuity.js';
import type { CapsuleFacts } from '../../src/core/continuity/capsule.js';
import { PAYLOAD_BYTES_MAX } from '../../src/core/continuity/capsule-payload.js';
import { writeTree } from '../../src/core/continuity/execution-tree.js';
import type { OutputText, PayloadFrame } from '../../src/core/continuity/sealed-payload.js';
import type { Execution } from '../../src/core/execution.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import type { Plan } from '../../src/core/plan.js';
import { PRIORITIES } from '../../src/core/states.js';
import { conflict } from '../../src/errors.js';
import type { Plans } from '../catalog/plans.js';
import type { ExecutionService } from './execution-service.js';
import type { ContinuityRows, FrozenInstanceRow } from './rows.js';

export interface CapsuleContents
  extends Pick<CapsuleFacts, 'sequence_version' | 'sequence_definition' | 'current_step'> {
  readonly frame: PayloadFrame;
  readonly outputs: readonly OutputText[];
}

/**
 * Rejects with 409 when the instance has no checkpoint, is not here, or is too large for a capsule.
 *
 * @param instance fenced, so that its rows stay as they are
 */
export async function contentsOf(
  { rows, plans }: ExecutionService,
  instance: string,
): Promise<CapsuleContents> {
  const [row, totals] = await Promise.all([
    rows.one('frozenInstance', instance),
    rows.one('outputTotals', instance),
  ]);
  if (row === undefined) throw conflict(`instance ${instance} is not here`);
  const checkpoint = await checkpointOf(rows, instance);
  // Before they are read: there may be far more of them than fit.
  if ((totals?.bytes ?? 0) > PAYLOAD_BYTES_MAX) {
    throw conflict(`the outputs of instance ${instance} are too large for a capsule`);
  }
  const blocks = row.injected === null ? [] : (jsonOf(row.injected) as JsonObject[]);
  const [outputs, items, effects, plan] = await Promise.all([
    rows.all('frozenOutputs', instance),
    rows.all('items', instance),
    rows.all('effectIds', instance),
    planOf(plans, row.sequence_id, blocks),
  ]);
  const tree = {
    execution: jsonOf(row.execution) as unknown as Execution,
    items: new Map(items.map(({ key, items: list }) => [key, jsonOf(list) as JsonValue[]])),
    blocks,
  };
  const instanceShown = instanceOf(row);
  const { current_step: step } = instanceShown.context.runtime;
  return {
    frame: {
      instance: instanceShown,
      checkpoint,
      execution_tree: writeTree(tree, plan),
      effect_ids: effects.map(({ id }) => id),
      pending_waits: [],
      pending_signals: [],
      artifacts: [],
      stream_cursors: [],
      redacted_audit_context: null,
    },
    outputs,
    sequence_version: row.version,
    sequence_definition: jsonOf(row.definition),
    current_step: typeof step === 'string' ? step : null,
  };
}

/** The one that the instance saved last. Rejects with 409 when there is none. */
export async function checkpointOf(
  rows: ContinuityRows,
  instance: string,
): Promise<CheckpointRecord> {
  const row = await rows.one('lastCheckpoint', instance);
  if (row === undefined) throw conflict(`instance ${instance} has no checkpoint`);
  return { ...row, checkpoint_data: jsonOf(row.checkpoint_data) };
}

/** Of a sequence and the blocks of one instance alone. Rejects with 409 when there is none. */
export async function planOf(
  plans: Plans,
  sequence: string,
  blocks: readonly JsonObject[],
): Promise<Plan> {
  const own = blocks as unknown as Block[];
  const compiled =
    own.length === 0
      ? await plans.load(sequence).then((stored) => stored && { ok: true as const, ...stored })
      : await plans.compile(sequence, own);
  if (compiled === undefined) throw conflict(`sequence ${sequence} is not stored here`);
  if (!compiled.ok) throw conflict(compiled.message);
  return compiled.plan;
}

function instanceOf(row: FrozenInstanceRow) {
  return {
    sequence_id: row.sequence_id,
    namespace: row.namespace,
    priority: PRIORITIES[row.priority] ?? 'normal',
    timezone: row.timezone,
    metadata: jsonOf(row.metadata) as JsonObject,
    context: {
      data: jsonOf(row.data),
      config: jsonOf(row.config),
      audit: jsonOf(row.context_audit),
      runtime: jsonOf(row.runtime) as JsonObject,
    },
    budget: null,
    parent_instance_id: row.parent_instance_id,
  };
}

function jsonOf(text: string | null): JsonValue {
  return text === null ? null : (JSON.parse(text) as JsonValue);
}
