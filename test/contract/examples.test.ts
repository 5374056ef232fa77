/**
 * The examples of request bodies, sent to the real server in the order of the story that they tell:
 * what a reader copies out of the document works. Ids that the server makes take the place of those
 * in the examples.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MigrationPlan } from '../../schema/continuity.js';
import {
  AT,
  EXAMPLE_DIGEST,
  EXAMPLE_IDS,
  EXAMPLE_TENANT,
  UNTIL,
} from '../../schema/example-values.js';
import { exampleOf, parameterExample } from '../../schema/examples.js';
import type {
  CapsuleImported,
  Handoff,
  HandoffExported,
  HandoffPreview,
} from '../../schema/handoff.js';
import type { InstanceCreated } from '../../schema/instance.js';
import { type BodyRouteId, ROUTES, type RouteId } from '../../schema/routes.js';
import type { TasksExchanged, WorkerTask } from '../../schema/worker.js';
import { eventually, type Json, step, useSharedApi } from '../helpers/api.js';
import type { Reply } from '../helpers/client.js';

const api = useSharedApi();
const tenant = api.tenant(EXAMPLE_TENANT);

/** From ids of the examples to those of the server. */
const realIds = new Map<string, string>();
const sent = new Set<RouteId>();
/** Of the link that was made last. */
let token = '';

function withRealIds(text: string): string {
  let real = text;
  for (const [example, id] of realIds) real = real.replaceAll(example, id);
  return real;
}

/** The path with the parameters of the examples. */
function pathOf(id: RouteId): string {
  const { path } = ROUTES[id];
  const exampleIn = (name: string) => (name === 'token' ? token : parameterExample(name, path));
  return withRealIds(path.replace(/\{(\w+)\}/g, (_, name: string) => String(exampleIn(name))));
}

/** The example of the operation's body, and its success. `changes` are made to the example. */
async function send<T = Json>(id: BodyRouteId, changes: Json = {}): Promise<T> {
  const route = ROUTES[id];
  const example = route.body && exampleOf(route.body);
  assert.ok(example, `${id} has no example`);
  const changed = JSON.stringify({ ...(example as Json), ...changes });
  const body: unknown = JSON.parse(withRealIds(changed));
  const reply: Reply<T> = await tenant.request(route.method, pathOf(id), { body });
  const isTaken = Object.hasOwn(route.replies, reply.status) && reply.status < 300;
  assert.ok(isTaken, `${id} ${reply.status} ${reply.text}`);
  if (Object.keys(changes).length === 0) sent.add(id);
  return reply.body;
}

/** What only a server can make takes the place of what the example has for it. */
function sendFilled<T = Json>(id: BodyRouteId, made: Json): Promise<T> {
  sent.add(id);
  return send<T>(id, made);
}

/** An instance that has not begun goes over to the next version and back. */
async function sendMigration(): Promise<void> {
  await send('continuity.create');
  await send('continuity.appendProvenance');
  const { id, verdict } = await send<MigrationPlan>('migrations.plan');
  assert.equal(verdict, 'approval_required');
  realIds.set(EXAMPLE_IDS.migration, id);
  await send('migrations.apply');
  await send('migrations.rollback');
}

/** It is handed to another runtime, at the third attempt. */
async function sendHandoff(): Promise<void> {
  const { placement, handoff, arrived } = EXAMPLE_IDS;
  const now = Date.now();
  realIds.set(AT, new Date(now).toISOString());
  realIds.set(UNTIL, new Date(now + 240_000).toISOString());
  await send('runtimes.register');
  await send('continuity.place');
  const begin = async () => {
    const preview = await send<HandoffPreview>('continuity.preview');
    realIds.set(placement, preview.placement_decision_id);
    realIds.set(EXAMPLE_DIGEST, preview.preview_sha256);
    realIds.set(handoff, (await send<Handoff>('handoffs.create')).id);
  };
  await begin();
  await send('handoffs.reject');
  await begin();
  await send('handoffs.export');
  await send('handoffs.revoke');
  await begin();
  const { capsule, payload_base64 } = await send<HandoffExported>('handoffs.export');
  const filled = { capsule, payload_base64, expected_epoch: capsule.manifest.epoch };
  const arrival = await sendFilled<CapsuleImported>('capsules.import', filled);
  const { instance_id, import_receipt } = arrival;
  realIds.set(arrived, instance_id);
  await sendFilled('handoffs.accept', { import_receipt });
  await send('handoffs.resume');
}

/** Two people are asked; one of them is sent a link. */
async function sendApprovals(): Promise<void> {
  const gate = { wait_for_input: { allow_comment: true } };
  const ask = async () => {
    await tenant.runUntil('waiting', [step('approve', 'noop', gate)]);
    const { body } = await tenant.get<{ items: { id: string }[] }>('/approvals');
    realIds.set(EXAMPLE_IDS.approval, body.items[0]!.id);
  };
  await ask();
  const { url } = await send<{ url: string }>('approvals.link');
  token = url.slice(url.lastIndexOf('/') + 1);
  await send('approvals.answerByLink');
  await ask();
  await send('approvals.answer');
}

