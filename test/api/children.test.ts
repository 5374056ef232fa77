/** Instances that start others by `sub_sequence`, on whatever shard those are. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { TaskInstance } from '../../schema/instance.js';
import { eventually, type Json, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const tenant = useTenant();

const work = (id: string, handler: string, more: Json = {}) => {
  return { type: 'step', id, handler, ...more };
};
const make = (id: string, params: Json) => work(id, 'transform', { params });
const childOf = (sequence_name: string, more: Json = {}) => {
  return { type: 'sub_sequence', id: 'child', sequence_name, ...more };
};

async function childrenOf(id: string, query = ''): Promise<TaskInstance[]> {
  return expectStatus(await tenant.get<TaskInstance[]>(`/instances/${id}/children${query}`), 200);
}

/** As soon as there are so many, oldest first. */
function untilChildren(id: string, count: number): Promise<TaskInstance[]> {
  return eventually(async () => {
    const children = await childrenOf(id);
    assert.equal(children.length, count);
    return children;
  });
}

async function explained(id: string): Promise<InstanceExplanation> {
  return expectStatus(await tenant.get<InstanceExplanation>(`/instances/${id}/explain`), 200);
}

test('a child runs with the rendered input, and the block gives its outputs', async () => {
  await tenant.sequence([make('sum', { total: '{{ data.count }}', by: '{{ config.who }}' })], {
    name: 'sum',
  });
  const id = await tenant.runUntil(
    'completed',
    [
      childOf('sum', { input: { count: '{{ data.n }}', deep: { list: ['{{ data.n }}'] } } }),
      make('told', { total: '{{ outputs.child.0.output.total }}' }),
    ],
    { n: 7 },
    {
      priority: 'high',
      timezone: 'Europe/Rome',
      context: { data: { n: 7 }, config: { who: 'me' } },
    },
  );
  const [child] = await untilChildren(id, 1);
  assert.equal(child!.parent_instance_id, id);
  assert.equal(child!.priority, 'High');
  assert.equal(child!.timezone, 'Europe/Rome');
  assert.deepEqual(child!.context.data, { count: 7, deep: { list: [7] } });
  assert.deepEqual(child!.metadata, { _parent_block_id: 'child', _sub_sequence_depth: 1 });
  const outputs = await tenant.outputsOf(id);
  assert.deepEqual(outputs.child, await tenant.outputs(child!.id));
  assert.deepEqual((outputs.child as unknown as Json[])[0]!.output, { total: 7, by: 'me' });
  assert.deepEqual(outputs.told, { total: 7 });
});

test('a parent waits for its child, and says which one it is', async () => {
  await tenant.sequence([work('ask', 'ask-waits')], { name: 'waits' });
  const id = await tenant.runUntil('waiting', [childOf('waits')]);
  const [child] = await untilChildren(id, 1);
  await tenant.until(child!.id, 'waiting');
  const node = (await tenant.tree(id)).child!;
  assert.deepEqual([node.state, node.child_instance_id], ['waiting', child!.id]);
  const { waiting_for, next } = await explained(id);
  assert.deepEqual(
    waiting_for.map(({ kind, block_id, child_id, child_state }) => [
      kind,
      block_id,
      child_id,
      child_state,
    ]),
    [['child', 'child', child!.id, 'waiting']],
  );
  assert.equal(next[0]!.path, `/instances/${child!.id}/explain`);
  assert.equal((await explained(child!.id)).parent_instance_id, id);
  await tenant.complete(await tenant.task('ask-waits'), { yes: true });
  await tenant.until(id, 'completed');
  assert.equal((await tenant.tree(id)).child!.child_instance_id, child!.id);
});

test('whoever sees a parent wait finds its child, also the first one of a sequence', async () => {
  for (let round = 0; round < 20; round += 1) {
    const name = `never-asked-for-${round}`;
    await tenant.sequence([work('a', 'nobody')], { name });
    const id = await tenant.create(await tenant.sequence([childOf(name)]));
    while ((await tenant.instance(id)).state !== 'waiting');
    assert.equal((await childrenOf(id)).length, 1);
  }
});

test('children are listed in pages and by their states', async () => {
  await tenant.sequence([work('ask', 'ask-listed')], { name: 'listed' });
  const branch = (n: number) => [{ ...childOf('listed'), id: `child-${n}` }];
  const id = await tenant.runUntil('waiting', [
    { type: 'parallel', id: 'all', branches: [branch(1), branch(2), branch(3)] },
  ]);
  const all = await untilChildren(id, 3);
  await tenant.signal(all[1]!.id, 'cancel');
  assert.deepEqual(
    (await childrenOf(id, '?state=cancelled')).map((one) => one.id),
    [all[1]!.id],
  );
  assert.deepEqual(
    (await childrenOf(id, '?limit=2&offset=1')).map((one) => one.id),
    all.slice(1).map((one) => one.id),
  );
  assert.equal((await tenant.get(`/instances/${id}/children?colour=red`)).status, 400);
});

