/** Instances that start others by `sub_sequence`, on whatever shard those are. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { TaskInstance } from '../../schema/instance.js';
import {
  eventually,
  forEach,
  type Json,
  parallel,
  step,
  transform,
  tryCatch,
  useTenant,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { fork, resumeFrom } from '../helpers/edits.js';

const tenant = useTenant();

const childOf = (sequence_name: string, more: Json = {}) => {
  return { type: 'sub_sequence', id: 'child', sequence_name, ...more };
};

const childrenOf = async (id: string, query = ''): Promise<TaskInstance[]> =>
  expectStatus(await tenant.get<TaskInstance[]>(`/instances/${id}/children${query}`), 200);

/** As soon as there are so many, oldest first. */
function untilChildren(id: string, count: number): Promise<TaskInstance[]> {
  return eventually(async () => {
    const children = await childrenOf(id);
    assert.equal(children.length, count);
    return children;
  });
}

const explained = async (id: string): Promise<InstanceExplanation> =>
  expectStatus(await tenant.get<InstanceExplanation>(`/instances/${id}/explain`), 200);

test('a child runs with the rendered input, and its outputs are the output of the block', async () => {
  await tenant.sequence([transform('sum', { total: '{{ data.count }}', by: '{{ config.who }}' })], {
    name: 'sum',
  });
  const input = { count: '{{ data.n }}', deep: { list: ['{{ data.n }}'] } };
  const told = transform('told', { total: '{{ outputs.child.0.output.total }}' });
  const context = { data: { n: 7 }, config: { who: 'me' } };
  const more = { priority: 'high', timezone: 'Europe/Rome', context };
  const id = await tenant.runUntil('completed', [childOf('sum', { input }), told], {}, more);
  const [child] = await untilChildren(id, 1);
  const seen = [child!.parent_instance_id, child!.priority, child!.timezone];
  assert.deepEqual(seen, [id, 'High', 'Europe/Rome']);
  assert.deepEqual(child!.context.data, { count: 7, deep: { list: [7] } });
  assert.deepEqual(child!.metadata, { _parent_block_id: 'child', _sub_sequence_depth: 1 });
  const outputs = await tenant.outputsOf(id);
  assert.deepEqual(outputs.child, await tenant.outputs(child!.id));
  assert.deepEqual((outputs.child as unknown as Json[])[0]!.output, { total: 7, by: 'me' });
  assert.deepEqual(outputs.told, { total: 7 });
});

test('a parent waits for its child, and says which one it is', async () => {
  await tenant.sequence([step('ask', 'ask-waits')], { name: 'waits' });
  const id = await tenant.runUntil('waiting', [childOf('waits')]);
  const [child] = await untilChildren(id, 1);
  await tenant.until(child!.id, 'waiting');
  const node = (await tenant.tree(id)).child!;
  assert.deepEqual([node.state, node.child_instance_id], ['waiting', child!.id]);
  const { waiting_for, next } = await explained(id);
  assert.deepEqual(columns(waiting_for, 'kind', 'block_id', 'child_id', 'child_state'), [
    ['child', 'child', child!.id, 'waiting'],
  ]);
  assert.equal(next[0]!.path, `/instances/${child!.id}/explain`);
  assert.equal((await explained(child!.id)).parent_instance_id, id);
  await tenant.complete(await tenant.task('ask-waits'), { yes: true });
  await tenant.until(id, 'completed');
});

test('whoever sees a parent wait finds its child, also the first one of a sequence', async () => {
  for (let round = 0; round < 10; round += 1) {
    const name = `never-asked-for-${round}`;
    await tenant.sequence([step('a', 'nobody')], { name });
    const id = await tenant.create(await tenant.sequence([childOf(name)]));
    while ((await tenant.instance(id)).state !== 'waiting');
    assert.equal((await childrenOf(id)).length, 1);
  }
});

test('children are listed in pages and by their states', async () => {
  await tenant.sequence([step('ask', 'ask-listed')], { name: 'listed' });
  const branch = (n: number) => [{ ...childOf('listed'), id: `child-${n}` }];
  const id = await tenant.runUntil('waiting', [parallel('all', branch(1), branch(2), branch(3))]);
  const all = await untilChildren(id, 3);
  await tenant.signal(all[1]!.id, 'cancel');
  assert.deepEqual(column(await childrenOf(id, '?state=cancelled'), 'id'), [all[1]!.id]);
  const page = await childrenOf(id, '?limit=2&offset=1');
  assert.deepEqual(column(page, 'id'), column(all.slice(1), 'id'));
  assert.equal((await tenant.get(`/instances/${id}/children?colour=red`)).status, 400);
});

