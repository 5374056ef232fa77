/** for_each with `concurrency`: workers, crashes, and versions with another number of items at once. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { ApprovalPage } from '../../schema/approval.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import {
  eventually,
  forEach,
  type Json,
  newHandler,
  step,
  type Tenant,
  transform,
  tryCatch,
  useApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { MIGRATE, migrate } from '../helpers/edits.js';
import { survival } from '../helpers/survival.js';

const api = useApi({ env: { ENGINE_SHARDS: '2' } });
const survives = survival(api);

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

/** Polls all that is offered. */
async function offered(tenant: Tenant, handler: string): Promise<Json[]> {
  return (await tenant.poll(handler, { limit: 100 })) as unknown as Json[];
}

test('workers are offered as many items at once as the concurrency says, and never more', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const body = [step('a', handler, { params: { x: '{{ data.x }}', at: '{{ data.at }}' } })];
  const block = forEach('f', 'xs', body, { item_var: 'x', index_var: 'at', concurrency: 5 });
  const xs = numbers(40).map((x) => x * 10);
  const id = await tenant.runUntil('waiting', [block], { xs });
  // All of those that may run at once, whatever the worker could take.
  const first = await tenant.poll(handler, { limit: 40 });
  assert.deepEqual(
    first.map(({ params }) => (params as Json).at),
    [0, 1, 2, 3, 4],
  );
  for (const task of first)
    await tenant.complete(task, {
      twice: 2 * (task.params as { x: number }).x,
      at: (task.params as Json).at,
    });
  let atWork = 0;
  let most = 0;
  let done = first.length;
  const worker = async (): Promise<void> => {
    while (done < xs.length) {
      const tasks = await tenant.poll(handler, { limit: 3, wait_ms: 100 });
      atWork += tasks.length;
      most = Math.max(most, atWork);
      for (const task of tasks) {
        const { x, at } = task.params as { x: number; at: number };
        assert.equal((task.context as { data: Json }).data.x, x);
        atWork -= 1;
        await tenant.complete(task, { twice: 2 * x, at });
        done += 1;
      }
    }
  };
  await Promise.all([worker(), worker(), worker()]);
  await tenant.until(id, 'completed');
  assert.ok(most > 1 && most <= 5, `${most} at once`);
  const outputs = await tenant.outputs(id);
  const own = outputs.filter(({ block_id }) => block_id === 'f');
  const expected = xs.map((x, at) => ({ twice: 2 * x, at }));
  assert.deepEqual(own.at(-1)?.output, expected);
  assert.equal(own.length, xs.length + 1);
  assert.equal((await tenant.instance(id)).context.data.twice !== undefined, true);
});

test('the tree counts items, and what waits is named with its item', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const block = forEach('orders', 'xs', [step('charge', handler)], { concurrency: 3 });
  const id = await tenant.runUntil('waiting', [block], { xs: numbers(7) });
  await tenant.complete(await tenant.task(handler));
  await tenant.until(id, 'waiting');
  const tree = await tenant.tree(id);
  assert.deepEqual(Object.keys(tree), ['orders', 'charge']);
  assert.deepEqual(tree.orders?.items, { total: 7, running: 3, ended: 1 });
  assert.equal(tree.charge?.state, 'waiting');
  const { body } = await tenant.get<InstanceExplanation>(`/instances/${id}/explain`);
  assert.deepEqual(
    body.waiting_for.map(({ path }) => path),
    ['orders[3]/charge', 'orders[1]/charge', 'orders[2]/charge'],
  );
});

test('a failed item lets those in flight end, and a retry does it again', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const block = forEach('f', 'xs', [step('a', handler, { params: { n: '{{ data.item }}' } })], {
    concurrency: 2,
  });
  const after = transform('z', { all: '{{ outputs.f }}' });
  const id = await tenant.runUntil('waiting', [block, after], { xs: numbers(3) });
  const [first, second] = await tenant.poll(handler, { limit: 9 });
  assert.ok(first !== undefined && second !== undefined);
  await tenant.fail(first, 'no');
  await tenant.until(id, 'waiting');
  assert.deepEqual(await offered(tenant, handler), [], 'no other item begins');
  await tenant.complete(second, { n: 1 });
  const { failure } = await tenant.until(id, 'failed');
  assert.equal(failure?.path, 'f[0]/a');
  await tenant.post(`/instances/${id}/retry`);
  for (const n of [0, 2]) {
    const task = await tenant.task(handler);
    assert.deepEqual(task.params, { n });
    await tenant.complete(task, { n });
  }
  await tenant.until(id, 'completed');
  assert.deepEqual((await tenant.outputsOf(id)).z, { all: numbers(3).map((n) => ({ n })) });
});

