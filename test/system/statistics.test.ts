/** What is summed up over many instances and tasks, over HTTP. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Activity, FailureGroups, Queues, ReleaseSeries } from '../../schema/statistics.js';
import { eventually, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { canary, keyOn, versions } from '../helpers/routed.js';

const api = useApi();

/** Instances whose step gives up with these messages, each of a sequence of its own name. */
async function failWith(tenant: Tenant, name: string, messages: readonly string[]) {
  const params = { message: '{{ context.data.why }}' };
  const sequence = await tenant.sequence([step('a', 'fail', { params })], { name });
  for (const why of messages) {
    const id = await tenant.create(sequence, { context: { data: { why } } });
    await tenant.until(id, 'failed');
  }
  return sequence;
}

const groupsOf = async (tenant: Tenant, query = '') =>
  expectStatus(await tenant.get<FailureGroups>(`/instances/failures${query}`), 200);

test('failures are told by reason, and each group can be listed and retried by itself', async () => {
  const tenant = api.tenant();
  const sequence = await failWith(tenant, 'order', [
    'order 123 refused',
    'out of "paper"',
    'order 456 refused',
  ]);
  const { groups, complete, looked_at } = await groupsOf(tenant);
  assert.deepEqual([complete, looked_at], [true, 3]);
  const shown = groups.map((it) => [
    it.sequence_name,
    it.block_id,
    it.handler,
    it.reason,
    it.count,
  ]);
  assert.deepEqual(shown, [
    ['order', 'a', 'fail', 'order # refused', 2],
    ['order', 'a', 'fail', 'out of "…"', 1],
  ]);
  assert.equal(groups[0]?.example_message, 'order 456 refused');
  for (const { reason, code, count } of groups) {
    const selection = {
      sequence_id: sequence,
      failure_code: code,
      failure_block: 'a',
      failure_handler: 'fail',
      failure_reason: reason,
    };
    for (const path of ['/instances', '/instances/dlq']) {
      const { body } = await tenant.get<unknown[]>(`${path}?${new URLSearchParams(selection)}`);
      assert.equal(body.length, count, `${path} ${reason}`);
    }
    const asked = { filter: selection, state: 'cancelled', dry_run: true };
    const bulk = expectStatus(
      await tenant.patch<{ count: number }>('/instances/bulk/state', asked),
      200,
    );
    assert.equal(bulk.count, count, JSON.stringify(bulk));
  }
  const other = await tenant.get<unknown[]>('/instances/dlq?failure_code=timeout');
  assert.deepEqual(other.body, []);
});

test('the version, block, handler, code and reason each make a group of their own', async () => {
  const tenant = api.tenant();
  const name = 'apart';
  const no = (id: string) => step(id, 'fail', { params: { message: 'no' } });
  const different = [
    { blocks: [no('a')] },
    { blocks: [no('a')], version: 2 },
    { blocks: [no('b')], version: 3 },
    {
      blocks: [step('a', 'assert', { params: { condition: 'false', message: 'no' } })],
      version: 4,
    },
    { blocks: [step('a', 'sleep', { params: { duration_ms: 60_000 }, timeout: 20 })], version: 5 },
  ];
  for (const { blocks, version = 1 } of different) {
    const sequence = await tenant.sequence(blocks, { name, version });
    for (const _ of [1, 2]) await tenant.until(await tenant.create(sequence), 'failed');
  }
  const { groups } = await groupsOf(tenant);
  const shown = groups.map((it) => [it.version, it.block_id, it.handler, it.code, it.count]);
  assert.deepEqual(shown.sort(), [
    [1, 'a', 'fail', 'handler_failed', 2],
    [2, 'a', 'fail', 'handler_failed', 2],
    [3, 'b', 'fail', 'handler_failed', 2],
    [4, 'a', 'assert', 'handler_failed', 2],
    [5, 'a', 'sleep', 'timeout', 2],
  ]);
  for (const { first_at, last_at } of groups) assert.ok(first_at < last_at);
});

test('failures are narrowed by name and time, and are those of the tenant only', async () => {
  const tenant = api.tenant();
  await failWith(tenant, 'one', ['no']);
  await failWith(tenant, 'two', ['no']);
  const named = await groupsOf(tenant, '?sequence_name=two');
  assert.deepEqual(
    named.groups.map((it) => it.sequence_name),
    ['two'],
  );
  const { groups } = await groupsOf(tenant);
  const first = groups.find((it) => it.sequence_name === 'one');
  const after = await groupsOf(tenant, `?failed_after=${first?.last_at}`);
  assert.deepEqual(
    after.groups.map((it) => it.sequence_name),
    ['two'],
  );
  assert.deepEqual((await groupsOf(tenant, '?namespace=other')).groups, []);
  assert.deepEqual((await groupsOf(api.tenant())).groups, []);
  assert.equal((await tenant.get('/instances/failures?name=x')).status, 400);
});

test('queues tell what waits, what is claimed, and that nobody serves a handler', async () => {
  const tenant = api.tenant();
  const [served, alone] = [newHandler(), newHandler()];
  await tenant.run([step('a', served)]);
  await tenant.run([step('a', served)]);
  await tenant.run([step('a', alone, { queue_name: 'slow' })]);
  await tenant.task(served, { worker_id: 'w' });
  await eventually(async () => {
    const { queues, complete } = expectStatus(await tenant.get<Queues>('/queues'), 200);
    assert.equal(complete, true);
    const shown = queues.map((it) => [
      it.handler,
      it.queue,
      it.waiting,
      it.claimed,
      it.workers,
      it.oldest_waiting_since !== null,
    ]);
    const expected = [
      [served, null, 1, 1, 1, true],
      [alone, 'slow', 1, 0, 0, true],
    ];
    assert.deepEqual(
      shown,
      expected.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
    );
  });
  assert.deepEqual((await api.tenant().get<Queues>('/queues')).body.queues, []);
});