test('the version that runs is the newest that is not deprecated, or the one that is named', async () => {
  const version = (n: number) =>
    tenant.sequence([transform('which', { n })], { name: 'versions', version: n });
  await version(1);
  await version(2);
  expectStatus(await tenant.post(`/sequences/${await version(3)}/deprecate`), 204);
  const blocks = [childOf('versions'), { ...childOf('versions', { version: 1 }), id: 'first' }];
  const outputs = await tenant.outputsOf(await tenant.runUntil('completed', blocks));
  const told = [outputs.child, outputs.first] as unknown as { output: Json }[][];
  assert.deepEqual(column(told.flat(), 'output'), [{ n: 2 }, { n: 1 }]);
});

describe('a block fails for good', () => {
  const failed = async (blocks: readonly Json[], data: Json = {}) => {
    const id = await tenant.runUntil('failed', blocks, data);
    const { failure } = await tenant.instance(id);
    return { id, failure: failure! };
  };

  test('when no sequence has the name, and a later one lets a retry go on', async () => {
    const { id, failure } = await failed([childOf('later')]);
    assert.deepEqual([failure.code, failure.block_id], ['child_not_started', 'child']);
    assert.match(failure.message, /sequence later in namespace test/);
    assert.deepEqual(await childrenOf(id), []);
    await tenant.sequence([step('done', 'noop')], { name: 'later' });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
  });

  test('when the input does not conform to the input_schema of the child', async () => {
    const input_schema = { type: 'object', required: ['sku'] };
    await tenant.sequence([step('done', 'noop')], { name: 'strict', input_schema });
    const { failure } = await failed([childOf('strict', { input: { other: 1 } })]);
    assert.equal(failure.code, 'child_not_started');
    assert.match(failure.message, /sku/);
  });

  test('when the child failed, whose failure it tells', async () => {
    await tenant.sequence([step('no', 'fail', { params: { message: 'no money' } })], {
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
    await tenant.sequence([step('ask', 'ask-cancelled')], { name: 'cancelled' });
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
    let [id, depth] = [first, 0];
    for (let [child] = await childrenOf(id); child; [child] = await childrenOf(id)) {
      id = child.id;
      depth += 1;
    }
    assert.equal(depth, 16);
    assert.equal((await tenant.instance(id)).failure!.code, 'child_too_deep');
  });
});

test('every iteration of a loop and every item has its own child', async () => {
  await tenant.sequence([transform('twice', { n: '{{ data.n }}' })], { name: 'twice' });
  const body = [childOf('twice', { input: { n: '{{ data.item }}' } })];
  const id = await tenant.runUntil('completed', [forEach('each', 'items', body)], {
    items: [1, 2],
  });
  const told = (await childrenOf(id)).map(({ context }) => context.data);
  assert.deepEqual(told, [{ n: 1 }, { n: 2 }]);
  const rows = (await tenant.outputs(id)).filter(({ block_id }) => block_id === 'child');
  const given = column(rows, 'output') as unknown as { output: Json }[][];
  assert.deepEqual(column(given.flat(), 'output'), told);
});

test('a retry of a parent retries the failed child and no completed one', async () => {
  await tenant.sequence([transform('good', { ok: true })], { name: 'good' });
  await tenant.sequence([step('try', 'try-again')], { name: 'again' });
  const id = await tenant.run([childOf('good'), { ...childOf('again'), id: 'second' }]);
  await tenant.fail(await tenant.task('try-again'), 'not now');
  await tenant.until(id, 'failed');
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await tenant.complete(await tenant.task('try-again'), { now: true });
  await tenant.until(id, 'completed');
  const blocks = (await childrenOf(id)).map(
    ({ metadata, state }) => `${metadata._parent_block_id} ${state}`,
  );
  assert.deepEqual(blocks, ['child completed', 'second completed']);
});

test('a retry of a parent keeps a child that was retried on its own', async () => {
  await tenant.sequence([step('try', 'try-alone')], { name: 'alone' });
  const id = await tenant.run([childOf('alone')]);
  await tenant.fail(await tenant.task('try-alone'), 'not now');
  await tenant.until(id, 'failed');
  const [child] = await childrenOf(id);
  expectStatus(await tenant.post(`/instances/${child!.id}/retry`), 200);
  await tenant.complete(await tenant.task('try-alone'));
  await tenant.until(child!.id, 'completed');
  await tenant.until(id, 'failed');
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await tenant.until(id, 'completed');
  assert.equal((await childrenOf(id)).length, 1);
});

test('retries of all three levels of a family are one, and nothing that completed in it is done again', async () => {
  const pay = [step('charge', 'family-charge'), step('ship', 'family-ship')];
  await tenant.sequence(pay, { name: 'family-pay' });
  await tenant.sequence([childOf('family-pay')], { name: 'family-order' });
  const id = await tenant.run([childOf('family-order')]);
  await tenant.complete(await tenant.task('family-charge'), { paid: true });
  await tenant.fail(await tenant.task('family-ship'), 'no stock');
  await tenant.until(id, 'failed');
  const [order] = await childrenOf(id);
  const [payment] = await childrenOf(order!.id);
  const ids = [id, order!.id, payment!.id];
  // One may be under way again by then.
  await Promise.all(ids.map((one) => tenant.post(`/instances/${one}/retry`)));
  await tenant.complete(await tenant.task('family-ship'));
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.poll('family-charge'), []);
  const family = [await childrenOf(id), await childrenOf(order!.id)].flat();
  assert.deepEqual(columns(family, 'id', 'state'), [
    [order!.id, 'completed'],
    [payment!.id, 'completed'],
  ]);
});

/** A payment in a child, as a step of a saga of its parent; the child has failed as the acts of workers say. */
async function orderOf(name: string, acts: readonly `${'ok' | 'fail'} ${string}`[]) {
  const steps = [
    {
      id: 'pay',
      action: step('charge', `${name}-charge`),
      compensation: step('undo', `${name}-undo`),
    },
    { id: 'send', action: step('ship', `${name}-ship`) },
  ];
  await tenant.sequence([{ type: 'saga', id: 'trip', steps }], { name });
  const id = await tenant.run([
    { type: 'saga', id: 'order', steps: [{ id: 'buy', action: childOf(name) }] },
  ]);
  const [child] = await untilChildren(id, 1);
  const live = async (...some: typeof acts) => {
    for (const act of some) {
      const [how, what] = act.split(' ');
      const task = await tenant.task(`${name}-${what}`);
      if (how === 'ok') await tenant.complete(task);
      else await tenant.fail(task, 'no');
    }
  };
  await live(...acts);
  return { id, child: child!.id, live };
}

const retry = async (id: string) => expectStatus(await tenant.post(`/instances/${id}/retry`), 200);

const OWED = ['ok charge', 'fail ship', 'fail undo'] as const;

for (const [how, name] of [
  ['by the retry of its parent', 'owes'],
  ['by itself before', 'owed'],
] as const) {
  test(`a child with an open refund refunds before its parent charges again: ${how}`, async () => {
    const { id, child, live } = await orderOf(name, OWED);
    await tenant.until(id, 'failed');
    if (name === 'owed') {
      await retry(child);
      await live('ok undo');
      await tenant.until(child, 'failed');
    }
    const before = (await tenant.instance(id)).failure!.at;
    await retry(id);
    if (name === 'owes') await live('ok undo');
    await eventually(async () => {
      const { state, failure } = await tenant.instance(id);
      assert.deepEqual([state, failure?.at === before], ['failed', false]);
    });
    assert.deepEqual(column(await childrenOf(id), 'id'), [child]);
    assert.deepEqual(await tenant.poll(`${name}-charge`), []);
    await retry(id);
    await live('ok charge', 'ok ship');
    await tenant.until(id, 'completed');
    assert.deepEqual(column(await childrenOf(id), 'state'), ['failed', 'completed']);
  });
}

test('a child that was cancelled and owes a refund makes it, and only the next retry of its parent starts another', async () => {
  const { id, child, live } = await orderOf('stopped', ['ok charge']);
  await tenant.task('stopped-ship');
  await tenant.signal(child, 'cancel');
  await live('fail undo');
  const { failure } = await tenant.until(id, 'failed');
  assert.equal((await tenant.instance(child)).failure!.code, 'cleanup_failed');
  assert.equal(failure!.code, 'child_failed');
  await retry(id);
  await live('ok undo');
  await tenant.until(child, 'cancelled');
  const again = await tenant.until(id, 'failed');
  assert.equal(again.failure!.message, `child ${child} was cancelled`);
  await retry(id);
  await live('ok charge', 'ok ship');
  await tenant.until(id, 'completed');
  assert.deepEqual(column(await childrenOf(id), 'state'), ['cancelled', 'completed']);
});

test('a child whose parent continued without it reports that, requires confirmation, and is excluded from bulk retries', async () => {
  await tenant.sequence([step('ship', 'orphan-ship')], { name: 'orphan' });
  const guarded = tryCatch('guard', [childOf('orphan')], []);
  const id = await tenant.run([guarded, step('next', 'orphan-next')]);
  const [child] = await untilChildren(id, 1);
  const other = await tenant.run([childOf('orphan')]);
  await untilChildren(other, 1);
  for (let i = 0; i < 2; i += 1) await tenant.fail(await tenant.task('orphan-ship'), 'no');
  for (const one of [child!.id, other]) await tenant.until(one, 'failed');
  const [taken] = await childrenOf(other);
  const told = async (one: string) => {
    const { next } = await explained(one);
    const { runs_again: again, why } = next[0]!;
    return { asks: again!.repeats_effects, stands: again!.parent?.stands, why };
  };
  await tenant.task('orphan-next');
  const gone = await told(child!.id);
  assert.deepEqual([gone.asks, gone.stands], [true, 'went_on']);
  assert.match(gone.why, new RegExp(`Its parent ${id} has continued without it and is waiting`));
  const kept = await told(taken!.id);
  assert.deepEqual([kept.asks, kept.stands], [false, 'takes']);
  assert.equal((await told(other)).stands, undefined);
  const ids = [child!.id, taken!.id, other];
  const many = async (more: Json) => {
    const body = { action: 'retry', filter: { ids }, ...more };
    const { applied, skipped, repeats_effects } = expectStatus(
      await tenant.post<Record<string, number>>('/instances/batch-action', body),
      200,
    );
    return [applied, skipped, repeats_effects];
  };
  assert.deepEqual(await many({ dry_run: true }), [2, 1, 0]);
  assert.deepEqual(await many({ dry_run: true, orphans: true }), [3, 0, 1]);
  const [applied = 0, skipped = 0] = await many({});
  assert.ok(applied >= 1 && applied + skipped === 3);
  // The family is retried once.
  await tenant.complete(await tenant.task('orphan-ship'));
  await tenant.until(other, 'completed');
  assert.deepEqual(await tenant.poll('orphan-ship'), []);
  assert.equal((await tenant.instance(child!.id)).state, 'failed');
});

test('before a retry it is said that a child which was cancelled is replaced, and asked', async () => {
  await tenant.sequence([step('try', 'try-said')], { name: 'said' });
  const id = await tenant.run([childOf('said')]);
  await tenant.fail(await tenant.task('try-said'), 'not now');
  await tenant.until(id, 'failed');
  await tenant.signal((await childrenOf(id))[0]!.id, 'cancel');
  const { runs_again, why } = (await explained(id)).next[0]!;
  assert.equal(runs_again!.repeats_effects, true);
  assert.match(why, /starts another child in place of the one that was cancelled/);
});

test('the first retry of a parent replaces a child that was cancelled after it failed', async () => {
  await tenant.sequence([step('try', 'try-replaced')], { name: 'replaced' });
  const id = await tenant.run([childOf('replaced')]);
  await tenant.fail(await tenant.task('try-replaced'), 'not now');
  await tenant.until(id, 'failed');
  await tenant.signal((await childrenOf(id))[0]!.id, 'cancel');
  await retry(id);
  await tenant.complete(await tenant.task('try-replaced'));
  await tenant.until(id, 'completed');
  assert.deepEqual(column(await childrenOf(id), 'state'), ['cancelled', 'completed']);
});

test('a refund that fails when its order is cancelled stands in the dead letter queue until a retry has made it', async () => {
  const steps = [
    { id: 'pay', action: step('charge', 'r-charge'), compensation: step('refund', 'r-refund') },
    { id: 'send', action: step('ship', 'r-ship') },
  ];
  const id = await tenant.run([{ type: 'saga', id: 's', steps }]);
  await tenant.complete(await tenant.task('r-charge'));
  await tenant.task('r-ship');
  expectStatus(await tenant.post(`/instances/${id}/signals`, { signal_type: 'cancel' }), 201);
  await tenant.fail(await tenant.task('r-refund'), 'the bank is closed');
  await tenant.until(id, 'failed');
  const dead = expectStatus(await tenant.get<TaskInstance[]>('/instances/dlq'), 200);
  const failure = dead.find((one) => one.id === id)?.failure;
  assert.deepEqual([failure?.code, failure?.block_id], ['cleanup_failed', 'refund']);
  expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
  await tenant.complete(await tenant.task('r-refund'));
  await tenant.until(id, 'cancelled');
});

describe('a child of a parent that', () => {
  const protectedChild = async (name: string) => {
    const tidy = [step('tidy', `tidy-${name}`)];
    await tenant.sequence([tryCatch('guard', [step('ask', `ask-${name}`)], [], tidy)], { name });
    const id = await tenant.runUntil('waiting', [childOf(name), step('never', 'noop')]);
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

  test('is resumed from the block is cancelled, and another one takes its place', async () => {
    const { id, child } = await protectedChild('rewound');
    await tenant.signal(id, 'pause');
    await tenant.until(child, 'paused');
    await resumeFrom(tenant, id, 'child');
    const children = await untilChildren(id, 2);
    await tenant.complete(await tenant.task('tidy-rewound'));
    await tenant.until(child, 'cancelled');
    await tenant.until(children[1]!.id, 'waiting');
  });
});

test('children pause and resume with their parent, unless they were paused separately', async () => {
  await tenant.sequence([step('ask', 'ask-paused')], { name: 'paused' });
  const branch = (n: number) => [{ ...childOf('paused'), id: `child-${n}` }];
  const id = await tenant.run([parallel('all', branch(1), branch(2))]);
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

test('a fork starts children of its own, and a dry run is one for the children, too', async () => {
  await tenant.sequence([step('ask', 'ask-forked')], { name: 'forked' });
  const id = await tenant.runUntil('waiting', [transform('first', {}), childOf('forked')]);
  const [child] = await untilChildren(id, 1);
  const forked = await fork(tenant, id, 'child');
  await tenant.until(forked.id, 'completed');
  const [own] = await untilChildren(forked.id, 1);
  assert.notEqual(own!.id, child!.id);
  const { output } = (await tenant.outputs(own!.id))[0]!;
  assert.equal(output.dry_run, true);
  await tenant.until(id, 'waiting');
});

test('a result that is larger than an output may be is told by its size, and explain warns of it', async () => {
  const big = 'x'.repeat(200_000);
  const input = { big: '{{ data.big }}' };
  const steps = Array.from({ length: 6 }, (_, n) => transform(`big-${n}`, input));
  await tenant.sequence(steps, { name: 'big' });
  const id = await tenant.runUntil(
    'completed',
    [childOf('big', { input }), transform('read', { all: '{{ outputs.child.truncated }}' })],
    { big },
  );
  const [child] = await childrenOf(id);
  const { output_bytes, ...rest } = (await tenant.outputsOf(id)).child as Json;
  assert.deepEqual(rest, { instance_id: child!.id, truncated: true, output_count: 6 });
  assert.ok(Number(output_bytes) > 1_200_000);
  const { warnings = [] } = await explained(id);
  assert.deepEqual(columns(warnings, 'kind', 'block_id'), [['output_truncated', 'child']]);
});

test('the sequence of a live child is not deleted, and that of its ended parent is', async () => {
  const inner = await tenant.sequence([step('ask', 'ask-kept')], { name: 'kept' });
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

test('a definition with a wrong name, input or version is refused', async () => {
  for (const [more, words] of [
    [{ sequence_name: undefined }, /sequence_name/],
    [{ sequence_name: ' ' }, /sequence_name/],
    [{ input: [1] }, /input/],
    [{ version: 'latest' }, /version/],
  ] as const) {
    const body = tenant.definition([{ ...childOf('x'), ...more }]);
    const reply = await tenant.post<{ error: string }>('/sequences', body);
    assert.equal(reply.status, 400);
    assert.match(reply.body.error, words);
  }
});
