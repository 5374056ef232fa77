/**
 * What a capsule carries of an instance, read while the instance is fenced. Beside what the
 * importer shows, that is everything that keeps it from doing again what is done: outputs, the place
 * in the plan, the items of running loops, and the instance's own blocks.
 */

import type { Block } from '../../schema/blocks.js';
import {
  type CheckpointRecord,
  PAYLOAD_BYTES_MAX,
} from '../../src/core/continuity/capsule-payload.js';
import { writeTree } from '../../src/core/continuity/execution-tree.js';
import type { OutputText, PayloadFrame } from '../../src/core/continuity/sealed-payload.js';
import type { Execution } from '../../src/core/execution.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/core/json.js';
import type { Plan } from '../../src/core/plan.js';
import { PRIORITIES } from '../../src/core/states.js';
import { conflict } from '../../src/errors.js';
import type { Plans } from '../catalog/plans.js';
import type { CheckpointRow, FrozenInstanceRow, ItemsRow } from './capsule-sql.js';
import type { ExecutionService } from './execution-service.js';

export interface CapsuleContents {
  readonly frame: PayloadFrame;
  readonly outputs: readonly OutputText[];
  readonly sequence: { readonly version: number; readonly definition: JsonValue };
  /** The block at which the instance stands, if it stands at one. */
  readonly currentStep: string | null;
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
  const [row, checkpoint, totals] = await Promise.all([
    rows.frozenInstance(instance),
    rows.lastCheckpoint(instance),
    rows.outputTotals(instance),
  ]);
  if (row === undefined) throw conflict(`instance ${instance} is not here`);
  if (checkpoint === undefined) throw conflict(`instance ${instance} has no checkpoint`);
  // Before they are read: there may be far more of them than fit.
  if (totals.bytes > PAYLOAD_BYTES_MAX) {
    throw conflict(`the outputs of instance ${instance} are too large for a capsule`);
  }
  const [outputs, items, effectIds, plan] = await Promise.all([
    rows.frozenOutputs(instance),
    rows.frozenItems(instance),
    rows.effectIds(instance),
    planOf(plans, row),
  ]);
  const runtime = jsonOf(row.runtime) as JsonObject;
  const { current_step: step } = runtime;
  return {
    frame: {
      instance: instanceOf(row, runtime),
      checkpoint: checkpointOf(checkpoint),
      execution_tree: treeOf(row, items, plan),
      effect_ids: effectIds,
      pending_waits: [],
      pending_signals: [],
      artifacts: [],
      stream_cursors: [],
      redacted_audit_context: null,
    },
    outputs,
    sequence: { version: row.version, definition: jsonOf(row.definition) },
    currentStep: typeof step === 'string' ? step : null,
  };
}

async function planOf(plans: Plans, { sequence_id, injected }: FrozenInstanceRow): Promise<Plan> {
  const blocks = ownBlocks(injected);
  const compiled =
    blocks.length === 0
      ? await plans.load(sequence_id).then((stored) => stored && { ok: true as const, ...stored })
      : await plans.compile(sequence_id, blocks as unknown as Block[]);
  if (compiled === undefined) throw conflict(`sequence ${sequence_id} is not here any more`);
  if (!compiled.ok) throw new Error(`a stored instance does not compile: ${compiled.message}`);
  return compiled.plan;
}

function ownBlocks(injected: string | null): JsonObject[] {
  return injected === null ? [] : (JSON.parse(injected) as JsonObject[]);
}

function instanceOf(row: FrozenInstanceRow, runtime: JsonObject): PayloadFrame['instance'] {
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
      runtime,
    },
    budget: null,
    parent_instance_id: row.parent_instance_id,
  };
}

function checkpointOf({ checkpoint_data, ...row }: CheckpointRow): CheckpointRecord {
  return { ...row, checkpoint_data: jsonOf(checkpoint_data) };
}

function treeOf(
  { execution, injected }: FrozenInstanceRow,
  items: readonly ItemsRow[],
  plan: Plan,
): JsonObject[] {
  const tree = {
    execution: JSON.parse(execution) as Execution,
    items: new Map(items.map(({ key, items: list }) => [key, jsonOf(list) as JsonValue[]])),
    blocks: ownBlocks(injected).filter(isJsonObject),
  };
  return writeTree(tree, plan);
}

function jsonOf(text: string): JsonValue {
  return JSON.parse(text) as JsonValue;
}