test('queues tell how many polls wait for a task, of their own tenant only', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const polls = ['a', 'b'].map((worker) =>
    tenant.post<unknown[]>('/workers/tasks/poll', {
      handler_name: handler,
      worker_id: worker,
      wait_ms: 30_000,
    }),
  );
  const shown = async () => {
    const { queues } = (await tenant.get<Queues>('/queues')).body;
    return queues.map((it) => [it.handler, it.waiting, it.open_polls]);
  };
  await eventually(async () => assert.deepEqual(await shown(), [[handler, 0, 2]]));
  assert.deepEqual((await api.tenant().get<Queues>('/queues')).body.queues, []);
  await tenant.run([step('a', handler)]);
  await Promise.race(polls);
  await eventually(async () => assert.deepEqual(await shown(), [[handler, 0, 1]]));
  await tenant.run([step('a', handler)]);
  const taken = (await Promise.all(polls)).map(({ body }) => body.length);
  assert.deepEqual(taken, [1, 1]);
  await eventually(async () => assert.deepEqual(await shown(), [[handler, 0, 0]]));
});

test('a release tells what ended of both versions since the canary began', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const blocks = [step('a', handler)];
  const [v1 = '', v2 = ''] = await versions(tenant, { blocks }, { blocks });
  const release = await canary(tenant, v1, v2, 50);
  const path = `/releases/${release}/series`;
  const empty = expectStatus(await tenant.get<ReleaseSeries>(path), 200);
  assert.deepEqual([empty.points, empty.complete], [[], true]);
  for (const variant of ['baseline', 'candidate'] as const) {
    const id = await tenant.create(v1, { idempotency_key: keyOn(release, variant, 50) });
    const task = await tenant.task(handler);
    if (variant === 'baseline') await tenant.complete(task);
    else await tenant.fail(task, 'no');
    await tenant.until(id, variant === 'baseline' ? 'completed' : 'failed');
  }
  const { points } = (await tenant.get<ReleaseSeries>(`${path}?step=3600`)).body;
  const shown = points.map((it) => [it.variant, it.ended, it.failed, it.error_rate, it.share]);
  assert.deepEqual(shown.sort(), [
    ['baseline', 1, 0, 0, 0.5],
    ['candidate', 1, 1, 1, 0.5],
  ]);
  for (const { duration_p50_ms: p50, duration_p95_ms: p95 } of points)
    assert.ok(0 < p50 && p50 <= p95);
  assert.equal((await api.tenant().get(path)).status, 404);
});

test('schedules are listed by when they fire next', async () => {
  const tenant = api.tenant();
  const sequence_id = await tenant.sequence([step('a', 'noop')]);
  const add = (cron_expr: string, enabled = true) =>
    tenant.post('/cron', {
      tenant_id: tenant.name,
      namespace: 'default',
      sequence_id,
      cron_expr,
      enabled,
    });
  const years = ['2090', '2089', '2091'];
  for (const year of years) expectStatus(await add(`0 0 0 1 1 ? ${year}`), 201);
  expectStatus(await add('0 0 0 1 1 ? 2088', false), 201);
  const page = (query: string) =>
    tenant.get<{ next_fire_at: string }[]>(`/cron?order=next_fire&limit=2${query}`);
  const first = await page('');
  const yearsOf = (body: readonly { next_fire_at: string }[]) =>
    body.map((it) => it.next_fire_at.slice(0, 4));
  assert.deepEqual(yearsOf(first.body), ['2089', '2090']);
  const cursor = first.headers['x-next-cursor'];
  assert.deepEqual(yearsOf((await page(`&cursor=${cursor}`)).body), ['2091']);
});

test('the activity of a tenant outlives a restart', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  await tenant.until(await tenant.run([step('a', 'noop')]), 'completed');
  await failWith(tenant, 'bad', ['no', 'no']);
  const cancelled = await tenant.run([step('a', handler)]);
  await tenant.signal(cancelled, 'cancel');
  await tenant.until(cancelled, 'cancelled');
  const waiting = await tenant.sequence([step('a', handler)]);
  const keyed = (key: string) => tenant.creation(waiting, { idempotency_key: key });
  for (const keys of [
    ['a', 'b', 'b'],
    ['b', 'c'],
  ]) {
    expectStatus(await tenant.post('/instances/batch', { instances: keys.map(keyed) }), 201);
  }
  await api.restart('SIGTERM');
  const { intervals, complete } = expectStatus(await tenant.get<Activity>('/activity'), 200);
  assert.equal(complete, true);
  assert.ok(intervals.length >= 60);
  const sum = (of: 'created' | 'completed' | 'failed' | 'cancelled') =>
    intervals.reduce((all, it) => all + it[of], 0);
  assert.deepEqual(
    [sum('created'), sum('completed'), sum('failed'), sum('cancelled')],
    [7, 1, 2, 1],
  );
  assert.ok(intervals.some((it) => it.duration_p95_ms !== null));
  const other = (await api.tenant().get<Activity>('/activity')).body;
  assert.ok(other.intervals.every((it) => it.created === 0));
  assert.equal((await tenant.get('/activity?step=90')).status, 400);
});
