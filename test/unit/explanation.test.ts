/** The words of an explanation, for what takes a second server or a long time to come to. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { explain, type Surroundings } from '../../src/core/explanation.js';
import { type Standing, type WaitFacts, whole } from '../../src/core/waits.js';

const AT = '2026-01-01T00:00:00.000Z';
const HOLDER = '01950000-0000-7000-8000-000000000001';

function explained(waits: readonly WaitFacts[], around: Partial<Surroundings> = {}) {
  const standing: Standing = {
    id: '01950000-0000-7000-8000-000000000000',
    sequence_id: HOLDER,
    tenant_id: 't',
    state: 'scheduled',
    created_at: AT,
    failure: null,
    parent: null,
    root: 'a',
    continuity_id: 'c',
    waits,
    count: waits.length,
  };
  const nobody = {
    moves: [],
    pollers: [],
    holders: [],
    ahead: 0,
    limits: [],
    approvals: [],
    children: new Map(),
  };
  return explain(standing, { now: Date.parse(AT), ...nobody, ...around });
}

const HANDOFFS: readonly (readonly [WaitFacts['reason'], string | null, RegExp])[] = [
  ['transferring', AT, /^It is being handed over to another runtime, which has to take it by 2026/],
  ['transferring', null, /^It is being handed over to another runtime\.$/],
  ['moved', null, /^It was handed over to another runtime/],
  ['imported', null, /^It was imported/],
];
for (const [reason, until, words] of HANDOFFS) {
  test(`one that is fenced, ${reason}${until === null ? '' : ' for a time'}, can only be looked for where it is`, () => {
    const { summary, next } = explained([whole('handoff', { reason: reason!, until })]);
    assert.match(summary, words);
    assert.deepEqual(
      next.map(({ method, path }) => [method, path]),
      [['GET', '/continuity/executions/c']],
    );
  });
}

test('who holds slots is counted, and who waits before it', () => {
  const wait = whole('slot', { key: 'k', max_concurrency: 3 });
  const holder = { instance_id: HOLDER, state: 'running' } as const;
  assert.match(explained([wait]).summary, /none is held, and no instances wait before it/);
  const one = explained([wait], { holders: [holder], ahead: 1 });
  assert.match(one.summary, /instance 0195\S+ holds one, and 1 instance waits before it/);
  const three = explained([wait], { holders: [holder, holder, holder], ahead: 7 });
  assert.match(three.summary, /and 2 others hold them, and 7 instances wait before it/);
});

test('of workers count those that can take the task, by its queue, and that polled lately', () => {
  const task: WaitFacts = {
    ...whole('task'),
    block_id: 'a',
    path: 'a',
    handler: 'h',
    queue: 'q',
  };
  const polled = (worker_id: string, queue_name: string, ago: number, handler_name = 'h') => {
    const last_seen_at = new Date(Date.parse(AT) - ago).toISOString();
    return { worker_id, queue_name, handler_name, last_seen_at };
  };
  const pollers = [
    polled('any', '', 10_000),
    polled('any', 'q', 20_000),
    polled('own', 'q', 5_000),
    polled('late', 'q', 61_000),
    polled('elsewhere', 'other', 0),
    polled('other', 'q', 0, 'i'),
  ];
  const [wait] = explained([task], { pollers }).waiting_for;
  const last_polled_at = new Date(Date.parse(AT) - 5_000).toISOString();
  assert.deepEqual(wait?.workers, { polled_lately: 2, last_polled_at });
  const [old] = explained([task], { pollers: pollers.slice(3) }).waiting_for;
  assert.match(
    old!.summary,
    /no worker polls for the handler h and the queue q; the last time was/,
  );
});

test('one that has nothing open is about to go on', () => {
  const { summary, waiting_for: waits } = explained([whole('engine')]);
  assert.equal(summary, 'The engine goes on with it by itself.');
  assert.equal(waits[0]?.since, AT);
});