test('every pass of a loop and every item has a child of its own', async () => {
  await tenant.sequence([make('twice', { n: '{{ data.n }}' })], { name: 'twice' });
  const body = [childOf('twice', { input: { n: '{{ data.item }}' } })];
  const id = await tenant.runUntil(
    'completed',
    [{ type: 'for_each', id: 'each', collection: 'items', body }],
    { items: [1, 2, 3] },
  );
  const children = await childrenOf(id);
  assert.deepEqual(
    children.map(({ context }) => context.data),
    [{ n: 1 }, { n: 2 }, { n: 3 }],
  );
  const rows = (await tenant.outputs(id)).filter(({ block_id }) => block_id === 'child');
  assert.deepEqual(
    rows.map(({ output }) => (output as unknown as Json[])[0]!.output),
    [{ n: 1 }, { n: 2 }, { n: 3 }],
  );
});

describe('which version runs', () => {
  test('is the newest that is not deprecated, or the one that is named', async () => {
    const version = (n: number) => {
      return tenant.sequence([make('which', { n })], { name: 'versions', version: n });
    };
    await version(1);
    await version(2);
    const last = await version(3);
    expectStatus(await tenant.post(`/sequences/${last}/deprecate`), 204);
    const blocks = [childOf('versions'), { ...childOf('versions', { version: 1 }), id: 'first' }];
    const outputs = await tenant.outputsOf(await tenant.runUntil('completed', blocks));
    const told = [outputs.child, outputs.first] as unknown as Json[][];
    assert.deepEqual(
      told.map(([row]) => row!.output),
      [{ n: 2 }, { n: 1 }],
    );
  });
});

describe('a block fails for good', () => {
  const failed = async (blocks: readonly Json[], data: Json = {}) => {
    const id = await tenant.runUntil('failed', blocks, data);
    const { failure } = await tenant.instance(id);
    return { id, failure: failure! };
  };

  test('when no sequence has the name, and a later one lets a retry go on', async () => {
    const { id, failure } = await failed([childOf('later')]);
    assert.equal(failure.code, 'child_not_started');
    assert.equal(failure.block_id, 'child');
    assert.match(failure.message, /sequence later in namespace test/);
    assert.deepEqual(await childrenOf(id), []);
    await tenant.sequence([work('done', 'noop')], { name: 'later' });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
  });

  test('when the input does not conform to the input_schema of the child', async () => {
    const input_schema = { type: 'object', required: ['sku'] };
    await tenant.sequence([work('done', 'noop')], { name: 'strict', input_schema });
    const { failure } = await failed([childOf('strict', { input: { other: 1 } })]);
    assert.equal(failure.code, 'child_not_started');
    assert.match(failure.message, /sku/);
  });

  test('when the input cannot be rendered', async () => {
    await tenant.sequence([work('done', 'noop')], { name: 'any' });
    const unknown = await failed([childOf('any', { input: { a: '{{ nothing.here }}' } })]);
    assert.equal(unknown.failure.code, 'expression_error');
  });

  test('when the child failed, whose failure it tells', async () => {
    await tenant.sequence([work('no', 'fail', { params: { message: 'no money' } })], {
      name: 'fails',
    });
    const { id, failure } = await failed([childOf('fails')]);
    const [child] = await childrenOf(id);
    assert.equal(failure.code, 'child_failed');
    assert.equal(failure.message, `child ${child!.id} failed: no money`);
    const row = (await tenant.outputsOf(id)).child as Json;
    assert.deepEqual((row.details as Json).failure, child!.failure);
  });

  test('when the child was cancelled by itself', async () => {
    await tenant.sequence([work('ask', 'ask-cancelled')], { name: 'cancelled' });
    const id = await tenant.runUntil('waiting', [childOf('cancelled')]);
    const [child] = await untilChildren(id, 1);
    await tenant.signal(child!.id, 'cancel');
    const { failure } = await tenant.until(id, 'failed');
    assert.equal(failure!.message, `child ${child!.id} was cancelled`);
  });

  test('when a sequence starts itself without end', async () => {
    const deep = [childOf('endless')];
    const first = await tenant.create(await tenant.sequence(deep, { name: 'endless' }));
    await tenant.until(first, 'failed');
    let id = first;
    let depth = 0;
    for (; ; depth += 1) {
      const [child] = await childrenOf(id);
      if (child === undefined) break;
      id = child.id;
    }
    assert.equal(depth, 16);
    assert.equal((await tenant.instance(id)).failure!.code, 'child_too_deep');
  });
});

