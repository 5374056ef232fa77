/** Statistics, rate limits, and explanations of waits. */

import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { RateLimit } from '../../schema/rate.js';
import type {
  FailureAttributes,
  FailureGroups,
  QueueSeries,
  Queues,
  ReleaseSeries,
  SequenceSteps,
  SlowestRuns,
} from '../../schema/statistics.js';
import {
  eventually,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  sleep,
  step,
  type Tenant,
  testsOf,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { canary, keyOn, versions } from '../helpers/routed.js';
import { assertNeverMore, underKey, untilAll } from '../helpers/slots.js';

const api = useSharedApi();
const test = testsOf(api);

/** Instances whose step gives up with these messages, each of a sequence of its own name. */
async function failWith(tenant: Tenant, name: string, messages: readonly string[]) {
  const params = { message: '{{ context.data.why }}' };
  const sequence = await tenant.sequence([step('a', 'fail', { params })], { name });
  await fail(tenant, sequence, messages);
  return sequence;
}

async function fail(tenant: Tenant, sequence: string, messages: readonly string[]) {
  for (const why of messages) {
    await tenant.until(await tenant.create(sequence, { context: { data: { why } } }), 'failed');
  }
}

const groupsOf = async (tenant: Tenant, query = '') =>
  expectStatus(await tenant.get<FailureGroups>(`/instances/failures${query}`), 200);

test('a queue tells what came, was claimed and ended by minute', async (tenant) => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler, { queue_name: 'q/1' })]);
  for (let n = 0; n < 3; n += 1) await tenant.create(sequence);
  const task = await tenant.task(handler);
  await tenant.complete(task, {});
  const of = (query: string) =>
    tenant.get<QueueSeries>(`/queues/series?handler=${handler}${query}`);
  await eventually(async () => {
    const { intervals, complete } = expectStatus(await of('&queue=q%2F1'), 200);
    const sum = (member: 'arrived' | 'taken' | 'ended') =>
      intervals.reduce((all, one) => all + one[member], 0);
    assert.deepEqual([sum('arrived'), sum('taken'), sum('ended'), complete], [3, 1, 1, true]);
  });
  const none = expectStatus(await of(''), 200).intervals;
  assert.ok(none.every(({ arrived }) => arrived === 0));
  const refused = await tenant.get<{ error: string }>('/queues/series');
  assert.equal(refused.status, 400);
  assert.match(refused.body.error, /handler/);
});

test('a version tells what its instances are at, and which of them were slowest there', async (tenant) => {
  const handler = newHandler();
  const two = parallel('two', [sleep('a', 60)], [step('w', handler)]);
  const sequence = await tenant.sequence([step('first', 'noop'), two]);
  const waiting = [await tenant.create(sequence), await tenant.create(sequence)];
  for (const id of waiting) await tenant.until(id, 'waiting');
  const stepsOf = async () =>
    expectStatus(await tenant.get<SequenceSteps>(`/sequences/${sequence}/steps`), 200);
  await eventually(async () => {
    const { steps, here_complete } = await stepsOf();
    const here = columns(steps, 'block_id', 'here_now');
    assert.deepEqual(here, [
      ['first', 0],
      ['two', 2],
      ['a', 0],
      ['w', 2],
    ]);
    assert.equal(here_complete, true);
  });
  const slowest = async (query: string) =>
    expectStatus(
      await tenant.get<SlowestRuns>(`/instances/slowest?sequence_id=${sequence}${query}`),
      200,
    );
  const { runs: atWorker } = await slowest('&block=w');
  assert.deepEqual(
    columns(atWorker, 'instance_id', 'is_open'),
    waiting.map((id) => [id, true]),
  );
  await tenant.signal(waiting[0]!, 'cancel');
  await tenant.until(waiting[0]!, 'cancelled');
  const { runs: atSleep } = await slowest('&block=a&limit=2');
  assert.equal(atSleep.length, 2);
  for (const { duration_ms, is_open } of atSleep) {
    assert.equal(is_open, false);
    assert.ok(duration_ms >= 60, `${duration_ms}`);
  }
  const { runs, complete } = await slowest('');
  const open = new Map(runs.map((run) => [run.instance_id, run.is_open]));
  assert.deepEqual([waiting.map((id) => open.get(id)), complete], [[false, true], true]);
  assert.equal((await slowest('&limit=1')).runs.length, 1);
  const unknown = await tenant.get<{ error: string }>(
    `/instances/slowest?sequence_id=${sequence}&block=no`,
  );
  assert.match(expectStatus(unknown, 400).error, /block: the version has no block no$/);
  assert.equal((await api.tenant().get(`/sequences/${sequence}/steps`)).status, 404);
});

