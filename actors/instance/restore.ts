/** Builds the state of an instance from its rows. */

import assert from 'node:assert/strict';
import { notFound } from '../../src/base/errors.js';
import type { Plan } from '../../src/core/plan.js';
import type { Plans } from '../catalog/plans.js';
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
 * Undefined when its sequence was deleted; rejects when the rows cannot be read. Synchronous for nearly all instances,
 * whose plan is cached and reads no outputs: in a burst, promises would cost as much as the rest.
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
  if (known !== undefined && !readsOutputs(known, snapshot)) {
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

/** The same for an instance that was just inserted in its first state, with a timer. */
export function firstActor(env: InstanceEnv, record: InstanceRecord, plan: Plan): LiveInstance {
  const actor = liveInstance(record, plan, env);
  const { nextFireAt, execution } = record.snapshot;
  if (plan.hasGates) actor.gates = knownGates(plan, execution);
  actor.timer = { fireAt: nextFireAt, recover: false };
  return actor;
}

function readsOutputs({ outputRefs }: Plan, { snapshots }: InstanceRecord['snapshot']): boolean {
  return outputRefs === 'all' || outputRefs.size > 0 || snapshots.size > 0;
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
  for (const [wait, key] of storedWaits(record)) actor.eventWaits.set(wait, key);
  return actor;
}

async function planOf(plans: Plans, record: InstanceRecord): Promise<Plan | undefined> {
  const compiled = await plans.compile(record.sequence_id, record.injected);
  if (compiled?.ok !== false) return compiled?.plan;
  assert.fail(`instance ${record.id} does not compile: ${compiled.message}`);
}

/** Loads a task that ended long ago: a call about it is refused by its row, and noted in its history. */
export async function recallTask(
  actor: LiveInstance,
  { rows }: Sources,
  task: string,
): Promise<undefined> {
  const row = await rows.task(task);
  if (row?.instance_id !== actor.record.id) throw notFound(`worker task ${task}`);
  keepTask(actor, row);
}

/** Indexes of blocks change with the plan of an instance. */
function keepTask(actor: LiveInstance, row: WorkerTaskRow): void {
  actor.tasks.set(row.id, { ...row, node: nodeOfTask(actor, row) });
}

/** Characters of the JSON that the actor holds. */
export function textOf({ row }: LoadedInstance): number {
  const { data, config, metadata, execution, injected } = row;
  const texts = [data, config, metadata, execution, injected ?? ''];
  return texts.reduce((sum, text) => sum + text.length, 0);
}
