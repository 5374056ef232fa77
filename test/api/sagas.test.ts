/** Sagas, splits, protected blocks, guards, races, and hooks of sequences, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  eventually,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  step,
  transform,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();

const noop = (id: string) => step(id, 'noop');
const fail = (id: string) => step(id, 'fail');
const saga = (id: string, steps: Json[]): Json => ({ type: 'saga', id, steps });
const scope = (id: string, ...blocks: Json[]): Json => ({ type: 'cancellation_scope', id, blocks });
const split = (id: string, variants: Json[], type = 'ab_split'): Json => ({ type, id, variants });

describe('Saga: completed steps are compensated in reverse order, past a failing compensation; `_error` has failed_step, source and block_id; try_catch can recover', () => {
  test('what completed is compensated in reverse, whatever becomes of it', async () => {
    const told = { params: { step: '{{ data._error.failed_step }}' } };
    const id = await tenant.runUntil('failed', [
      saga('trip', [
        { id: 'flight', action: noop('fly'), compensation: step('unfly', 'transform', told) },
        { id: 'hotel', action: [noop('look'), noop('book')], compensation: [fail('unbook')] },
        { id: 'car', action: parallel('p', [noop('rent')]), compensation: noop('unrent') },
        { id: 'pay', action: step('charge', 'fail', { params: { message: 'no money' } }) },
        { id: 'never', action: noop('n'), compensation: noop('un') },
      ]),
    ]);
    const rows = await tenant.outputs(id);
    assert.deepEqual(
      rows.filter(({ output_ref }) => output_ref === null).map(({ block_id }) => block_id),
      ['fly', 'look', 'book', 'rent', 'unrent', 'unfly'],
    );
    assert.deepEqual(rows.at(-1)?.output, { step: 'pay' });
    const instance = await tenant.instance(id);
    const { failed_step, source, block_id } = instance.context.data._error as Json;
    assert.deepEqual([failed_step, source, block_id], ['pay', 'saga', 'trip']);
    assert.equal(instance.failure?.block_id, 'charge');
    assert.equal(instance.failure?.message, 'no money; compensations failed, too: hotel');
    const audit = expectStatus(await tenant.get<Json[]>(`/instances/${id}/audit`), 200);
    const noted = audit.find(({ event_type }) => event_type === 'saga_compensated');
    assert.deepEqual(noted?.details, {
      compensated: ['flight', 'car'],
      compensations_failed: ['hotel'],
    });
  });

  test('the first step compensates nothing, and try_catch recovers', async () => {
    const first = saga('s', [{ id: '1', action: fail('a'), compensation: noop('un') }]);
    const blocks = [tryCatch('t', [first], [noop('caught')]), noop('z')];
    const id = await tenant.runUntil('completed', blocks);
    assert.deepEqual(Object.keys(await tenant.outputsOf(id)), ['a', 'caught', 'z']);
  });
});

describe('The choice of ab_split is stable per instance, and 20 instances get both variants', () => {
  for (const type of ['ab_split', 'a_b_split']) {
    test(`${type}, over many instances`, async () => {
      const variants = ['red', 'blue'].map((name) => ({ name, weight: 1, blocks: [noop(name)] }));
      const sequence = await tenant.sequence([split('color', variants, type), noop('z')]);
      const stored = expectStatus(await tenant.get<Json>(`/sequences/${sequence}`), 200);
      assert.equal((stored.blocks as Json[])[0]?.type, type);
      const seen = new Set<unknown>();
      for (let i = 0; i < 40 && seen.size < 2; i += 1) {
        const id = await tenant.create(sequence);
        await tenant.until(id, 'completed');
        const { color, ...others } = await tenant.outputsOf(id);
        const { variant, variant_index } = color as Json;
        assert.deepEqual(Object.keys(others), [variant, 'z']);
        assert.equal(['red', 'blue'][variant_index as number], variant);
        assert.equal((await tenant.tree(id)).color?.block_type, 'ab_split');
        seen.add(variant);
      }
      assert.equal(seen.size, 2);
    });
  }
});

describe('A cancel during finally or a cancellation scope takes effect after that block, before the next root step', () => {
  const guarded = (last: Json) => [
    tryCatch('t', [step('tried', 'noop')], [], [last, step('tidy', 'noop')]),
    step('next', newHandler()),
  ];

  test('during an external step of a finally list', async () => {
    const handler = newHandler();
    const id = await tenant.run(guarded(step('last', handler)));
    const task = await tenant.task(handler);
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).state, 'waiting');
    assert.equal((await tenant.nodeStates(id)).last, 'waiting');
    await tenant.complete(task, { cleaned: true });
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await tenant.rowsOf(id), ['tried', 'last', 'tidy']);
    const { last, tidy, next } = await tenant.nodeStates(id);
    assert.deepEqual([last, tidy, next], ['completed', 'completed', 'cancelled']);
  });

  test('during a cancellation scope, of a paused instance too', async () => {
    const handler = newHandler();
    const id = await tenant.run([scope('s', step('a', handler), noop('b')), noop('z')]);
    const task = await tenant.task(handler);
    await tenant.signal(id, 'pause');
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).state, 'waiting');
    await tenant.complete(task);
    await tenant.until(id, 'cancelled');
    const states = { s: 'completed', a: 'completed', b: 'completed', z: 'cancelled' };
    assert.deepEqual(await tenant.nodeStates(id), states);
  });
});

describe('A non-cancellable step ends normally when the instance is cancelled, and the instance reaches a terminal state', () => {
  for (const call of ['complete', 'fail'] as const) {
    test(`when its worker calls ${call}`, async () => {
      const handler = newHandler();
      const id = await tenant.run([step('a', handler, { cancellable: false }), step('b', 'noop')]);
      const task = await tenant.task(handler);
      await tenant.signal(id, 'cancel');
      assert.equal((await tenant.instance(id)).state, 'waiting');
      assert.equal(await tenant.call(call, task), 200);
      await tenant.until(id, 'cancelled');
      assert.deepEqual(await tenant.rowsOf(id), call === 'complete' ? ['a'] : []);
    });
  }
});

describe('`when` works on every kind of block', () => {
  const inner = () => [noop('in')];
  const kinds: Readonly<Record<string, Json>> = {
    parallel: parallel('b', inner()),
    race: race('b', [inner()]),
    router: { type: 'router', id: 'b', default: inner() },
    try_catch: tryCatch('b', inner(), []),
    loop: loop('b', 'true', inner(), 1),
    for_each: forEach('b', 'xs', inner()),
    cancellation_scope: scope('b', ...inner()),
    saga: saga('b', [{ id: 's', action: inner() }]),
    ab_split: split('b', [
      { name: 'x', weight: 1, blocks: inner() },
      { name: 'y', weight: 0, blocks: [] },
    ]),
  };
  for (const [kind, block] of Object.entries(kinds)) {
    test(`${kind}: skipped as a whole, run, or failed`, async () => {
      const data = { xs: [1], on: true };
      const at = (when: string) => [{ ...block, when }, noop('z')];
      const skipped = await tenant.runUntil('completed', at('data.off'), data);
      assert.deepEqual(await tenant.rowsOf(skipped), ['z']);
      assert.deepEqual(await tenant.nodeStates(skipped), {
        b: 'skipped',
        in: 'skipped',
        z: 'completed',
      });
      const run = await tenant.runUntil('completed', at('data.on'), data);
      assert.ok((await tenant.rowsOf(run)).includes('in'));
      const failed = await tenant.instance(await tenant.runUntil('failed', at('a b ('), data));
      assert.deepEqual([failed.failure?.block_id, failed.failure?.code], ['b', 'expression_error']);
    });
  }
});

test('the output of a race is `{winner, output}`, available to later blocks', async () => {
  const slow = newHandler();
  const id = await tenant.runUntil('completed', [
    race('r', [[step('slow', slow)], [transform('fast', { n: 7 })]]),
    transform('z', { by: '{{ outputs.r.winner }}', n: '{{ outputs.r.output.n }}' }),
  ]);
  const { r, z } = await tenant.outputsOf(id);
  assert.deepEqual(r, { winner: 1, output: { n: 7 } });
  assert.deepEqual(z, { by: 1, n: 7 });
});

// ---------------------------------------------------------------- hooks

const hooked = api.tenant();

/** An instance of a sequence with hooks, waiting for a worker of the handler. */
async function waiting(hooks: Json) {
  const handler = newHandler();
  const sequence = await hooked.sequence([step('a', handler)], hooks);
  return { id: await hooked.create(sequence), sequence, handler, task: await hooked.task(handler) };
}

