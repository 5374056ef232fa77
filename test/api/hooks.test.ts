/** The hooks of a sequence over HTTP: when they run, what they see and leave, and what is refused. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  eventually,
  type Json,
  newHandler,
  step,
  transform,
  useTenant,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const tenant = useTenant();

/** An instance of a sequence with hooks, waiting for a worker of the handler. */
async function waiting(hooks: Json) {
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)], hooks);
  const id = await tenant.create(sequence);
  return { id, sequence, handler, task: await tenant.task(handler) };
}

/** Waits for these rows, in their order. */
const leaves = (id: string, rows: readonly string[]) =>
  eventually(async () => assert.deepEqual(await tenant.rowsOf(id), rows));

async function auditOf(id: string): Promise<Json[]> {
  return expectStatus(await tenant.get<Json[]>(`/instances/${id}/audit`), 200);
}

test('on_failure runs after the instance has failed, and is told why', async () => {
  const on_failure = [
    transform('tell', { why: '{{ data._error.message }}', code: '{{ data._error.code }}' }),
    step('broken', 'fail'),
    transform('last', { again: '{{ outputs.tell.why }}' }),
  ];
  const { id, task } = await waiting({ on_failure });
  await tenant.fail(task, 'out of stock');
  await leaves(id, ['tell', 'last']);
  const { tell, last } = await tenant.outputsOf(id);
  assert.deepEqual(tell, { why: 'out of stock', code: 'worker_failed' });
  assert.deepEqual(last, { again: 'out of stock' });
  const instance = await tenant.instance(id);
  assert.equal(instance.state, 'failed');
  assert.equal(instance.failure?.block_id, 'a');
  assert.equal(instance.context.data._error, undefined);
  assert.deepEqual(await tenant.deadLetters(), [id]);
  const noted = (await auditOf(id)).filter(({ event_type }) => event_type === 'hook_failed');
  assert.deepEqual(
    noted.map(({ block_id }) => block_id),
    ['broken'],
  );
  assert.deepEqual(await tenant.nodeStates(id), { a: 'failed' });
});

test('a retry that fails again runs them again', async () => {
  const { id, task, handler } = await waiting({ on_failure: [step('tell', 'noop')] });
  await tenant.fail(task, 'one');
  await leaves(id, ['tell']);
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await tenant.fail(await tenant.task(handler), 'two');
  await leaves(id, ['tell', 'tell']);
  assert.deepEqual(
    (await tenant.outputs(id)).map(({ attempt }) => attempt),
    [0, 1],
  );
});

describe('on_cancel runs after', () => {
  const ways: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    'the signal cancel': (id) => tenant.signal(id, 'cancel'),
    'a change of the state': (id) => tenant.move(id, 'cancelled'),
    'a bulk change': async () =>
      expectStatus(
        await tenant.patch('/instances/bulk/state', {
          filter: { states: ['waiting'] },
          state: 'cancelled',
        }),
        200,
      ),
  };
  for (const [way, cancel] of Object.entries(ways)) {
    test(way, async () => {
      const hooks = { on_cancel: [step('tell', 'noop')], on_failure: [step('never', 'noop')] };
      const { id } = await waiting(hooks);
      await cancel(id);
      await leaves(id, ['tell']);
      assert.equal((await tenant.instance(id)).state, 'cancelled');
    });
  }
});

test('an instance that completes runs none of them', async () => {
  const hooks = { on_failure: [step('f', 'noop')], on_cancel: [step('c', 'noop')] };
  const { id, task } = await waiting(hooks);
  await tenant.complete(task);
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['a']);
});

test('the definition reads back as it was stored, and without hooks has none', async () => {
  const hooks = { on_failure: [step('f', 'noop', { params: { x: 1 } })], on_cancel: [] };
  const id = await tenant.sequence([step('a', 'noop')], hooks);
  const stored = expectStatus(await tenant.get<Json>(`/sequences/${id}`), 200);
  assert.deepEqual([stored.on_failure, stored.on_cancel], [hooks.on_failure, []]);
  const none = await tenant.sequence([step('a', 'noop')], { on_failure: null });
  const plain = expectStatus(await tenant.get<Json>(`/sequences/${none}`), 200);
  assert.ok(!('on_failure' in plain) && !('on_cancel' in plain));
});

describe('a hook that cannot run as one is 400 that names it', () => {
  const cases: readonly [title: string, hooks: Json, message: string][] = [
    ['no list', { on_failure: step('x', 'noop') }, 'on_failure must be an array'],
    [
      'a handler of workers',
      { on_failure: [step('x', 'charge_card')] },
      'on_failure[0].handler must be one of noop',
    ],
    [
      'a block that is no step',
      { on_cancel: [step('x', 'noop'), { type: 'parallel', id: 'p', branches: [] }] },
      'on_cancel[1].type must be step',
    ],
    [
      'what a try would need',
      { on_failure: [step('x', 'noop', { retry: { max_attempts: 2 } })] },
      'on_failure[0].retry is not supported',
    ],
    ['the id of a block', { on_failure: [step('a', 'noop')] }, 'block id a is not unique'],
    [
      'parameters that its handler always refuses',
      { on_failure: [step('x', 'http_request', { params: {} })] },
      'on_failure[0].params.url is required',
    ],
  ];
  for (const [title, hooks, message] of cases) {
    test(title, async () => {
      const body = tenant.definition([step('a', 'noop')], hooks);
      const reply = await tenant.post<{ error: string }>('/sequences', body);
      assert.equal(reply.status, 400, reply.text);
      assert.ok(reply.body.error.includes(message), reply.text);
    });
  }

  test('what is odd in one is a warning', async () => {
    const hooks = {
      on_failure: [
        step('x', 'log', { params: { message: '{{ outputs.a.n }} {{ outputs.y }}' }, tiemout: 1 }),
        step('y', 'log', { params: { mesage: '{{ outputs.x.message }}' } }),
      ],
      on_cancel: [step('z', 'noop', { when: 'outputs.x' })],
    };
    const body = tenant.definition([step('a', 'noop', { when: 'outputs.x' })], hooks);
    const reply = await tenant.post<{ warnings: Json[] }>('/sequences/validate', body);
    assert.deepEqual(
      expectStatus(reply, 200)
        .warnings.map(({ path }) => path)
        .sort(),
      [
        'blocks[0].when',
        'on_cancel[0].when',
        'on_failure[0].params.message',
        'on_failure[0].tiemout',
        'on_failure[1].params.mesage',
      ],
    );
  });
});