survives('items in flight, and what they and those before have given', async (tenant) => {
  const [a, b] = [newHandler(), newHandler()];
  const body = [
    step('a', a, { params: { at: '{{ data.at }}' } }),
    tryCatch(
      't',
      [step('x', 'fail', { params: { message: 'no {{ data.at }}' } })],
      [
        step('b', b, {
          params: {
            own: '{{ outputs.a.n }}',
            data: '{{ data.n }}',
            error: '{{ data._error.message }}',
          },
        }),
      ],
    ),
  ];
  const block = forEach('f', 'xs', body, { concurrency: 3, index_var: 'at' });
  const after = transform('z', { all: '{{ outputs.f }}' });
  const id = await tenant.runUntil('waiting', [block, after], { xs: numbers(5) });
  for (const task of await tenant.poll(a, { limit: 9 })) {
    await tenant.complete(task, { n: (task.params as Json).at });
  }
  const [first] = await tenant.poll(b);
  assert.ok(first !== undefined);
  assert.deepEqual(first.params, { own: 0, data: 0, error: 'no 0' });
  await tenant.complete(first, { end: 0, n: 'other' });
  return async () => {
    // Item 3 has begun in the slot of the first.
    await tenant.complete(await tenant.task(a), { n: 3 });
    const open = await tenant.poll(b, { limit: 9 });
    assert.deepEqual(
      open.map(({ params }) => params),
      [1, 2, 3].map((n) => ({ own: n, data: n, error: `no ${n}` })),
    );
    for (const task of open) await tenant.complete(task, { end: (task.params as Json).own });
    await tenant.complete(await tenant.task(a), { n: 4 });
    await tenant.complete(await tenant.task(b), { end: 4 });
    await tenant.until(id, 'completed');
    const outputs = await tenant.outputsOf(id);
    const expected = numbers(5).map((end) => (end === 0 ? { end, n: 'other' } : { end }));
    assert.deepEqual(outputs.z, { all: expected });
  };
});

survives('items one at a time, and what those before have given', async (tenant) => {
  const handler = newHandler();
  const inner = forEach('g', '{{ data.row }}', [step('a', handler)]);
  const block = forEach('f', 'rows', [inner], { item_var: 'row' });
  const id = await tenant.runUntil('waiting', [block], { rows: [[1, 2], [3], []] });
  await tenant.complete(await tenant.task(handler), { n: 1 });
  return async () => {
    for (const n of [2, 3]) await tenant.complete(await tenant.task(handler), { n });
    await tenant.until(id, 'completed');
    const { f } = await tenant.outputsOf(id);
    assert.deepEqual(f, [[{ n: 1 }, { n: 2 }], [{ n: 3 }], null]);
  };
});

survives('items in flight in which a person has answered', async (tenant) => {
  const [asking, next] = [newHandler(), newHandler()];
  const body = [
    step('ask', asking, { wait_for_input: {} }),
    step('next', next, { params: { n: '{{ outputs.ask.n }}' } }),
  ];
  const block = forEach('f', 'xs', body, { concurrency: 2 });
  const id = await tenant.runUntil('waiting', [block], { xs: numbers(2) });
  const { items } = expectStatus(await tenant.get<ApprovalPage>('/approvals'), 200);
  for (const { id: approval } of items) {
    expectStatus(await tenant.post(`/approvals/${approval}`, { value: 'yes' }), 200);
  }
  for (const at of numbers(2)) await tenant.complete(await tenant.task(asking), { n: at });
  return async () => {
    for (const at of numbers(2)) {
      const task = await tenant.task(next);
      assert.deepEqual(task.params, { n: at });
      await tenant.complete(task, { done: at });
    }
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).f, [{ done: 0 }, { done: 1 }]);
  };
});