/** Waits for these rows, in their order. */
const leaves = (id: string, rows: readonly string[]) =>
  eventually(async () => assert.deepEqual(await hooked.rowsOf(id), rows));

const auditOf = async (id: string): Promise<Json[]> =>
  expectStatus(await hooked.get<Json[]>(`/instances/${id}/audit`), 200);

test('on_failure runs after the instance has failed, and receives the reason', async () => {
  const on_failure = [
    transform('tell', { why: '{{ data._error.message }}', code: '{{ data._error.code }}' }),
    step('broken', 'fail'),
    transform('last', { again: '{{ outputs.tell.why }}' }),
  ];
  const { id, task } = await waiting({ on_failure });
  await hooked.fail(task, 'out of stock');
  await leaves(id, ['tell', 'last']);
  const { tell, last } = await hooked.outputsOf(id);
  assert.deepEqual(tell, { why: 'out of stock', code: 'worker_failed' });
  assert.deepEqual(last, { again: 'out of stock' });
  const instance = await hooked.instance(id);
  assert.deepEqual([instance.state, instance.failure?.block_id], ['failed', 'a']);
  assert.equal(instance.context.data._error, undefined);
  assert.deepEqual(await hooked.deadLetters(), [id]);
  const noted = (await auditOf(id)).filter(({ event_type }) => event_type === 'hook_failed');
  assert.deepEqual(column(noted, 'block_id'), ['broken']);
  assert.deepEqual(await hooked.nodeStates(id), { a: 'failed' });
});