test('a try_catch around the block takes care of the failure of a child', async () => {
  await tenant.sequence([work('no', 'fail')], { name: 'caught' });
  const id = await tenant.runUntil('completed', [
    {
      type: 'try_catch',
      id: 'guard',
      try_block: [childOf('caught')],
      catch_block: [make('seen', { code: '{{ data._error.code }}' })],
    },
  ]);
  assert.deepEqual((await tenant.outputsOf(id)).seen, { code: 'child_failed' });
});

test('a retry starts the child that failed anew, and no child that completed', async () => {
  await tenant.sequence([make('good', { ok: true })], { name: 'good' });
  await tenant.sequence([work('try', 'try-again')], { name: 'again' });
  const id = await tenant.run([childOf('good'), { ...childOf('again'), id: 'second' }]);
  await tenant.fail(await tenant.task('try-again'), 'not now');
  await tenant.until(id, 'failed');
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await tenant.complete(await tenant.task('try-again'), { now: true });
  await tenant.until(id, 'completed');
  const blocks = (await childrenOf(id)).map(({ metadata, state }) => [
    metadata._parent_block_id,
    state,
  ]);
  assert.deepEqual(blocks, [
    ['child', 'completed'],
    ['second', 'failed'],
    ['second', 'completed'],
  ]);
});

test('a child that is retried does not bring its parent back to life', async () => {
  await tenant.sequence([work('try', 'try-alone')], { name: 'alone' });
  const id = await tenant.run([childOf('alone')]);
  await tenant.fail(await tenant.task('try-alone'), 'not now');
  await tenant.until(id, 'failed');
  const [child] = await childrenOf(id);
  expectStatus(await tenant.post(`/instances/${child!.id}/retry`), 200);
  await tenant.complete(await tenant.task('try-alone'));
  await tenant.until(child!.id, 'completed');
  await tenant.until(id, 'failed');
  assert.equal((await childrenOf(id)).length, 1);
});

describe('a child of a parent that', () => {
  const protectedChild = async (name: string) => {
    await tenant.sequence(
      [
        {
          type: 'try_catch',
          id: 'guard',
          try_block: [work('ask', `ask-${name}`)],
          catch_block: [],
          finally_block: [work('tidy', `tidy-${name}`)],
        },
      ],
      { name },
    );
    const parent = await tenant.sequence([childOf(name), work('never', 'noop')], {
      name: `parent-of-${name}`,
    });
    const id = await tenant.create(parent);
    await tenant.until(id, 'waiting');
    const [child] = await untilChildren(id, 1);
    await tenant.until(child!.id, 'waiting');
    return { id, child: child!.id };
  };

  for (const [what, name, end] of [
    ['is cancelled by a signal', 'signalled', (id: string) => tenant.signal(id, 'cancel')],
    ['is cancelled by a move', 'moved', (id: string) => tenant.move(id, 'cancelled')],
  ] as const) {
    test(`${what} is cancelled too, and its finally list runs`, async () => {
      const { id, child } = await protectedChild(name);
      await end(id);
      await tenant.until(id, 'cancelled');
      await tenant.complete(await tenant.task(`tidy-${name}`));
      await tenant.until(child, 'cancelled');
      assert.equal((await tenant.nodeStates(id)).child, 'cancelled');
      assert.deepEqual(await tenant.tasks(`ask-${name}`), []);
    });
  }

  test('loses a race is cancelled', async () => {
    await tenant.sequence([work('ask', 'ask-loser')], { name: 'loser' });
    const id = await tenant.run([
      { type: 'race', id: 'race', branches: [[childOf('loser')], [work('win', 'win')]] },
    ]);
    const [child] = await untilChildren(id, 1);
    await tenant.until(child!.id, 'waiting');
    await tenant.complete(await tenant.task('win'));
    await tenant.until(id, 'completed');
    await tenant.until(child!.id, 'cancelled');
  });

  test('is resumed from the block is cancelled, and another one takes its place', async () => {
    const { id, child } = await protectedChild('rewound');
    await tenant.signal(id, 'pause');
    await tenant.until(child, 'paused');
    expectStatus(await tenant.post(`/instances/${id}/resume-from/child`, {}), 200);
    const children = await untilChildren(id, 2);
    await tenant.complete(await tenant.task('tidy-rewound'));
    await tenant.until(child, 'cancelled');
    await tenant.until(children[1]!.id, 'waiting');
  });
});