survives('that an item has given null, not what a block of it gave before', async (tenant) => {
  const name = `event-${randomUUID()}`;
  const params = { name, key: '{{ data.at }}' };
  const body = [transform('a', { at: '{{ data.at }}' }), step('b', 'wait_for_event', { params })];
  const block = forEach('f', 'xs', body, { index_var: 'at' });
  const id = await tenant.runUntil('waiting', [block], { xs: numbers(2) });
  const send = async (key: string) => {
    const event = { event_name: name, correlation_key: key, producer_event_id: key };
    return expectStatus(await tenant.post<Json>('/events', event), 201);
  };
  assert.equal((await send('0')).matched, 1);
  await eventually(async () => assert.equal((await tenant.outputsOf(id)).f?._index, 1));
  return async () => {
    await send('1');
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).f, [null, null]);
  };
});

survives('that there is too much to collect', async (tenant) => {
  const handler = newHandler();
  const block = forEach('f', 'xs', [step('a', handler, { merge_output: false })], {
    concurrency: 2,
  });
  const id = await tenant.runUntil('waiting', [block], { xs: numbers(3) });
  const big = { text: 'x'.repeat(600_000) };
  for (let at = 0; at < 2; at += 1) await tenant.complete(await tenant.task(handler), big);
  return async () => {
    await tenant.complete(await tenant.task(handler), { n: 2 });
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).f, { count: 3 });
  };
});

// ---------------------------------------------------------------- other versions

interface Moving {
  readonly id: string;
  readonly handler: string;
  readonly to: string;
}

/** An instance at work on the first items, and a version with another concurrency. */
async function moving(tenant: Tenant, from: number, to: number): Promise<Moving> {
  const handler = newHandler();
  const name = `s-${randomUUID()}`;
  const body = [step('a', handler, { params: { n: '{{ data.item }}' } })];
  const [source = '', target = ''] = await Promise.all(
    [from, to].map((concurrency, at) =>
      tenant.sequence([forEach('f', 'xs', body, { concurrency })], { name, version: at + 1 }),
    ),
  );
  const id = await tenant.create(source, { context: { data: { xs: numbers(6) } } });
  await tenant.until(id, 'waiting');
  return { id, handler, to: target };
}

/** Completes what is offered until there is nothing more; returns the most that there was at once. */
async function finish(tenant: Tenant, { id, handler }: Moving): Promise<number> {
  let most = 0;
  for (;;) {
    const tasks = await tenant.poll(handler, { limit: 9 });
    if (tasks.length === 0) break;
    most = Math.max(most, tasks.length);
    for (const task of tasks) await tenant.complete(task, task.params as Json);
  }
  await tenant.until(id, 'completed');
  const { f } = await tenant.outputsOf(id);
  assert.deepEqual(
    f,
    numbers(6).map((n) => ({ n })),
  );
  return most;
}

test('an instance goes over to a version that runs more items at once', async () => {
  const tenant = api.tenant();
  const moved = await moving(tenant, 1, 3);
  await tenant.complete(await tenant.task(moved.handler), { n: 0 });
  await tenant.until(moved.id, 'waiting');
  await migrate(tenant, moved.id, moved.to);
  assert.equal(await finish(tenant, moved), 3);
});

test('an instance goes over to a version that runs fewer items at once when they fit', async () => {
  const tenant = api.tenant();
  const moved = await moving(tenant, 3, 2);
  const refused = await tenant.post<{ error: string }>(MIGRATE, {
    instance_id: moved.id,
    target_sequence_id: moved.to,
  });
  assert.equal(refused.status, 409, refused.text);
  assert.match(refused.body.error, /block f is at 3 items, of which the target runs 2 at once/);
  // Until two of the last three are left.
  for (let at = 0; at < 4; at += 1) {
    const task = await tenant.task(moved.handler);
    await tenant.complete(task, task.params as Json);
  }
  await tenant.until(moved.id, 'waiting');
  await migrate(tenant, moved.id, moved.to);
  assert.equal(await finish(tenant, moved), 2);
});
