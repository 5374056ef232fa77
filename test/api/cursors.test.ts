/** Pages by cursor, of every list that has them: the same rows in the same order as without. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BulkJob } from '../../schema/bulk-job.js';
import { ROUTES, type RouteId } from '../../schema/routes.js';
import type { SubscriptionCreated } from '../../schema/webhook.js';
import { beforeWith, eventually, LONG_MS, newHandler, step, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus, type Reply } from '../helpers/client.js';
import { useReceiver } from '../helpers/receiver.js';
import { makeCredential, makeSchedule, makeTrigger } from '../helpers/route-requests.js';

const api = useSharedApi();
const tenant = api.tenant();
/** Where each list of five rows is. */
const paths: Partial<Record<RouteId, string>> = {};
const ROWS = 5;
const LOGGING = { ...step('x', 'log'), params: { message: 'a pass' } };

const receiver = useReceiver();

beforeWith(api, async () => {
  // Names and versions, so that the order has to look at more than the first key.
  const handler = newHandler();
  const blocks = [step('a', 'noop'), step('b', 'noop'), step('c', handler)];
  const stored: string[] = [];
  for (const [name, version] of [
    ['b', 1],
    ['a', 2],
    ['a', 10],
    ['a', 1],
    ['c, "d"', 1],
  ] as const) {
    stored.push(await tenant.sequence(blocks, { name, version }));
  }
  const ids: string[] = [];
  for (const sequence of stored) {
    ids.push(await tenant.create(sequence));
    await tenant.create(sequence);
    await makeSchedule(tenant, sequence);
    const key = { tenant_id: tenant.name, capabilities: ['worker'] };
    assert.equal((await api.root.post('/api-keys', key)).status, 201);
  }
  await Promise.all(ids.map((id) => tenant.until(id, 'waiting')));
  const many = await tenant.runUntil(
    'completed',
    [{ type: 'loop', id: 'l', condition: 'go', body: [LOGGING], max_iterations: ROWS }],
    { go: true },
  );
  const queued = await tenant.runUntil('waiting', [
    {
      type: 'parallel',
      id: 'p',
      branches: Array.from({ length: ROWS }, (_, n) => [step(`task-${n}`, handler)]),
    },
  ]);
  // Each signal leaves an entry of the audit.
  for (const _ of [1, 2]) {
    await tenant.signal(queued, 'pause');
    await tenant.until(queued, 'paused');
    await tenant.signal(queued, 'resume');
    await tenant.until(queued, 'waiting');
  }
  const url = receiver.url('/ends');
  const made = await tenant.post<SubscriptionCreated>('/webhooks', {
    url,
    events: ['instance.completed'],
  });
  const hook = expectStatus(made, 201).id;
  await tenant.sequence([step('x', 'noop')], { name: 'child' });
  const children = Array.from({ length: ROWS }, (_, n) => [
    { type: 'sub_sequence', id: `child-${n}`, sequence_name: 'child' },
  ]);
  const parent = await tenant.runUntil('completed', [
    { type: 'parallel', id: 'p', branches: children },
  ]);
  await Promise.all(ids.map((id) => tenant.move(id, 'failed')));
  const debounce = { key: '{{ data.n }}', wait_ms: LONG_MS };
  const collecting = await tenant.sequence([step('x', 'noop')], { debounce });
  for (let n = 0; n < ROWS; n += 1) {
    await tenant.signal(ids[0] ?? '', 'custom:n', n);
    const event = { event_name: 'n', producer_event_id: `${n}` };
    assert.equal((await tenant.post('/events', event)).status, 201);
    const sides = { baseline_sequence_id: stored[3], candidate_sequence_id: stored[1] };
    assert.equal((await tenant.post('/releases', sides)).status, 201);
    await makeCredential(tenant);
    await makeTrigger(tenant, 'child');
    const data = { n: String(n) };
    const collected = tenant.creation(collecting, { context: { data } });
    assert.equal((await tenant.post('/instances', collected)).status, 202);
    const change = { filter: { states: ['completed'] }, state: 'failed' };
    assert.equal((await tenant.patch('/instances/bulk/state?async=true', change)).status, 202);
  }
  await eventually(async () => {
    const jobs = await tenant.get<BulkJob[]>('/instances/bulk/jobs?');
    assert.ok(jobs.body.every(({ ended_at }) => ended_at !== null));
  });
  const deliveries = `/webhooks/${hook}/deliveries?`;
  await eventually(async () => {
    const found = await tenant.get<unknown[]>(deliveries);
    assert.ok(found.body.length > ROWS, 'each child is told, and their parent');
  });
  Object.assign(paths, {
    'webhooks.subscriptionDeliveries': deliveries,
    'webhooks.deliveries': `/webhooks/deliveries?url=${encodeURIComponent(url)}`,
    'instances.list': '/instances?state=failed',
    'instances.deadLetters': '/instances/dlq?',
    'instances.children': `/instances/${parent}/children?`,
    'instances.signals': `/instances/${ids[0]}/signals?`,
    'events.list': '/events?',
    'instances.outputs': `/instances/${many}/outputs?`,
    'instances.logs': `/instances/${many}/logs?`,
    'logs.list': '/logs?',
    'instances.audit': `/instances/${queued}/audit?`,
    'instances.attempts': `/instances/${queued}/attempts?`,
    'instances.effects': `/instances/${queued}/effects?`,
    'workers.tasks': '/workers/tasks?',
    'sequences.list': '/sequences?namespace=test',
    'cron.list': '/cron?',
    'releases.list': '/releases?state=draft',
    'bulkJobs.list': '/instances/bulk/jobs?',
    'actions.list': '/actions?kind=release',
    'pendingStarts.list': '/pending-starts?',
    'credentials.list': '/credentials?',
    'triggers.list': '/triggers?',
    'apiKeys.list': `/api-keys?tenant_id=${tenant.name}`,
  });
});

/**
 * Others make tenants meanwhile: the test of tenants walks through them (`api/keys`). Moves are in a cluster only
 * (`cells/placement`).
 */
const ELSEWHERE: ReadonlySet<RouteId> = new Set(['tenants.list', 'cells.moves']);

const ROOT_ONLY: ReadonlySet<RouteId> = new Set(['apiKeys.list', 'webhooks.deliveries']);

async function walk(client: Client, path: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  for (let place = ''; ; ) {
    const page: Reply<unknown[]> = await client.get(`${path}&limit=2${place}`);
    assert.equal(page.status, 200, page.text);
    rows.push(...page.body);
    const cursor = page.headers['x-next-cursor'];
    if (cursor === undefined) return rows;
    place = `&cursor=${cursor}`;
  }
}

for (const { id, query, replies } of Object.values(ROUTES)) {
  if (query?.properties.cursor === undefined || replies[200]?.type !== 'array') continue;
  if (ELSEWHERE.has(id)) continue;
  test(`pages of ${id} by cursor are the whole list in its order`, async () => {
    const path = paths[id];
    assert.ok(path !== undefined, `no rows of ${id}`);
    const client = ROOT_ONLY.has(id) ? api.root : tenant;
    const whole = await client.get<unknown[]>(path);
    assert.ok(whole.body.length >= ROWS, whole.text);
    assert.deepEqual(await walk(client, path), whole.body);
  });
}
