/** Items of for_each, side by side and one after the other, and what they have given. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkerTask } from '../../schema/worker.js';
import type { Json } from '../helpers/api.js';
import { eventually, forEach, newHandler, step, transform, tryCatch } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { subject } from '../helpers/survival.js';

export const forEachItems = subject();
const { survives } = forEachItems;

survives('items in flight, and what they and those before have given', async (tenant) => {
  const [a, b] = [newHandler(), newHandler()];
  const given = {
    own: '{{ outputs.a.n }}',
    data: '{{ data.n }}',
    error: '{{ data._error.message }}',
  };
  const body = [
    step('a', a, { params: { at: '{{ data.at }}' } }),
    tryCatch(
      't',
      [step('x', 'fail', { params: { message: 'no {{ data.at }}' } })],
      [step('b', b, { params: given })],
    ),
  ];
  const block = forEach('f', 'xs', body, { concurrency: 3, index_var: 'at' });
  const after = transform('z', { all: '{{ outputs.f }}' });
  const id = await tenant.runUntil('waiting', [block, after], { xs: [0, 1, 2, 3, 4] });
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
    // The try of item 3 fails a moment later.
    const open: WorkerTask[] = [];
    await eventually(async () => {
      open.push(...(await tenant.poll(b, { limit: 9 })));
      assert.equal(open.length, 3);
    });
    assert.deepEqual(
      column(open, 'params'),
      [1, 2, 3].map((n) => ({ own: n, data: n, error: `no ${n}` })),
    );
    for (const task of open) await tenant.complete(task, { end: (task.params as Json).own });
    await tenant.complete(await tenant.task(a), { n: 4 });
    await tenant.complete(await tenant.task(b), { end: 4 });
    await tenant.until(id, 'completed');
    const rest = [1, 2, 3, 4].map((end) => ({ end }));
    assert.deepEqual((await tenant.outputsOf(id)).z, { all: [{ end: 0, n: 'other' }, ...rest] });
  };
});

survives('that an item has given null, not what a block of it gave before', async (tenant) => {
  const name = `event-${randomUUID()}`;
  const params = { name, key: '{{ data.at }}' };
  const body = [transform('a', { at: '{{ data.at }}' }), step('b', 'wait_for_event', { params })];
  const block = forEach('f', 'xs', body, { index_var: 'at' });
  const id = await tenant.runUntil('waiting', [block], { xs: [0, 1] });
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
  const body = [step('a', handler, { merge_output: false })];
  const block = forEach('f', 'xs', body, { concurrency: 2 });
  const id = await tenant.runUntil('waiting', [block], { xs: [0, 1, 2] });
  const big = { text: 'x'.repeat(600_000) };
  for (let at = 0; at < 2; at += 1) await tenant.complete(await tenant.task(handler), big);
  return async () => {
    await tenant.complete(await tenant.task(handler), { n: 2 });
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputsOf(id)).f, { count: 3, truncated: true });
  };
});
