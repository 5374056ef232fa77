/** What tenants have stored, as they read it. */

import assert from 'node:assert/strict';
import type { KeyMinted } from '../../schema/api-key.js';
import type { StepLogLine } from '../../schema/edits.js';
import type { TenantLimits } from '../../schema/tenant-limits.js';
import { newHandler, step, type Tenant, transform } from '../helpers/api.js';
import { exported, handedOver, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { columns } from '../helpers/columns.js';
import { continuityOf } from '../helpers/continuity.js';
import { subject } from '../helpers/survival.js';

export const records = subject();
const { survives } = records;

const FAR = '2100-01-01T00:00:00.000Z';

const read = async (tenant: Tenant, path: string) => expectStatus(await tenant.get(path), 200);

/** All that is read of these paths is the same after the kill. */
async function unchanged(tenant: Tenant, paths: readonly string[]) {
  const readAll = async () => {
    const found: Record<string, unknown> = {};
    for (const path of paths) found[path] = await read(tenant, path);
    return found;
  };
  const told = await readAll();
  return async () => assert.deepEqual(await readAll(), told);
}

survives(
  'State, outputs, audit, checkpoints, worker tasks and a large context survive a server restart',
  async (tenant) => {
    const handler = newHandler();
    /** With the punctuation around it, just below the 256 KiB that a context may have. */
    const large = { text: 'é'.repeat(130_000) };
    const id = await tenant.run([transform('a', { n: 1 }), step('b', handler), step('c', 'noop')], {
      context: { data: large },
    });
    const task = await tenant.task(handler);
    const checkpoint = { checkpoint: { page: 3 }, checkpoint_seq: 0 };
    assert.equal(await tenant.call('heartbeat', task, checkpoint), 200);
    for (const page of [1, 2, 3]) {
      const body = { checkpoint_data: { page } };
      expectStatus(await tenant.post(`/instances/${id}/checkpoints`, body), 201);
    }
    const parts = ['', '/outputs', '/audit', '/checkpoints'];
    const paths = parts.map((part) => `/instances/${id}${part}`);
    const check = await unchanged(tenant, [...paths, `/workers/tasks?handler_name=${handler}`]);
    return async () => {
      await check();
      assert.deepEqual((await tenant.instance(id)).context.data, large);
      const [claimed] = await tenant.tasks(handler);
      assert.ok(claimed);
      await tenant.complete(claimed, { done: true });
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
    };
  },
);

survives('instances of every state with outputs, trees, audit and timelines', async (tenant) => {
  const external = await tenant.sequence([step('a', 'noop'), step('b', newHandler())]);
  const ids: Record<string, string> = {
    completed: await tenant.run([transform('a', { n: 1 })]),
    failed: await tenant.run([step('a', 'noop'), step('b', 'fail')]),
    scheduled: await tenant.create(external, { next_fire_at: FAR, priority: 'high' }),
    waiting: await tenant.create(external, { context: { data: { x: ['é'] } } }),
    paused: await tenant.create(external),
    cancelled: await tenant.create(external, { metadata: { a: { b: null } } }),
    running: await tenant.run([step('a', 'sleep', { params: { duration_ms: 600_000 } })]),
  };
  await tenant.signal(ids.paused ?? '', 'pause');
  await tenant.signal(ids.cancelled ?? '', 'cancel');
  await tenant.patch(`/instances/${ids.waiting}/context`, { context: { audit: [{ n: 1 }] } });
  for (const [state, id] of Object.entries(ids)) await tenant.until(id, state);
  const parts = ['', '/tree', '/audit', '/timeline'];
  return unchanged(tenant, [
    ...['/instances', '/instances/dlq', '/workers/tasks', '/workers/tasks/stats', '/sequences'],
    ...Object.values(ids).flatMap((id) => parts.map((part) => `/instances/${id}${part}`)),
    `/instances/${ids.completed}/outputs`,
  ]);
});

survives('lines of logs, with the try that they belong to', async (tenant) => {
  const handler = newHandler();
  const log = (id: string, message: string) => step(id, 'log', { params: { message } });
  const id = await tenant.run([log('a', 'begin'), step('work', handler), log('b', 'end')]);
  const task = await tenant.task(handler);
  assert.equal(await tenant.call('complete', task, { logs: [{ message: 'on' }] }), 200);
  return async () => {
    await tenant.until(id, 'completed');
    const lines = (await read(tenant, `/instances/${id}/logs`)) as StepLogLine[];
    assert.deepEqual(columns(lines, 'block_id', 'level', 'message'), [
      ['a', 'info', 'begin'],
      ['work', 'info', 'on'],
      ['b', 'info', 'end'],
    ]);
  };
});

survives('keys, and so do revocations', async (tenant, { root }) => {
  const mint = async () => {
    const body = { tenant_id: tenant.name, capabilities: ['operator'] };
    return expectStatus(await root.post<KeyMinted>('/api-keys', body), 201);
  };
  const [kept, gone] = [await mint(), await mint()];
  expectStatus(await root.delete(`/api-keys/${gone.id}`), 204);
  return async () => {
    const ask = async (apiKey: string) => (await tenant.with({ apiKey }).get('/instances')).status;
    assert.deepEqual([await ask(kept.secret), await ask(gone.secret)], [200, 401]);
  };
});

survives('Limits of a tenant hold from their answer on, and after SIGKILL', async (tenant, api) => {
  const path = `/tenants/${tenant.name}/limits`;
  const limits = { schedules_max: 2, rows_per_second: 1_000 };
  const told = expectStatus(await api.root.put<TenantLimits>(path, limits), 200);
  const sequence_id = await tenant.sequence([step('a', 'noop')]);
  const cron = { cron_expr: '0 7 * * *', timezone: 'UTC' };
  const body = { tenant_id: tenant.name, namespace: 'n', sequence_id, ...cron };
  const schedule = () => tenant.post<{ id: string; error?: string }>('/cron', body);
  expectStatus(await schedule(), 201);
  return async () => {
    assert.deepEqual(expectStatus(await api.root.get<TenantLimits>(path), 200), told);
    const { id } = expectStatus(await schedule(), 201);
    const refused = await schedule();
    assert.equal(refused.status, 409, 'those from before the kill count');
    assert.match(String(refused.body.error), /as many schedules as it may have: 2/);
    expectStatus(await tenant.delete(`/cron/${id}`), 204);
    expectStatus(await schedule(), 201);
  };
});

survives('what was used of a rate limit', async (tenant) => {
  const limit = (max_count: number) =>
    tenant.put('/rate-limits/k', { max_count, window_seconds: 3_600 });
  const limited = [step('a', 'noop', { rate_limit_key: 'k' })];
  expectStatus(await limit(1), 200);
  await tenant.runUntil('completed', limited);
  const id = await tenant.runUntil('scheduled', limited);
  const { next_fire_at } = await tenant.instance(id);
  return async () => {
    const { state, next_fire_at: due } = await tenant.instance(id);
    assert.deepEqual([state, due], ['scheduled', next_fire_at]);
    const later = await tenant.runUntil('scheduled', limited);
    expectStatus(await limit(2), 200);
    await tenant.until(later, 'completed');
    await tenant.move(id, 'running');
    await tenant.until(id, 'scheduled');
    assert.deepEqual(await tenant.outputs(id), []);
    expectStatus(await tenant.delete('/rate-limits/k'), 204);
    await tenant.until(id, 'completed');
  };
});

for (const [what, leave] of [
  [
    'is being handed over',
    async (from) => exported(from, await from.handoff(from.id, from.destination)),
  ],
  ['was handed over', (from) => handedOver(from)],
] as readonly [string, (from: Awaited<ReturnType<typeof passageOf>>) => Promise<unknown>][]) {
  survives(`the fence of an instance that ${what}: it is left alone`, async (tenant) => {
    const id = await continuityOf(tenant).paused();
    await leave(await passageOf(tenant, id));
    const before = await tenant.instance(id);
    return async () => {
      for (const reply of await Promise.all([
        tenant.patch(`/instances/${id}/state`, { state: 'scheduled' }),
        tenant.patch(`/instances/${id}/context`, { context: { data: {} } }),
        tenant.post(`/instances/${id}/signals`, { signal_type: 'resume' }),
        tenant.post(`/instances/${id}/resume-from/a`),
      ])) {
        assert.equal(reply.status, 409, reply.text);
      }
      assert.deepEqual(await tenant.instance(id), before);
    };
  });
}
