/**
 * The examples of request bodies, sent to the real server in the order of the story that they tell:
 * what a reader copies out of the document works. Ids that the server makes take the place of those
 * in the examples.
 */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EXAMPLE_IDS, EXAMPLE_TENANT } from '../../schema/example-ids.js';
import { EXAMPLES, ID_EXAMPLES } from '../../schema/examples.js';
import type { InstanceCreated } from '../../schema/instance.js';
import { type BodyRouteId, ROUTES, type RouteId } from '../../schema/routes.js';
import type { WorkerTask } from '../../schema/worker.js';
import { type Api, eventually, type Json, startApi, type Tenant } from '../helpers/api.js';
import type { Reply } from '../helpers/client.js';

let api: Api;
let tenant: Tenant;

before(async () => {
  api = await startApi();
  tenant = api.tenant(EXAMPLE_TENANT);
});
after(() => api.stop());

/** From ids of the examples to those of the server. */
const realIds = new Map<string, string>();
const sent = new Set<RouteId>();

function withRealIds(text: string): string {
  let real = text;
  for (const [example, id] of realIds) real = real.replaceAll(example, id);
  return real;
}

/** The path with the parameters of the examples. */
function pathOf(id: RouteId): string {
  const { path } = ROUTES[id];
  const examples: Readonly<Record<string, string | undefined>> = {
    id: ID_EXAMPLES[path.split('/')[1] ?? ''],
    block_id: 'charge',
    key: 'payments',
  };
  return withRealIds(path.replace(/\{(\w+)\}/g, (_, name: string) => examples[name] ?? ''));
}

/** The example of the operation's body, and its success. `changes` are made to the example. */
async function send<T = Json>(id: BodyRouteId, changes: Json = {}): Promise<T> {
  const route = ROUTES[id];
  const example = EXAMPLES[route.body?.$id ?? ''];
  assert.ok(example, `${id} has no example`);
  const body: unknown = JSON.parse(
    withRealIds(JSON.stringify({ ...(example as Json), ...changes })),
  );
  const reply: Reply<T> = await tenant.request(route.method, pathOf(id), { body });
  assert.ok(
    route.replies[reply.status] && reply.status < 300,
    `${id} ${reply.status} ${reply.text}`,
  );
  if (Object.keys(changes).length === 0) sent.add(id);
  return reply.body;
}

/** Back to the baseline; this takes no body. */
async function rollBack(): Promise<void> {
  const reply = await tenant.post(pathOf('releases.rollback'));
  assert.equal(reply.status, 200, reply.text);
}

test('every example of a request is taken by the server', async () => {
  const { sequence, nextSequence, instance, task, schedule, release } = EXAMPLE_IDS;
  assert.equal((await send('sequences.create')).id, sequence);
  await send('sequences.create', { id: nextSequence, version: 2 });
  await send('rateLimits.put');

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
  const [other] = tasks.filter((one) => one.instance_id !== id);
  assert.ok(own && other);
  realIds.set(task, own.id);
  await send('workers.heartbeat');
  await send('workers.complete');
  await tenant.until(id, 'completed');
  await send('instances.fork');

  realIds.set(task, other.id);
  realIds.set(instance, other.instance_id);
  await send('workers.fail');
  await tenant.until(other.instance_id, 'failed');
  await send('instances.resumeFrom');
  await send('instances.bulkState');
  await send('instances.batchAction');

  const later = { next_fire_at: '2100-01-01T00:00:00Z', idempotency_key: 'order-A-1002' };
  const atRest = await send<InstanceCreated>('instances.create', later);
  realIds.set(instance, atRest.id);
  await send('instances.bulkReschedule');
  await send('sequences.migrateInstance');
  await send('instances.patchState');

  const created = await send<{ id: string }>('cron.create');
  realIds.set(schedule, created.id);
  await send('cron.update');
  await send('apiKeys.mint');

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
    [],
    'operations whose example was not sent',
  );
});
