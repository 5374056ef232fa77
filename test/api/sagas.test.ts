/** Sagas, splits, scopes, guards of composite blocks and what races tell, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  step,
  transform,
  tryCatch,
  useTenant,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const tenant = useTenant();

const noop = (id: string) => step(id, 'noop');
const fail = (id: string) => step(id, 'fail');
const saga = (id: string, steps: Json[]): Json => ({ type: 'saga', id, steps });
const scope = (id: string, ...blocks: Json[]): Json => ({ type: 'cancellation_scope', id, blocks });
const split = (id: string, variants: Json[], type = 'ab_split'): Json => ({ type, id, variants });

describe('Saga: strict reverse order; only completed steps compensated; failing compensation does not stop; `_error` has failed_step, source, block_id; first-step failure compensates nothing; inside try_catch it is recoverable', () => {
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
    assert.deepEqual(
      await tenant
        .outputsOf(
          await tenant.runUntil('completed', [tryCatch('t', [first], [noop('caught')]), noop('z')]),
        )
        .then(Object.keys),
      ['a', 'caught', 'z'],
    );
  });

  test('a saga without steps completes', async () => {
    await tenant.runUntil('completed', [saga('s', [])]);
  });

  test('a cancel compensates, too, and waits for it', async () => {
    const [act, undo] = [newHandler(), newHandler()];
    const id = await tenant.run([
      saga('s', [
        { id: '1', action: noop('a'), compensation: step('undo', undo) },
        { id: '2', action: step('b', act), compensation: noop('never') },
      ]),
    ]);
    const task = await tenant.task(act);
    await tenant.signal(id, 'cancel');
    assert.equal(await tenant.call('complete', task, { claim_epoch: 1 }), 409);
    assert.equal((await tenant.instance(id)).state, 'waiting');
    await tenant.complete(await tenant.task(undo));
    await tenant.until(id, 'cancelled');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'undo']);
  });

  test('a retry runs all of it again, with other idempotency tokens and rows', async () => {
    const [one, two] = [newHandler(), newHandler()];
    const id = await tenant.run([
      saga('s', [
        { id: '1', action: step('a', one), compensation: noop('undo') },
        { id: '2', action: step('b', two) },
      ]),
    ]);
    await tenant.complete(await tenant.task(one), { run: 1 });
    await tenant.fail(await tenant.task(two), 'no');
    await tenant.until(id, 'failed');
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.complete(await tenant.task(one), { run: 2 });
    await tenant.complete(await tenant.task(two));
    await tenant.until(id, 'completed');
    assert.deepEqual(
      (await tenant.outputs(id)).map(({ block_id, attempt }) => `${block_id} ${attempt}`),
      ['a 0', 'undo 0', 'a 1', 'b 0'],
    );
  });
});

describe('ab_split choice is stable per instance and both variants occur over 20 instances', () => {
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

  test('a retry of the instance keeps the variant', async () => {
    const handlers = { a: newHandler(), b: newHandler() };
    const variants = Object.entries(handlers).map(([name, handler]) => ({
      name,
      weight: 50,
      blocks: [step(name, handler)],
    }));
    const id = await tenant.run([split('s', variants)]);
    const { variant } = (await tenant.outputsOf(id)).s as { variant: 'a' | 'b' };
    await tenant.fail(await tenant.task(handlers[variant]), 'no');
    await tenant.until(id, 'failed');
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.complete(await tenant.task(handlers[variant]));
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['s', variant]);
  });
});

describe('Cancel during finally or a cancellation scope is deferred; the protected node completes; the instance then is cancelled; the next root step never runs', () => {
  for (const paused of [false, true]) {
    test(`a scope in an instance that is ${paused ? 'paused' : 'waiting'}`, async () => {
      const handler = newHandler();
      const id = await tenant.run([scope('s', step('a', handler), noop('b')), noop('z')]);
      const task = await tenant.task(handler);
      if (paused) await tenant.signal(id, 'pause');
      await tenant.signal(id, 'cancel');
      assert.equal((await tenant.instance(id)).state, 'waiting');
      await tenant.complete(task);
      await tenant.until(id, 'cancelled');
      assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
      assert.deepEqual(await tenant.nodeStates(id), {
        s: 'completed',
        a: 'completed',
        b: 'completed',
        z: 'cancelled',
      });
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

test("a race's output is `{winner, output}`, which later blocks can read", async () => {
  const slow = newHandler();
  const id = await tenant.runUntil('completed', [
    race('r', [[step('slow', slow)], [transform('fast', { n: 7 })]]),
    transform('z', { by: '{{ outputs.r.winner }}', n: '{{ outputs.r.output.n }}' }),
  ]);
  const { r, z } = await tenant.outputsOf(id);
  assert.deepEqual(r, { winner: 1, output: { n: 7 } });
  assert.deepEqual(z, { by: 1, n: 7 });
});

describe('a mistake in one of them is 400 that names its place', () => {
  const blocks = [noop('a')];
  const variant = (name: unknown, weight: unknown) => ({ name, weight, blocks });
  const cases: readonly [title: string, block: Json, message: string][] = [
    ['a scope without blocks', scope('s'), 'blocks[0].blocks must not be empty'],
    ['a saga without a list', { type: 'saga', id: 's' }, 'blocks[0].steps is required'],
    ['a step without action', saga('s', [{ id: '1' }]), 'blocks[0].steps[0].action is required'],
    ['a step without id', saga('s', [{ action: noop('a') }]), 'blocks[0].steps[0].id is required'],
    [
      'an empty action',
      saga('s', [{ id: '1', action: [] }]),
      'blocks[0].steps[0].action must not be empty',
    ],
    [
      'an action that is no block',
      saga('s', [{ id: '1', action: 'a' }]),
      'blocks[0].steps[0].action must be an object',
    ],
    [
      'a block of no kind in a compensation',
      saga('s', [{ id: '1', action: noop('a'), compensation: [{ type: 'stp', id: 'x' }] }]),
      'blocks[0].steps[0].compensation[0].type is an unknown block type: stp',
    ],
    [
      'a member of a block in an action',
      saga('s', [{ id: '1', action: step('a', 'noop', { timeout: -1 }) }]),
      'blocks[0].steps[0].action.timeout must be >= 0',
    ],
    [
      'the id of a step that a block has',
      saga('s', [{ id: 'a', action: noop('a') }]),
      'block id a is not unique',
    ],
    [
      'the id of a step twice',
      saga('s', [
        { id: '1', action: noop('a') },
        { id: '1', action: noop('b') },
      ]),
      'saga step id 1 is not unique',
    ],
    ['one variant', split('s', [variant('x', 1)]), 'blocks[0].variants must have at least 2 items'],
    [
      'variants without weight',
      split('s', [variant('x', 0), variant('y', 0)]),
      'blocks[0] must have a variant whose weight is above 0',
    ],
    [
      'variants of one name',
      split('s', [variant('x', 1), variant('x', 1)]),
      'blocks[0] must have variants of different names, and has x twice',
    ],
    [
      'a weight below 0',
      split('s', [variant('x', -1), variant('y', 1)], 'a_b_split'),
      'blocks[0].variants[0].weight must be >= 0',
    ],
    [
      'half a weight',
      split('s', [variant('x', 0.5), variant('y', 1)]),
      'blocks[0].variants[0].weight must be an integer',
    ],
    [
      'a blank name',
      split('s', [variant(' ', 1), variant('y', 1)]),
      'blocks[0].variants[0].name must not be blank',
    ],
    [
      'a when that is no text',
      { ...parallel('p', []), when: 1 },
      'blocks[0].when must be a string',
    ],
  ];
  for (const [title, block, message] of cases) {
    test(title, async () => {
      const reply = await tenant.post<{ error: string }>('/sequences', tenant.definition([block]));
      assert.equal(reply.status, 400, reply.text);
      assert.ok(reply.body.error.includes(message), reply.text);
      assert.ok(!reply.body.error.includes('is not valid'), reply.text);
    });
  }

  test('warnings know what is inside of them', async () => {
    const odd = [
      saga('s', [
        {
          id: '1',
          action: step('a', 'log', { params: { message: '{{ outputs.nobody }}' }, tiemout: 1 }),
          compensations: [],
        },
      ]),
      { ...parallel('p', [noop('b')]), when: 'outputs.z' },
      split('v', [
        { name: 'x', weight: 1, blocks: [], wieght: 2 },
        { name: 'y', weight: 1, blocks: [] },
      ]),
      noop('z'),
    ];
    const reply = await tenant.post<{ warnings: { path: string }[] }>(
      '/sequences/validate',
      tenant.definition(odd),
    );
    assert.deepEqual(
      expectStatus(reply, 200)
        .warnings.map(({ path }) => path)
        .sort(),
      [
        'blocks[0].steps[0].action.params.message',
        'blocks[0].steps[0].action.tiemout',
        'blocks[0].steps[0].compensations',
        'blocks[1].when',
        'blocks[2].variants[0].wieght',
      ],
    );
  });
});