test('failures are told by reason, and each group can be listed and retried by itself', async (tenant) => {
  const sequence = await failWith(tenant, 'order', [
    'order 123 refused',
    'out of "paper"',
    'order 456 refused',
  ]);
  const { groups, complete, looked_at } = await groupsOf(tenant);
  assert.deepEqual([complete, looked_at], [true, 3]);
  const shown = columns(groups, 'sequence_name', 'block_id', 'handler', 'reason', 'count');
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
    const reply = await tenant.patch<{ count: number }>('/instances/bulk/state', asked);
    const bulk = expectStatus(reply, 200);
    assert.equal(bulk.count, count, JSON.stringify(bulk));
  }
  assert.deepEqual((await tenant.get<unknown[]>('/instances/dlq?failure_code=timeout')).body, []);
});

test('the version, block, handler, code and reason each make a group of their own', async (tenant) => {
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
  const shown = columns(groups, 'version', 'block_id', 'handler', 'code', 'count');
  assert.deepEqual(shown.sort(), [
    [1, 'a', 'fail', 'handler_failed', 2],
    [2, 'a', 'fail', 'handler_failed', 2],
    [3, 'b', 'fail', 'handler_failed', 2],
    [4, 'a', 'assert', 'handler_failed', 2],
    [5, 'a', 'sleep', 'timeout', 2],
  ]);
  for (const { first_at, last_at } of groups) assert.ok(first_at < last_at);
});

test('failures are narrowed by name and time, and are those of the tenant only', async (tenant) => {
  await failWith(tenant, 'one', ['no']);
  await failWith(tenant, 'two', ['no']);
  const named = await groupsOf(tenant, '?sequence_name=two');
  assert.deepEqual(column(named.groups, 'sequence_name'), ['two']);
  const { groups } = await groupsOf(tenant);
  const first = groups.find((it) => it.sequence_name === 'one');
  const after = await groupsOf(tenant, `?failed_after=${first?.last_at}`);
  assert.deepEqual(column(after.groups, 'sequence_name'), ['two']);
  assert.deepEqual((await groupsOf(tenant, '?namespace=other')).groups, []);
  assert.deepEqual((await groupsOf(api.tenant())).groups, []);
  assert.equal((await tenant.get('/instances/failures?name=x')).status, 400);
});

test('failures of a period have counts over time, and tell new reasons and the share of runs', async (tenant) => {
  const sequence = await failWith(tenant, 'order', ['old']);
  const [old] = (await groupsOf(tenant)).groups;
  assert.deepEqual([old?.counts, old?.new, old?.runs], [[], null, null]);
  await fail(tenant, sequence, ['old', 'fresh', 'fresh']);
  const paid = await tenant.sequence([step('a', 'noop')], { name: 'order', version: 7 });
  await tenant.until(await tenant.create(paid), 'completed');
  const since = Date.parse(old?.last_at ?? '');
  const { groups, complete } = await groupsOf(tenant, `?failed_after=${old?.last_at}`);
  assert.equal(complete, true);
  const shown = columns(groups, 'sequence_id', 'reason', 'count', 'new', 'runs');
  assert.deepEqual(shown, [
    [sequence, 'fresh', 2, true, { finished: 3, failed: 2 }],
    [sequence, 'old', 1, false, { finished: 3, failed: 1 }],
  ]);
  for (const { counts, count, first_at } of groups) {
    assert.deepEqual([counts.length, counts.reduce((a, b) => a + b)], [24, count]);
    assert.ok(Date.parse(first_at) > since);
  }
  const before = await groupsOf(
    tenant,
    `?failed_after=${new Date(since - 60_000).toISOString()}&failed_before=${old?.last_at}`,
  );
  assert.deepEqual(before.groups, []);
});