/** They hold what somebody else has signed: `two-engines.test.ts` and `triggers.test.ts` send them. */
const SIGNED_ELSEWHERE: readonly RouteId[] = [
  ...(['continuity.claim', 'handoffs.attach', 'triggers.fire', 'triggers.receive'] as const),
];

/** Back to the baseline; this takes no body. */
async function rollBack(): Promise<void> {
  const reply = await tenant.post(pathOf('releases.rollback'));
  assert.equal(reply.status, 200, reply.text);
}

test('every example of a request is taken by the server', async () => {
  const { sequence, nextSequence, instance, task, schedule, subscription, release } = EXAMPLE_IDS;
  await send('sequences.validate');
  assert.equal((await send('sequences.create')).id, sequence);
  await send('sequences.create', { id: nextSequence, version: 2 });
  await send('sequences.update');
  await send('rateLimits.put');
  await send('workerEndpoints.put');

  const { id } = await send<InstanceCreated>('instances.create');
  realIds.set(instance, id);
  await send('instances.createBatch');
  await tenant.until(id, 'waiting');
  await send('instances.signal');
  await send('instances.patchContext');
  await send('instances.saveCheckpoint');
  await send('instances.pruneCheckpoints');
  await send('instances.injectBlocks');

  assert.deepEqual(await send('workers.pollQueue'), []);
  const tasks: WorkerTask[] = [];
  await eventually(async () => {
    tasks.push(...(await send<WorkerTask[]>('workers.poll')));
    assert.equal(tasks.length, 3);
  });
  const [own] = tasks.filter((one) => one.instance_id === id);
  const [other, exchanged] = tasks.filter((one) => one.instance_id !== id);
  assert.ok(own && other && exchanged);
  realIds.set(task, exchanged.id);
  const { outcomes } = await send<TasksExchanged>('workers.exchange');
  assert.deepEqual(outcomes, [{ task_id: exchanged.id, status: 200 }]);
  realIds.set(task, own.id);
  await send('workers.heartbeat');
  await send('workers.complete');
  await tenant.until(id, 'completed');
  await send('instances.fork');
  await send('instances.dryRun');

  realIds.set(task, other.id);
  realIds.set(instance, other.instance_id);
  await send('workers.fail');
  await tenant.until(other.instance_id, 'failed');
  await send('continuity.resolveEffect');
  await send('instances.retry');
  await tenant.post(`/instances/${other.instance_id}/signals`, { signal_type: 'cancel' });
  await tenant.until(other.instance_id, 'cancelled');
  await send('instances.resumeFrom');
  await send('instances.bulkState');
  await send('instances.batchAction');

  const later = { next_fire_at: '2100-01-01T00:00:00Z', idempotency_key: 'order-A-1002' };
  realIds.set(instance, (await send<InstanceCreated>('instances.create', later)).id);
  await send('instances.bulkReschedule');
  await send('sequences.migrateInstance');
  await send('migrations.migrate');
  await send('sequences.migrateInstances');
  await send('instances.patchState');

  await sendApprovals();
  realIds.set(schedule, (await send<{ id: string }>('cron.create')).id);
  await send('cron.update');
  await send('cron.run');
  await send('cron.preview');
  await send('apiKeys.mint');
  await send('tenantLimits.put');
  realIds.set(subscription, (await send<{ id: string }>('webhooks.subscribe')).id);
  await send('webhooks.update');
  await send('triggers.create');
  await send('triggers.update');
  await send('credentials.create');
  await send('credentials.update');
  await send('events.send');
  // The same event: its batch says that it was there.
  await send('events.sendBatch');

  const third = { ...later, idempotency_key: 'order-A-1003' };
  realIds.set(instance, (await send<InstanceCreated>('instances.create', third)).id);
  await send('instances.patchState');
  await sendMigration();
  await sendHandoff();

  await send('sequences.compare');
  realIds.set(release, (await send<{ id: string }>('releases.create')).id);
  await send('releases.validate');
  await send('releases.canary');
  await rollBack();
  // Without gates, since nothing shows yet that they pass.
  realIds.set(release, (await send<{ id: string }>('releases.create', { gates: [] })).id);
  await send('releases.validate', { skip: true });
  await send('releases.canary', { percent: 100 });
  await send('releases.promote');

  const withBody = Object.values(ROUTES).filter(({ body }) => body !== undefined);
  assert.deepEqual(
    withBody.map((route) => route.id).filter((route) => !sent.has(route)),
    SIGNED_ELSEWHERE,
    'operations whose example was not sent',
  );
});
