/** Definitions that run in the process of their tests, without a server. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FatalError, sequence } from '../../client/src/index.js';
import { run } from '../../client/src/testing/run.js';

const START = '2026-03-02T09:00:00.000Z';
const after = (ms: number) => new Date(Date.parse(START) + ms);
const DAY = 86_400_000;

const order = sequence<
  { charge: { params: { amount: number }; output: { receipt: string } } },
  { amount: number }
>('order')
  .step('pay', {
    handler: 'charge',
    params: ({ input }) => ({ amount: input.amount }),
    retry: { max_attempts: 3, initial_backoff: 60_000 },
  })
  .step('rest', { handler: 'sleep', params: { duration_ms: 2 * DAY } })
  .waitForEvent('shipped', { name: 'shipped', timeout_ms: 7 * DAY, reply: ({ taken }) => taken });

test('handlers are functions, waits take no time, and everything has its virtual time', async () => {
  const seen: unknown[] = [];
  const result = await run(order, {
    data: { amount: 5 },
    handlers: {
      charge: ({ amount }, { attempt }) => {
        seen.push([amount, attempt]);
        if (attempt === 0) throw new Error('busy');
        return { receipt: 'r-1' };
      },
    },
    events: [{ event_name: 'shipped', after: '3d', payload: { by: 'truck' } }],
    now: START,
  });
  assert.deepEqual(seen, [
    [5, 0],
    [5, 1],
  ]);
  assert.deepEqual([result.state, result.failure], ['completed', null]);
  assert.deepEqual(result.outputs.pay, { receipt: 'r-1' });
  assert.deepEqual(result.outputs.shipped, { by: 'truck' });
  assert.deepEqual(
    result.calls.map(({ at }) => at),
    [after(0), after(60_000)],
  );
  assert.deepEqual(result.now, after(3 * DAY));
});

test('a run says how it failed, or that it waits for what does not come', async () => {
  const refuse = () => {
    throw new FatalError('card refused');
  };
  const failed = await run(order, {
    data: { amount: 1 },
    handlers: { charge: refuse },
    now: START,
  });
  assert.equal(failed.state, 'failed');
  assert.deepEqual([failed.failure?.block_id, failed.failure?.message], ['pay', 'card refused']);

  const charge = () => ({ receipt: 'r' });
  const late = await run(order, { data: { amount: 1 }, handlers: { charge }, now: START });
  assert.deepEqual([late.state, late.failure?.code], ['failed', 'timeout']);
  assert.deepEqual(late.now, after(9 * DAY));

  const open = {
    blocks: [{ type: 'step', id: 'a', handler: 'wait_for_event', params: { name: 'x' } }],
  };
  assert.equal((await run(open)).state, 'waiting');
});

test('signals, people and children are part of a run', async () => {
  const gate = { prompt: 'ok?', choices: [{ label: 'Yes', value: 'yes' }] };
  const blocks = [
    { type: 'step', id: 'ask', handler: 'noop', wait_for_input: gate, reply: '{{ data.ask }}!' },
    { type: 'sub_sequence', id: 'child', sequence_name: 'ship', input: { n: '{{ data.n }}' } },
    { type: 'step', id: 'told', handler: 'wait_for_event', params: { name: 'go' }, reply: 7 },
    {
      type: 'for_each',
      id: 'each',
      collection: 'list',
      body: [{ type: 'step', id: 'one', handler: 'work', params: { item: '{{ data.item }}' } }],
    },
  ];
  const ship = {
    blocks: [
      { type: 'step', id: 'rest', handler: 'sleep', params: { duration_ms: 1_000 } },
      { type: 'step', id: 'sent', handler: 'work', params: { item: '{{ data.n }}' } },
    ],
  };
  const options = {
    data: { n: 3, list: ['a', 'b'] },
    answers: { ask: 'yes' },
    signals: [{ signal_type: 'custom:go', after: '1h' }],
    handlers: { work: ({ item }: { item: unknown }) => ({ got: item }) },
    now: START,
  };
  const result = await run({ blocks }, { ...options, children: { ship } });
  assert.equal(result.state, 'completed', result.failure?.message);
  assert.deepEqual(result.replies, ['yes!', 7]);
  assert.deepEqual(
    result.calls.map(({ blockId, params, iteration }) => [blockId, params.item, iteration]),
    [
      ['sent', 3, ''],
      ['one', 'a', '0'],
      ['one', 'b', '1'],
    ],
  );
  assert.deepEqual(result.calls[0]?.at, after(1_000));
  const stubbed = await run({ blocks }, { ...options, children: { ship: () => ({ sent: 1 }) } });
  assert.deepEqual(
    (stubbed.outputs.child as { output: unknown }[]).map(({ output }) => output),
    [1],
  );
});

test('what is missing or invalid is an error that names it', async () => {
  const data = { amount: 1 };
  await assert.rejects(run(order, { data }), /handlers has no "charge", which step pay calls/);
  const wrong = { blocks: [{ type: 'step', id: 'a', handlr: 'noop' }] };
  await assert.rejects(run(wrong), /handler/);
  const strict = { input_schema: { type: 'object', required: ['n'] }, blocks: [] as object[] };
  strict.blocks.push({ type: 'step', id: 'a', handler: 'noop' });
  await assert.rejects(run(strict), /context\.data .*n/);
  const child = { blocks: [{ type: 'sub_sequence', id: 'c', sequence_name: 'other' }] };
  await assert.rejects(run(child), /children has no "other", which block c runs/);
  const endless = { blocks: [{ type: 'step', id: 'a', handler: 'work' }] };
  const work = () => {
    throw new Error('again');
  };
  await assert.rejects(run(endless, { handlers: { work } }), /has not ended after .* step a/);
});

test('a batch runs with the list of its creations, each of which the input schema describes', async () => {
  const input = { type: 'object', required: ['n'] };
  const list = sequence<object, { readonly n: number }>('list')
    .input(input)
    .batch({ size: 3, wait_ms: 1 })
    .transform('all', ({ input }) => ({ all: input.items }));
  const one = await run(list, { data: { n: 1 } });
  assert.deepEqual([one.data, one.outputs.all], [{ items: [{ n: 1 }] }, { all: [{ n: 1 }] }]);
  const several = await run(list, { items: [{ n: 1 }, { n: 2 }] });
  assert.deepEqual(several.outputs.all, { all: [{ n: 1 }, { n: 2 }] });
  const items = [{ n: 1 }, {}] as { n: number }[];
  await assert.rejects(run(list, { items }), /context\.data .*n/);
  await assert.rejects(run(order, { items: [{ amount: 1 }] }), /items must be absent/);
});