test('what failed instances have in common is told beside other runs', async (tenant) => {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler, { queue_name: 'slow' })], {
    name: 's',
  });
  const create = (region: string, order: number) =>
    tenant.create(sequence, { metadata: { region, order } });
  const failed = [await create('eu', 1), await create('eu', 2)];
  for (const _ of failed) {
    await tenant.fail(await tenant.task(handler, { worker_id: 'w1', version: 'v7' }), 'no 1');
  }
  for (const id of failed) await tenant.until(id, 'failed');
  for (const order of [3, 4]) await create('us', order);
  const query = new URLSearchParams({
    failure_code: 'worker_failed',
    failure_reason: 'no #',
    failure_handler: handler,
  });
  // Workers are written a moment after they polled.
  await eventually(async () => {
    const { body } = await tenant.get<FailureAttributes>(`/instances/failures/attributes?${query}`);
    assert.deepEqual([body.failed, body.runs, body.complete], [2, 4, true]);
    const told = body.attributes.map(({ name, values: [top] }) => [
      name,
      top?.value,
      top?.share,
      top?.share_of_runs,
    ]);
    assert.deepEqual(told, [
      ['version', 's 1', 1, 1],
      ['block', 'a', 1, null],
      ['attempt', '0', 1, null],
      ['queue', 'slow', 1, 1],
      ['worker', 'w1', 1, 0.5],
      ['worker_version', 'v7', 1, 0.5],
      ['metadata.region', 'eu', 1, 0.5],
    ]);
  });
  const other = await tenant.get<FailureAttributes>(
    '/instances/failures/attributes?failure_code=timeout&failure_reason=late',
  );
  assert.deepEqual([other.body.failed, other.body.attributes], [0, []]);
  assert.equal((await tenant.get('/instances/failures/attributes?failure_code=x')).status, 400);
});

test('failed instances are compared with runs at the block that failed', async (tenant) => {
  const [charge, pack] = [newHandler(), newHandler()];
  const blocks = [
    step('charge', charge, { queue_name: 'payments' }),
    step('pack', pack, { queue_name: 'stock' }),
  ];
  const sequence = await tenant.sequence(blocks);
  const failed = await tenant.create(sequence);
  await tenant.fail(await tenant.task(charge, { worker_id: 'w1' }), 'no');
  await tenant.until(failed, 'failed');
  const packed = await tenant.create(sequence);
  await tenant.complete(await tenant.task(charge, { worker_id: 'w1' }));
  await tenant.complete(await tenant.task(pack, { worker_id: 'w2' }));
  await tenant.until(packed, 'completed');
  // It has not come to the block.
  await tenant.create(sequence, { next_fire_at: '2099-01-01T00:00:00Z' });
  const query = 'failure_code=worker_failed&failure_reason=no';
  const { body } = await tenant.get<FailureAttributes>(`/instances/failures/attributes?${query}`);
  assert.equal(body.runs, 3);
  const told = body.attributes.flatMap(({ name, values: [top] }) =>
    ['queue', 'worker'].includes(name) ? [[name, top?.value, top?.share_of_runs]] : [],
  );
  assert.deepEqual(told, [
    ['queue', 'payments', 1],
    ['worker', 'w1', 1],
  ]);
});

test('queues tell what waits, what is claimed, and that nobody serves a handler', async (tenant) => {
  const [served, alone] = [newHandler(), newHandler()];
  await tenant.run([step('a', served)]);
  await tenant.run([step('a', served)]);
  await tenant.run([step('a', alone, { queue_name: 'slow' })]);
  await tenant.task(served, { worker_id: 'w' });
  await eventually(async () => {
    const { queues, complete } = expectStatus(await tenant.get<Queues>('/queues'), 200);
    assert.equal(complete, true);
    const shown = queues.map(({ oldest_waiting_since: since, ...it }) => [
      ...[it.handler, it.queue, it.waiting, it.claimed, it.workers],
      since !== null,
    ]);
    const expected = [
      [served, null, 1, 1, 1, true],
      [alone, 'slow', 1, 0, 0, true],
    ];
    const wanted = expected.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    assert.deepEqual(shown, wanted);
  });
  assert.deepEqual((await api.tenant().get<Queues>('/queues')).body.queues, []);
});

test('queues tell how many polls wait for a task, of their own tenant only', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const polls = ['a', 'b'].map((worker_id) => tenant.poll(handler, { worker_id, wait_ms: 30_000 }));
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
  const taken = (await Promise.all(polls)).map((tasks) => tasks.length);
  assert.deepEqual(taken, [1, 1]);
  await eventually(async () => assert.deepEqual(await shown(), [[handler, 0, 0]]));
});

