/** Definitions with every kind of block, and runs with every state: what the tests of drawings draw. */

import type { Block, StepAttempt, TreeNode, Wait } from 'durable-workflow-engine-client';
import { type Definition, type Outline, outlineOf } from '../src/flow/outline.ts';
import type { RunFacts } from '../src/flow/run-states.ts';

export const step = (id: string, handler = 'charge_card', more: object = {}): Block =>
  ({ type: 'step', id, handler, ...more }) as Block;

/** One of each kind, with what it can hold. */
export const EVERY_KIND: Definition = {
  blocks: [
    step('charge', 'charge_card', { retry: { max_attempts: 3 } }),
    step('ask_provider', 'http_request', { params: { url: 'https://pay.example/v1' } }),
    step('approve', 'noop', { wait_for_input: { prompt: 'Pay it?' } }),
    step('cool_down', 'sleep', { params: { duration_ms: 60_000 } }),
    step('await_payment', 'wait_for_event', { params: { name: 'payment' } }),
    { type: 'sub_sequence', id: 'invoice', sequence_name: 'billing', version: 2 },
    {
      type: 'parallel',
      id: 'prepare',
      branches: [[step('pick'), step('pack')], [step('label')], []],
    },
    { type: 'race', id: 'fastest', branches: [[step('courier')], [step('post')]] },
    {
      type: 'router',
      id: 'by_amount',
      routes: [
        { condition: 'amount > 1000', blocks: [step('review')] },
        { condition: 'amount > 100', blocks: [step('note')] },
      ],
      default: [],
    },
    {
      type: 'ab_split',
      id: 'checkout',
      variants: [
        { name: 'old', weight: 3, blocks: [step('old_page')] },
        { name: 'new', weight: 1, blocks: [step('new_page')] },
      ],
    },
    {
      type: 'try_catch',
      id: 'guarded',
      try_block: [step('reserve')],
      catch_block: [step('release')],
      finally_block: [step('report')],
    },
    {
      type: 'saga',
      id: 'trip',
      steps: [
        { id: 'flight', action: step('book_flight'), compensation: step('cancel_flight') },
        { id: 'hotel', action: [step('book_hotel')], compensation: [step('cancel_hotel')] },
        { id: 'mail', action: step('send_mail') },
      ],
    },
    {
      type: 'loop',
      id: 'poll',
      condition: 'status == open',
      max_iterations: 100_000,
      body: [step('check')],
    },
    {
      type: 'for_each',
      id: 'items',
      collection: 'order.items',
      body: [{ type: 'loop', id: 'retry_item', condition: 'again', body: [step('ship')] }],
    },
    { type: 'cancellation_scope', id: 'cleanup', blocks: [step('close_books')] },
  ],
  on_failure: [{ id: 'alert', handler: 'log' }],
  on_cancel: [{ id: 'tell', handler: 'log' }],
};

export const T0 = Date.parse('2026-11-23T10:00:00.000Z');
export const at = (ms: number) => new Date(T0 + ms).toISOString();

/** The tree of a run: blocks that are not named are pending. */
export function treeOf(
  { byPath }: Outline,
  known: Readonly<Record<string, Partial<TreeNode>>> = {},
): TreeNode[] {
  const blocks = [...byPath.values()].filter(({ path }) => !path.startsWith('@'));
  return blocks.map(({ id, parent, look }) => ({
    id: `node-${id}`,
    instance_id: 'instance',
    block_id: id,
    parent_id: parent === null ? null : `node-${byPath.get(parent)!.id}`,
    block_type: look,
    branch_index: null,
    state: 'pending',
    started_at: null,
    completed_at: null,
    ...known[id],
  }));
}

export const done = (from: number, to: number): Partial<TreeNode> => ({
  state: 'completed',
  started_at: at(from),
  completed_at: at(to),
});
export const open = (from: number, state: 'running' | 'waiting' = 'running') => ({
  state,
  started_at: at(from),
});

export const wait = (block_id: string, kind: Wait['kind'], more: Partial<Wait> = {}): Wait => ({
  kind,
  summary: `${block_id} waits`,
  block_id,
  path: block_id,
  since: at(12_000),
  until: null,
  ...more,
});

let attempts = 0;
export function attempt(block_id: string, more: Partial<StepAttempt> = {}): StepAttempt {
  attempts += 1;
  return {
    ...{ id: `attempt-${attempts}`, block_id, iteration: '', attempt: 0, state: 'completed' },
    ...{ handler_name: 'charge_card', worker_id: 'worker-7', error: null, source: 'task' },
    ...{ queue_name: null, task_id: null, timeout_ms: null },
    ...{ queued_at: at(0), started_at: at(1_000), ended_at: at(3_000) },
    ...more,
  };
}

export const OUTLINE = outlineOf(EVERY_KIND);

