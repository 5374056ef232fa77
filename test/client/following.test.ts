/** What is followed by events: an instance until it ends, and the changes of a tenant. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEvent } from '../../client/src/index.js';
import { Client, EngineError, InstanceFailedError } from '../../client/src/index.js';
import { useSharedApi } from '../helpers/api.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { taken } from '../helpers/event-stream.js';

const api = useSharedApi();
let tenants = 0;

async function world(...blocks: Parameters<Client['sequences']['create']>[0]['blocks'][number][]) {
  tenants += 1;
  const tenant = `client-following-${process.pid}-${tenants}`;
  const client = new Client({ url: api.url, apiKey: DEFAULT_API_KEY, tenant });
  await client.sequences.create({ name: 'flow', version: 1, blocks });
  return client;
}

const work = (id: string) => ({ type: 'step', id, handler: 'work' }) as const;
const transform = (id: string, params: object) =>
  ({ type: 'step', id, handler: 'transform', params }) as const;

test('run gives the outputs of the blocks by their ids', async () => {
  const client = await world(transform('sum', { total: '{{ context.data.a }}' }));
  const { id, outputs } = await client.instances.run<{ sum: { total: number } }>('flow', { a: 42 });
  assert.equal(outputs.sum.total, 42);
  const { state, namespace, tenant_id } = await client.instances.get(id);
  assert.deepEqual([state, namespace], ['completed', 'default']);
  assert.match(tenant_id, /^client-following-/);
});

test('a refusal has status, code, field and the id of the request', async () => {
  const refused = (await world(work('a'))).sequences.create({ name: 'x', version: 1, blocks: [] });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof EngineError);
    const { status, code, field, requestId } = error;
    assert.deepEqual([status, code, field], [400, 'ENG_VALIDATION', 'blocks']);
    return requestId !== undefined;
  });
});

test('run with a key that was used before waits for the instance that is there', async () => {
  const client = await world(transform('sum', { a: 1 }));
  const first = await client.instances.run('flow', {}, { idempotencyKey: 'A-1' });
  assert.deepEqual(await client.instances.run('flow', {}, { idempotencyKey: 'A-1' }), first);
});

test('run with a key of another sequence says so, and gives none of its outputs', async () => {
  const client = await world(transform('sum', { a: 1 }));
  const { id } = await client.instances.run('flow', {}, { idempotencyKey: 'A-1' });
  await client.sequences.create({ name: 'other', version: 1, blocks: [transform('b', {})] });
  await assert.rejects(client.instances.run('other', {}, { idempotencyKey: 'A-1' }), {
    code: 'ENG_CONFLICT',
    message: `the idempotency key belongs to instance ${id} of another sequence: default/flow`,
  });
});

test('run of an instance that fails throws where and why', async () => {
  const client = await world({
    type: 'step',
    id: 'broken',
    handler: 'fail',
    params: { message: 'no' },
  });
  await assert.rejects(client.instances.run('flow'), (error) => {
    assert.ok(error instanceof InstanceFailedError);
    assert.deepEqual([error.state, error.failure?.block_id], ['failed', 'broken']);
    assert.match(error.message, /failed at broken: .*no/);
    return true;
  });
});

test('run gives up when it has waited long enough, and the instance goes on', async () => {
  const client = await world(work('slow'));
  const waiting = client.instances.run('flow', {}, { timeout: 50, idempotencyKey: 'slow' });
  await assert.rejects(waiting, { name: 'EngineError', code: 'CLIENT_TIMEOUT', status: 0 });
  const { id } = await client.instances.create({ sequence: 'flow', idempotency_key: 'slow' });
  const [task] = await client.workers.poll({
    handler_name: 'work',
    worker_id: 'w',
    wait_ms: 9_000,
  });
  assert.equal(task?.instance_id, id);
  const end = client.instances.wait<{ slow: { done: boolean } }>(id);
  await client.workers.complete(task?.id ?? '', {
    worker_id: 'w',
    claim_epoch: task?.claim_epoch ?? 0,
    output: { done: true },
  });
  assert.equal((await end).outputs.slow.done, true);
});

test('run of a sequence that collects creations waits for the start, and those of one start have its result', async () => {
  const client = await world(work('other'));
  const blocks = [transform('sum', { all: '{{ context.data.items }}' })];
  const batch = { size: 2, wait_ms: 60_000 };
  await client.sequences.create({ name: 'batched', version: 1, batch, blocks });
  const options = { idempotencyKey: 'first' };
  const runs = [
    client.instances.run('batched', { n: 1 }, options),
    client.instances.run('batched', { n: 1 }, options),
    client.instances.run('batched', { n: 2 }),
  ];
  const [first, ...others] = await Promise.all(runs);
  assert.deepEqual(others, [first, first]);
  const { all } = first!.outputs.sum as { all: object[] };
  assert.deepEqual(
    new Set(all.map((item) => JSON.stringify(item))),
    new Set(['{"n":1}', '{"n":2}']),
  );
});

test('run of a creation whose start is not due in time names the time, and the start stays pending', async () => {
  const client = await world(work('slow'));
  const debounce = { wait_ms: 60_000 };
  await client.sequences.create({ name: 'late', version: 1, debounce, blocks: [work('slow')] });
  const waiting = client.instances.run('late', {}, { timeout: 2_000 });
  await assert.rejects(waiting, (error: EngineError) => {
    assert.equal(error.code, 'CLIENT_TIMEOUT');
    return /did not end in time; it starts at \d{4}-/.test(error.message);
  });
  const { items } = await client.pendingStarts.list();
  assert.deepEqual(
    items.map(({ sequence, count }) => [sequence, count]),
    [['late', 1]],
  );
});

test('run is ended by the signal of its caller', async () => {
  const client = await world(work('slow'));
  const ending = new AbortController();
  const waiting = client.instances.run('flow', {}, { signal: ending.signal });
  setTimeout(() => ending.abort(new Error('enough')), 50);
  await assert.rejects(waiting, /enough/);
});

test('an instance is followed from its first state to its end', async () => {
  const client = await world(transform('one', { a: 1 }), transform('two', { b: 2 }));
  const { id } = await client.instances.create({ sequence: 'flow' });
  const events = await taken(client.instances.follow(id));
  const outputs = events.flatMap((event) =>
    event.type === 'output' ? [event.output.block_id] : [],
  );
  assert.deepEqual(outputs, ['one', 'two']);
  assert.deepEqual(events.at(-1), { type: 'done', state: 'completed' });
});

test('who follows an instance that is not there is told so', async () => {
  const client = await world(work('slow'));
  const follow = taken(client.instances.follow('0192f0c2-1d3f-7a68-b0c4-5e7f90a1b2c3'));
  await assert.rejects(follow, { name: 'EngineError', code: 'ENG_NOT_FOUND', status: 404 });
});

test('a signal ends the following of an instance without an error', async () => {
  const client = await world(work('slow'));
  const { id } = await client.instances.create({ sequence: 'flow' });
  const ending = new AbortController();
  const seen: InstanceEvent[] = [];
  for await (const event of client.instances.follow(id, { signal: ending.signal })) {
    seen.push(event);
    ending.abort();
  }
  assert.equal(seen.length, 1);
});

test('changes are followed from a time, and from the place of an earlier one', async () => {
  const client = await world(transform('one', {}));
  const { id } = await client.instances.run('flow');
  const [first] = await taken(client.changes.follow({ since: new Date(0) }), 1);
  assert.equal(first?.instance_id, id);
  const [same] = await taken(client.changes.follow({ since: '2020-01-01T00:00:00+02:00' }), 1);
  assert.equal(same?.id, first?.id);
  const listed = await taken(client.changes.list());
  const [second] = await taken(client.changes.follow({ since: first?.cursor }), 1);
  assert.deepEqual([first?.id, second?.id], [listed[0]?.id, listed[1]?.id]);
});

test('changes are followed from the present where nothing else is said', async () => {
  const client = await world(transform('one', {}));
  await client.instances.run('flow');
  const following = taken(client.changes.follow(), 1);
  // Until the stream is open nobody can tell what is present.
  const others: string[] = [];
  let isOver = false;
  void following.finally(() => {
    isOver = true;
  });
  while (!isOver) others.push((await client.instances.run('flow')).id);
  const [change] = await following;
  assert.ok(others.includes(change?.instance_id ?? ''));
});