test('children are paused and go on with their parent, but not those that somebody else paused', async () => {
  await tenant.sequence([work('ask', 'ask-paused')], { name: 'paused' });
  const branch = (n: number) => [{ ...childOf('paused'), id: `child-${n}` }];
  const id = await tenant.run([{ type: 'parallel', id: 'all', branches: [branch(1), branch(2)] }]);
  const [first, second] = await untilChildren(id, 2);
  await tenant.until(first!.id, 'waiting');
  await tenant.until(second!.id, 'waiting');
  await tenant.signal(second!.id, 'pause');
  await tenant.until(second!.id, 'paused');
  await tenant.signal(id, 'pause');
  await tenant.until(first!.id, 'paused');
  await tenant.signal(id, 'resume');
  await tenant.until(first!.id, 'waiting');
  await tenant.until(id, 'waiting');
  assert.equal((await tenant.instance(second!.id)).state, 'paused');
});

test('a paused parent takes in the end of its child and goes on when it is resumed', async () => {
  await tenant.sequence([work('ask', 'ask-later')], { name: 'ends-later' });
  const id = await tenant.run([childOf('ends-later'), make('told', { done: true })]);
  const [child] = await untilChildren(id, 1);
  await tenant.until(child!.id, 'waiting');
  await tenant.signal(id, 'pause');
  await tenant.until(child!.id, 'paused');
  await tenant.signal(child!.id, 'resume');
  await tenant.complete(await tenant.task('ask-later'));
  await tenant.until(child!.id, 'completed');
  await eventually(async () =>
    assert.equal((await tenant.nodeStates(id)).child, 'completed', 'it was not taken in'),
  );
  assert.equal((await tenant.instance(id)).state, 'paused');
  await tenant.signal(id, 'resume');
  await tenant.until(id, 'completed');
});

test('a fork starts children of its own, and a dry run is one for the children, too', async () => {
  await tenant.sequence([work('ask', 'ask-forked')], { name: 'forked' });
  const id = await tenant.runUntil('waiting', [make('first', {}), childOf('forked')]);
  const [child] = await untilChildren(id, 1);
  const reply = await tenant.post<{ id: string }>(`/instances/${id}/fork`, {
    from_block_id: 'child',
  });
  const fork = expectStatus(reply, 201).id;
  await tenant.until(fork, 'completed');
  const [own] = await untilChildren(fork, 1);
  assert.notEqual(own!.id, child!.id);
  const { output } = (await tenant.outputs(own!.id))[0]!;
  assert.equal(output.dry_run, true);
  await tenant.until(id, 'waiting');
});

test('a result that is larger than an output may be is told by its size', async () => {
  const big = 'x'.repeat(200_000);
  const steps = Array.from({ length: 6 }, (_, n) => make(`big-${n}`, { big: '{{ data.big }}' }));
  await tenant.sequence(steps, { name: 'big' });
  const id = await tenant.runUntil(
    'completed',
    [childOf('big', { input: { big: '{{ data.big }}' } })],
    {
      big,
    },
  );
  const [child] = await childrenOf(id);
  const { output_bytes, ...rest } = (await tenant.outputsOf(id)).child as Json;
  assert.deepEqual(rest, { instance_id: child!.id, truncated: true, output_count: 6 });
  assert.ok(Number(output_bytes) > 1_200_000);
});

test('the sequence of a live child is not deleted, and that of its ended parent is', async () => {
  const inner = await tenant.sequence([work('ask', 'ask-kept')], { name: 'kept' });
  const outer = await tenant.sequence([childOf('kept')], { name: 'keeps' });
  const id = await tenant.create(outer);
  const [child] = await untilChildren(id, 1);
  await tenant.until(child!.id, 'waiting');
  assert.equal((await tenant.delete(`/sequences/${inner}`)).status, 409);
  await tenant.signal(id, 'cancel');
  await tenant.until(child!.id, 'cancelled');
  expectStatus(await tenant.delete(`/sequences/${outer}`), 204);
  expectStatus(await tenant.delete(`/sequences/${inner}`), 204);
});

describe('a definition is refused', () => {
  for (const [what, more, words] of [
    ['without the name of a sequence', { sequence_name: undefined }, /sequence_name/],
    ['with a blank name', { sequence_name: ' ' }, /sequence_name/],
    ['with a text for its input', { input: 'plain' }, /input/],
    ['with a list for its input', { input: [1] }, /input/],
    ['with a version that is no number', { version: 'latest' }, /version/],
  ] as const) {
    test(what, async () => {
      const body = tenant.definition([{ ...childOf('x'), ...more }]);
      const reply = await tenant.post<{ error: string }>('/sequences', body);
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, words);
    });
  }
});