/** Every state, and every way to wait that a block has. */
export const RUN: RunFacts = {
  tree: treeOf(OUTLINE, {
    charge: done(0, 9_000),
    ask_provider: done(9_000, 9_240),
    approve: open(9_240, 'waiting'),
    cool_down: open(10_000),
    await_payment: open(10_000, 'waiting'),
    invoice: { ...open(10_000, 'waiting'), child_instance_id: 'child' },
    prepare: open(12_000),
    pick: done(12_000, 14_000),
    pack: open(14_000),
    label: open(14_000, 'waiting'),
    fastest: done(12_000, 20_000),
    courier: done(12_000, 20_000),
    post: { state: 'cancelled', started_at: at(12_000), completed_at: at(20_000) },
    by_amount: done(20_000, 21_000),
    review: { state: 'skipped' },
    note: done(20_000, 21_000),
    checkout: done(21_000, 22_000),
    old_page: done(21_000, 22_000),
    new_page: { state: 'skipped' },
    guarded: done(22_000, 25_000),
    reserve: { state: 'failed', started_at: at(22_000), completed_at: at(23_000) },
    release: done(23_000, 24_000),
    report: done(24_000, 25_000),
    trip: open(25_000),
    book_flight: done(25_000, 26_000),
    book_hotel: open(26_000, 'waiting'),
    poll: open(30_000),
    check: open(59_000),
    items: { ...open(30_000), items: { total: 10_000, running: 20, ended: 4_211 } },
    retry_item: open(50_000),
    ship: open(55_000, 'waiting'),
  }),
  waits: [
    wait('approve', 'approval', { prompt: 'Pay it?' }),
    wait('cool_down', 'sleep', { until: at(70_000) }),
    wait('await_payment', 'event', { name: 'payment' }),
    wait('invoice', 'child', { child_id: 'child' }),
    wait('pack', 'worker', { attempt: 0, worker_id: 'worker-7' }),
    wait('label', 'task', { attempt: 0 }),
    wait('book_hotel', 'retry', { attempt: 2, max_attempts: 5, last_error: 'no rooms' }),
    wait('check', 'handler', { path: 'poll[36]/check' }),
    wait('ship', 'rate_limit', { path: 'items[4216]/retry_item[1]/ship' }),
  ],
  attempts: [
    attempt('charge', {
      ...{
        attempt: 0,
        state: 'failed',
        error: { message: 'card network timed out', retryable: true },
      },
      ...{ started_at: at(400), ended_at: at(1_900) },
    }),
    attempt('charge', {
      ...{
        attempt: 1,
        state: 'failed',
        error: { message: 'card network timed out', retryable: true },
      },
      ...{ queued_at: at(3_000), started_at: at(3_200), ended_at: at(4_800) },
    }),
    attempt('charge', {
      ...{ attempt: 2, queued_at: at(7_000), started_at: at(8_100), ended_at: at(9_000) },
    }),
    attempt('pick', { queued_at: at(12_000), started_at: at(12_500), ended_at: at(14_000) }),
    attempt('pack', {
      ...{ state: 'claimed', queued_at: at(14_000), started_at: at(15_000), ended_at: null },
    }),
    attempt('label', {
      ...{ state: 'pending', worker_id: null },
      ...{ queued_at: at(14_000), started_at: null, ended_at: null },
    }),
    attempt('courier', { queued_at: at(12_000), started_at: at(12_300), ended_at: at(20_000) }),
    attempt('post', {
      ...{
        state: 'cancelled',
        queued_at: at(12_000),
        started_at: at(13_000),
        ended_at: at(20_000),
      },
    }),
    attempt('reserve', {
      ...{ state: 'failed', error: { message: 'out of stock', retryable: true } },
      ...{ queued_at: at(22_000), started_at: at(22_100), ended_at: at(23_000) },
    }),
    ...Array.from({ length: 36 }, (_, pass) =>
      attempt('check', {
        ...{ iteration: `${pass}`, queued_at: null, worker_id: null },
        ...{ started_at: at(30_000 + pass * 800), ended_at: at(30_500 + pass * 800) },
      }),
    ),
    ...Array.from({ length: 120 }, (_, item) =>
      attempt('ship', {
        ...{ iteration: `${item}.0`, queued_at: at(30_000 + item * 200) },
        ...{ started_at: at(30_100 + item * 200), ended_at: at(30_600 + item * 200) },
        ...(item === 7
          ? { state: 'failed' as const, error: { message: 'address unknown', retryable: true } }
          : {}),
      }),
    ),
  ],
};

/** A definition of so many blocks, of all kinds of nesting. */
export function bigDefinition(blocks: number): Definition {
  const roots: Block[] = [];
  for (let i = 0; i * 10 < blocks; i += 1) {
    const name = (part: string) => `${part}_${i}`;
    roots.push({
      type: 'parallel',
      id: name('group'),
      branches: [
        [step(name('a')), step(name('b')), step(name('c'))],
        [
          {
            type: 'router',
            id: name('route'),
            routes: [{ condition: 'data.vip', blocks: [step(name('d')), step(name('e'))] }],
            default: [step(name('f'))],
          },
        ],
        [{ type: 'loop', id: name('loop'), condition: 'data.more', body: [step(name('g'))] }],
      ],
    });
  }
  return { blocks: roots };
}

/** A later version of EVERY_KIND: one block each is added, removed, changed and moved, and some inside others. */
export const LATER: Definition = {
  ...EVERY_KIND,
  blocks: EVERY_KIND.blocks.flatMap((block): Block[] => {
    if (block.id === 'charge') {
      return [step('charge', 'charge_card_v2', { retry: { max_attempts: 5 } }), step('log_charge')];
    }
    if (block.id === 'cool_down') return [];
    if (block.id === 'invoice') return [];
    if (block.type === 'try_catch') {
      return [{ ...block, try_block: [step('check_stock'), ...block.try_block], catch_block: [] }];
    }
    if (block.type === 'cancellation_scope') {
      return [
        {
          ...block,
          blocks: [...block.blocks, EVERY_KIND.blocks.find(({ id }) => id === 'invoice')!],
        },
      ];
    }
    return [block];
  }),
};