test('on_cancel runs after the signal, a change of the state, and a bulk change', async () => {
  const filter = { filter: { states: ['waiting'] }, state: 'cancelled' };
  const ways: readonly ((id: string) => Promise<unknown>)[] = [
    (id) => hooked.signal(id, 'cancel'),
    (id) => hooked.move(id, 'cancelled'),
    async () => expectStatus(await hooked.patch('/instances/bulk/state', filter), 200),
  ];
  for (const cancel of ways) {
    const hooks = { on_cancel: [step('tell', 'noop')], on_failure: [step('never', 'noop')] };
    const { id } = await waiting(hooks);
    await cancel(id);
    await leaves(id, ['tell']);
    assert.equal((await hooked.instance(id)).state, 'cancelled');
  }
});

test('the definition reads back as it was stored, and without hooks has none', async () => {
  const hooks = { on_failure: [step('f', 'noop', { params: { x: 1 } })], on_cancel: [] };
  const id = await hooked.sequence([step('a', 'noop')], hooks);
  const stored = expectStatus(await hooked.get<Json>(`/sequences/${id}`), 200);
  assert.deepEqual([stored.on_failure, stored.on_cancel], [hooks.on_failure, []]);
  const none = await hooked.sequence([step('a', 'noop')], { on_failure: null });
  const plain = expectStatus(await hooked.get<Json>(`/sequences/${none}`), 200);
  assert.ok(!('on_failure' in plain) && !('on_cancel' in plain));
});
