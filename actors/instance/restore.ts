/** Restores instances and tasks from their rows. */

import assert from 'node:assert/strict';
import { notFound } from '../../src/base/errors.js';
import type { Plan } from '../../src/core/plan.js';
import type { Plans } from '../catalog/plans.js';
import { awaitsCancel } from './cancel-waits.js';
import { dataLength } from './context-data.js';
import { nodeOfTask } from './edits.js';
import { storedWaits } from './event-waits.js';
import { knownGates } from './gate-rows.js';
import { keptOutputs } from './kept-outputs.js';
import {
  type InstanceEnv,
  type LiveInstance,
  liveInstance,
  type Sources,
} from './live-instance.js';
import type { LoadedInstance, WorkerTaskRow } from './loads.js';
import { type InstanceRecord, recordOfRow } from './record.js';
import { keptSignal } from './signals.js';

/**
 * Undefined when the sequence was deleted; rejects when rows cannot be read. Synchronous if the
 * plan is cached and reads no outputs, as for nearly all instances: in a burst, promises would
 * double the cost.
 */
export function restoreActor(
  env: InstanceEnv,
  { rows, plans }: Pick<Sources, 'rows' | 'plans'>,
  loaded: LoadedInstance,
): LiveInstance | Promise<LiveInstance | undefined> {
  const record = recordOfRow(loaded.row);
  const { snapshot } = record;
  for (const [key, items] of loaded.snapshots) snapshot.snapshots.set(key, items);
  if (loaded.signals.length > 0) snapshot.signals = loaded.signals.map(keptSignal);
  const known = record.injected.length > 0 ? undefined : plans.get(record.sequence_id)?.plan;
  const reads = known?.outputRefs;
  if (
    known !== undefined &&
    reads !== 'all' &&
    reads?.size === 0 &&
    snapshot.snapshots.size === 0
  ) {
    return actorOf(env, record, known, loaded);
  }
  return (async () => {
    const plan = known ?? (await planOf(plans, record));
    if (plan === undefined) return undefined;
    const place = { ...snapshot, snapshots: [...loaded.snapshots.keys()] };
    Object.assign(snapshot, await keptOutputs(rows, plan, place));
    return actorOf(env, record, plan, loaded);
  })();
}

/** The actor of an instance that was just inserted in its first state, with a timer. */
export function firstActor(env: InstanceEnv, record: InstanceRecord, plan: Plan): LiveInstance {
  const actor = liveInstance(record, plan, env);
  const { nextFireAt, execution } = record.snapshot;
  if (plan.hasGates) actor.gates = knownGates(plan, execution);
  actor.timer = { fireAt: nextFireAt, recover: false };
  actor.awaitsCancel = awaitsCancel(record);
  return actor;
}

function actorOf(
  env: InstanceEnv,
  record: InstanceRecord,
  plan: Plan,
  loaded: LoadedInstance,
): LiveInstance {
  const actor = liveInstance(record, plan, env);
  for (const row of loaded.tasks) keepTask(actor, row);
  if (plan.hasGates) actor.gates = knownGates(plan, record.snapshot.execution);
  actor.timer = loaded.timer;
  actor.awaitsCancel = awaitsCancel(record);
  for (const [wait, key] of storedWaits(record)) actor.eventWaits.set(wait, key);
  return actor;
}

async function planOf(plans: Plans, record: InstanceRecord): Promise<Plan | undefined> {
  const compiled = await plans.compile(record.sequence_id, record.injected);
  if (compiled?.ok !== false) return compiled?.plan;
  assert.fail(`instance ${record.id} does not compile: ${compiled.message}`);
}

/** Loads a task that ended long ago, to refuse a call about it and record it in the history. */
export async function recallTask(
  actor: LiveInstance,
  { rows }: Sources,
  task: string,
): Promise<undefined> {
  const row = await rows.task(task);
  if (row?.instance_id !== actor.record.id) throw notFound(`worker task ${task}`);
  keepTask(actor, row);
}

/** The stored index of the node may belong to an earlier plan. */
function keepTask(actor: LiveInstance, row: WorkerTaskRow): void {
  const { id: instance_id, tenant_id } = actor.record;
  actor.tasks.set({ ...row, instance_id, tenant_id, node: nodeOfTask(actor, row) });
}

export function textOf({ row }: LoadedInstance): number {
  const { config, metadata, execution, injected } = row;
  const texts = [config, metadata, execution, injected ?? ''];
  return texts.reduce((sum, text) => sum + text.length, dataLength(row));
}
