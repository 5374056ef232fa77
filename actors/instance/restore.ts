/** From the rows of an instance to its actor. */

import type { Plan } from '../../src/core/plan.js';
import type { Plans } from '../catalog/plans.js';
import type { Rows } from '../runtime/loader.js';
import type { LoadedInstance } from '../runtime/rows.js';
import { nodeOf } from './edits.js';
import { type InstanceEnv, type LiveInstance, liveInstance } from './live-instance.js';
import { type InstanceRecord, recordOfRow } from './record.js';
import { taskOfRow } from './worker-task.js';

export interface RestoreDeps {
  readonly env: InstanceEnv;
  readonly loader: Rows;
  readonly plans: Plans;
}

/** Undefined when its sequence is gone; rejects when the database cannot be asked. */
export async function restoreActor(
  { env, loader, plans }: RestoreDeps,
  loaded: LoadedInstance,
): Promise<LiveInstance | undefined> {
  const record = recordOfRow(loaded.row);
  const plan = await planOf(plans, record);
  if (plan === undefined) return undefined;
  const outputs = await loader.outputs(record.id, plan.outputRefs);
  for (const [block, output] of outputs) record.snapshot.outputs.set(block, output);
  for (const [key, items] of loaded.snapshots) record.snapshot.snapshots.set(key, items);
  const actor = liveInstance(record, plan, env);
  for (const row of loaded.tasks)
    actor.tasks.set(row.id, taskOfRow(row, nodeOf(plan, row.block_id)));
  actor.timer = loaded.timer;
  return actor;
}

async function planOf(plans: Plans, record: InstanceRecord): Promise<Plan | undefined> {
  const { id, sequenceId, injected } = record;
  if (injected.length === 0) return (await plans.load(sequenceId))?.plan;
  const compiled = await plans.compile(sequenceId, injected);
  if (compiled?.ok === false)
    throw new Error(`instance ${id} does not compile: ${compiled.message}`);
  return compiled?.plan;
}

/** The JSON text that the actor holds. */
export function textOf({ row }: LoadedInstance): number {
  const { data, config, metadata, execution, injected } = row;
  const texts = [data, config, metadata, execution, injected ?? ''];
  return texts.reduce((sum, text) => sum + text.length, 0);
}
