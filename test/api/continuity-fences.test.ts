/** What is not this engine's to run is neither run nor changed here; `restart-records` kills it, too. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EffectReceipt } from '../../schema/continuity.js';
import type { WorkerTask } from '../../schema/worker.js';
import { newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { accepted, exported, imported, type Passage, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { MIGRATE } from '../helpers/edits.js';

const api = useSharedApi();

interface Held extends Passage {
  readonly handler: string;
  readonly task: WorkerTask;
}

/** An execution whose only step a worker has claimed, and says nothing of: it may be handed over. */
async function held(): Promise<Held> {
  const tenant = api.tenant();
  const handler = newHandler();
  const id = await tenant.run([step('a', handler)]);
  const task = await tenant.task(handler);
  await tenant.until(id, 'waiting');
  const [receipt] = expectStatus(
    await tenant.get<EffectReceipt[]>(`/instances/${id}/effects`),
    200,
  );
  for (const state of ['unknown', 'abandoned']) {
    const path = `/continuity/effects/${receipt?.id}/resolve`;
    expectStatus(await tenant.post(path, { state }), 200);
  }
  return { ...(await passageOf(tenant, id)), handler, task };
}

/** Asks for every change there is; resolves with the statuses of the answers. */
async function tried({ tenant, id, task }: Held, as: Tenant = tenant): Promise<number[]> {
  const instance = `/instances/${id}`;
  const worker = { worker_id: task.worker_id, claim_epoch: task.claim_epoch };
  const replies = [
    as.patch(`${instance}/state`, { state: 'scheduled' }),
    as.patch(`${instance}/state`, { state: 'cancelled' }),
    as.patch(`${instance}/context`, { context: { data: { n: 1 } } }),
    as.post(`${instance}/signals`, { signal_type: 'resume' }),
    as.post(`${instance}/signals`, { signal_type: 'cancel' }),
    as.post(`${instance}/retry`),
    as.post(`${instance}/resume-from/a`),
    as.post(`${instance}/inject-blocks`, { blocks: [step('x', 'noop')] }),
    as.post(`${instance}/fork`, { from_block_id: 'a' }),
    as.post(`${instance}/checkpoints`, { checkpoint_data: {} }),
    as.post(`${instance}/checkpoints/prune`, { keep: 0 }),
    as.post(MIGRATE, {
      instance_id: id,
      target_sequence_id: (await tenant.instance(id)).sequence_id,
    }),
    as.post(`/workers/tasks/${task.id}/complete`, { ...worker, output: {} }),
    as.post(`/workers/tasks/${task.id}/fail`, { ...worker, message: 'no' }),
    as.post(`/workers/tasks/${task.id}/heartbeat`, worker),
  ];
  return (await Promise.all(replies)).map(({ status }) => status);
}

async function assertUntouchable(world: Held): Promise<void> {
  const { tenant, id, handler } = world;
  const before = await tenant.instance(id);
  assert.deepEqual(new Set(await tried(world)), new Set([409]));
  assert.deepEqual(new Set(await tried(world, api.tenant())), new Set([404]));
  const filter = { sequence_id: before.sequence_id };
  const change = await tenant.patch('/instances/bulk/state', { filter, state: 'cancelled' });
  assert.ok(change.status < 300, change.text);
  assert.deepEqual(await tenant.poll(handler), []);
  assert.deepEqual(await tenant.instance(id), before);
}

test('an instance that is being handed over is left alone', async () => {
  const world = await held();
  await exported(world, await world.handoff(world.id, world.destination));
  await assertUntouchable(world);
});

test('one that comes back goes on with the worker that had its task', async () => {
  const world = await held();
  const { tenant, id, task } = world;
  const handoff = await world.handoff(id, world.destination);
  await exported(world, handoff);
  expectStatus(await world.act(handoff.id, 'revoke'), 200);
  await world.handoff(id, world.destination);
  assert.equal((await world.execution(id)).state, 'owned');
  await tenant.complete(task);
  await tenant.until(id, 'completed');
});

test('one that was imported runs once it is owned, and the one that it came from never again', async () => {
  const world = await held();
  const { tenant, handler } = world;
  const bundle = await exported(world, await world.handoff(world.id, world.destination));
  const { instance_id } = await imported(tenant, bundle);
  const ofImport = { ...world, id: instance_id };
  const changed = (await tried(ofImport)).slice(0, 12);
  assert.deepEqual(new Set(changed), new Set([409]));
  await accepted(world, bundle.handoff.id, instance_id);
  expectStatus(await world.act(bundle.handoff.id, 'resume'), 200);
  const task = await tenant.task(handler);
  assert.equal(task.instance_id, instance_id);
  await tenant.complete(task);
  await tenant.until(instance_id, 'completed');
  await assertUntouchable(world);
});