test('a release tells what ended of both versions since the canary began', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
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

test('schedules are listed by when they fire next', async (tenant) => {
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

// ---------------------------------------------------------------- rate limits

/** Longer than any test. */
const HOUR_MS = 3_600_000;
const HOURLY = (max_count: number) => ({ max_count, window_seconds: HOUR_MS / 1_000 });

const limit = async (tenant: Tenant, body: Json, key = 'k') =>
  expectStatus(await tenant.put<RateLimit>(`/rate-limits/${key}`, body), 200);
const unlimit = async (tenant: Tenant, key = 'k') =>
  expectStatus(await tenant.delete(`/rate-limits/${key}`), 204);

/** A step under the key `k`. */
const limited = (id: string, handler = 'noop', more: Json = {}) =>
  step(id, handler, { rate_limit_key: 'k', ...more });

/** When tries began: steps inside the process begin and end at once, others have a task. */
async function beginnings(tenant: Tenant, ids: readonly string[], handlers: string[] = []) {
  const began: { created_at: string }[] = [];
  // One after the other: a tenant may not read many long lists at once while others ask.
  for (const id of ids) {
    const rows = await tenant.outputs(id);
    began.push(...rows.filter(({ block_id }) => block_id.startsWith('in')));
  }
  for (const handler of handlers) began.push(...(await tenant.tasks(handler)));
  return began.map(({ created_at }) => Date.parse(created_at)).sort((a, b) => a - b);
}

/** The most of these times that lie within any second, which does not contain its end. */
function mostInASecond(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  times.forEach((time, index) => {
    while (time - (times[first] ?? time) >= 1_000) first += 1;
    most = Math.max(most, index + 1 - first);
  });
  return most;
}

/** An instance whose first step is put off; its record. */
async function putOff(tenant: Tenant, block = limited('in')) {
  const id = await tenant.run([block]);
  return eventually(async () => {
    const instance = await tenant.instance(id);
    assert.equal(instance.state, 'scheduled');
    assert.ok(Date.parse(instance.next_fire_at ?? '') > Date.now() + HOUR_MS / 2);
    return instance;
  });
}

describe('rate_limit_key delays instances and never loses them, also together with concurrency keys', () => {
  test('one key shared by steps of several sequences, at every depth', async (tenant) => {
    await limit(tenant, { max_count: 10, window_seconds: 1 });
    const handler = newHandler();
    const data = { on: true, items: [1, 2, 3] };
    const sequences: readonly (readonly [number, Json[]])[] = [
      [2, [limited('out', handler)]],
      [2, [parallel('p', [limited('in1')], [limited('in2'), limited('in3')])]],
      [1, [loop('l', 'on', [limited('in')], 3)]],
      [1, [forEach('f', 'items', [limited('in')])]],
      [1, [tryCatch('t', [step('x', 'fail')], [limited('in1')], [limited('in2')])]],
    ];
    const ids: string[] = [];
    for (const [count, blocks] of sequences) {
      const sequence = await tenant.sequence(blocks);
      for (let index = 0; index < count; index++) {
        ids.push(await tenant.create(sequence, { context: { data } }));
      }
    }
    for (let index = 0; index < 2; index++) await tenant.complete(await tenant.task(handler));
    await untilAll(tenant, ids, 'completed');
    const times = await beginnings(tenant, ids, [handler]);
    assert.equal(times.length, 2 + 6 + 3 + 3 + 2);
    assert.ok(mostInASecond(times) <= 10);
  });

  test('also combined with concurrency keys', async (tenant) => {
    await limit(tenant, { max_count: 6, window_seconds: 1 });
    const sequence = await tenant.sequence([limited('in1'), sleep('s', 5), limited('in2')]);
    const key = underKey(2);
    const ids = await Promise.all(Array.from({ length: 4 }, () => tenant.create(sequence, key)));
    await untilAll(tenant, ids, 'completed');
    const times = await beginnings(tenant, ids);
    assert.equal(times.length, 8);
    assert.ok(mostInASecond(times) <= 6);
    await assertNeverMore(2, tenant, ids);
  });

  test('those that are put off are scheduled, each at its own time, and no try is consumed', async (tenant) => {
    await limit(tenant, HOURLY(1));
    const handler = newHandler();
    const first = await tenant.runUntil('completed', [limited('in')]);
    const [began = 0] = await beginnings(tenant, [first]);
    const block = limited('out', handler, { retry: { max_attempts: 1 } });
    const one = await putOff(tenant, block);
    const two = await putOff(tenant, block);
    for (const [index, { next_fire_at, context }] of [one, two].entries()) {
      const due = began + (index + 1) * HOUR_MS;
      const late = Date.parse(next_fire_at ?? '') - due;
      assert.ok(late >= 0 && late < 60_000, `${late} ms late`);
      assert.equal(context.runtime.attempt ?? 0, 0);
    }
    assert.deepEqual(await tenant.poll(handler), []);
    await unlimit(tenant);
    for (const _ of [one, two]) {
      const task = await tenant.task(handler);
      assert.equal(task.attempt, 0);
      await tenant.complete(task);
    }
    await untilAll(tenant, [one.id, two.id], 'completed');
  });
});

describe('Rate limits: PUT, GET and DELETE of `/rate-limits`; per tenant; a key without a limit is unlimited; no window ever has more than max_count', () => {
  test('PUT answers with the limit, and again with the new one; DELETE is 404 without one', async (tenant) => {
    for (const body of [HOURLY(3), { max_count: 100_000, window_seconds: 86_400 }]) {
      const { updated_at, ...rest } = await limit(tenant, body);
      assert.deepEqual(rest, { tenant_id: tenant.name, key: 'k', ...body });
      assert.ok(Math.abs(Date.parse(updated_at) - Date.now()) < 60_000);
    }
    await unlimit(tenant);
    assert.equal((await tenant.delete('/rate-limits/k')).status, 404);
  });

  test('per tenant: the limit of another tenant counts nothing', async () => {
    const [tenant, other] = [api.tenant(), api.tenant()];
    await limit(other, HOURLY(1));
    // A key without a limit is unlimited.
    for (let index = 0; index < 3; index++) await tenant.runUntil('completed', [limited('in')]);
    await limit(tenant, HOURLY(1));
    await tenant.runUntil('completed', [limited('in')]);
    await other.runUntil('completed', [limited('in')]);
    assert.equal((await api.tenant().delete('/rate-limits/k')).status, 404);
    await putOff(tenant);
    await putOff(other);
  });

  for (const [how, change, freed] of [
    ['raised', (tenant: Tenant) => limit(tenant, HOURLY(3)), 2],
    ['deleted', (tenant: Tenant) => unlimit(tenant), 4],
  ] as const) {
    test(`when it is ${how}, as many as it lets pass go on at once`, async (tenant) => {
      await limit(tenant, HOURLY(1));
      await tenant.runUntil('completed', [limited('in')]);
      const ids: string[] = [];
      for (let index = 0; index < 4; index++) ids.push((await putOff(tenant)).id);
      await change(tenant);
      const states = () => Promise.all(ids.map(async (id) => (await tenant.instance(id)).state));
      const left = Array<string>(4 - freed).fill('scheduled');
      await eventually(async () => {
        assert.deepEqual((await states()).sort(), [...Array(freed).fill('completed'), ...left]);
      });
      // Nobody is lost: the others were put off again.
      await tenant.delete('/rate-limits/k');
      await untilAll(tenant, ids, 'completed');
    });
  }

  // `limits.test.ts` has their largest values.
  test('what is no limit is 400, says so and sets nothing', async (tenant) => {
    for (const max_count of [undefined, 0, '5']) {
      const body = { max_count, window_seconds: 1 };
      const reply = await tenant.put<{ error: string }>('/rate-limits/k', body);
      assert.match(expectStatus(reply, 400).error, /max_count/);
    }
    assert.equal((await tenant.delete('/rate-limits/k')).status, 404);
  });
});

const list = async (tenant: Tenant) =>
  expectStatus(await tenant.get<RateLimit[]>('/rate-limits'), 200);

test('the list of rate limits has the own ones in the order of their keys, as they were put', async () => {
  const [tenant, other] = [api.tenant(), api.tenant()];
  assert.deepEqual(await list(tenant), []);
  const minutely = { max_count: 1, window_seconds: 60 };
  const b = await limit(tenant, { max_count: 5, window_seconds: 10 }, 'b');
  const a = await limit(tenant, { ...minutely, max_count: 7 }, 'a%2Fb%20c');
  const z = await limit(tenant, minutely, 'Z');
  const umlaut = await limit(tenant, minutely, '%C3%A4');
  const theirs = await limit(other, minutely, 'theirs');
  assert.deepEqual(await list(tenant), [z, a, b, umlaut]);
  assert.deepEqual(await list(other), [theirs]);
});
