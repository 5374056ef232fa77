/** What a run has every block show: all states, and all that blocks wait for. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Failure, TreeNode, Wait } from 'durable-workflow-engine-client';
import { STATE_LOOKS } from '../src/flow/block-state.tsx';
import { labelOf, runFace } from '../src/flow/faces.tsx';
import {
  DRAWN_STATES,
  type DrawnState,
  type RunFacts,
  statusesOf,
  WAIT_NOTES,
} from '../src/flow/run-states.ts';
import { at, attempt, done, OUTLINE, open, RUN, T0, treeOf, wait } from './flow-samples.ts';

const faceOf = (path: string, run: RunFacts = RUN, now = T0 + 60_000) =>
  runFace(statusesOf(OUTLINE, run).get(path)!, now);

/** Of the sample run: the state of a block, and what is told to whoever does not see it. */
const SHOWN: readonly (readonly [path: string, DrawnState, text: string])[] = [
  ['charge', 'completed', 'charge, step, completed, attempt 3 of 3, 9 s'],
  ['ask_provider', 'completed', 'ask_provider, HTTP request, completed, 240 ms'],
  ['approve', 'waiting', 'approve, approval, waiting, waiting for an answer, 50 s'],
  ['cool_down', 'waiting', 'cool_down, sleep, waiting, sleeps, 50 s, 10 s left'],
  [
    'await_payment',
    'waiting',
    'await_payment, wait for an event, waiting, waiting for payment, 50 s',
  ],
  ['invoice', 'waiting', 'invoice, sub-sequence, waiting, waiting for its child, 50 s'],
  ['prepare', 'running', 'prepare, parallel, running, 48 s, 3 blocks inside'],
  ['prepare/pack', 'running', 'pack, step, running, on a worker, 46 s'],
  ['prepare/label', 'waiting', 'label, step, waiting, waiting for a worker, 46 s'],
  ['fastest/post', 'cancelled', 'post, step, cancelled, 8 s'],
  ['by_amount/review', 'skipped', 'review, step, skipped'],
  ['guarded/reserve', 'failed', 'reserve, step, failed, 1 s'],
  ['trip/book_hotel', 'retrying', 'book_hotel, step, retrying, attempt 3, 34 s'],
  ['trip/cancel_hotel', 'pending', 'cancel_hotel, step, pending'],
  ['poll', 'running', 'poll, loop, running, 37 / 100,000, 30 s, 1 block inside'],
  ['poll/check', 'running', 'check, step, running, attempt 1, in the server, 1 s'],
  [
    'items',
    'running',
    'items, for each, running, 4,211 / 10,000 items, 20 running, 30 s, 2 blocks inside',
  ],
  ['items/retry_item', 'running', 'retry_item, loop, running, 2 / 1,000, 10 s, 1 block inside'],
  ['items/retry_item/ship', 'waiting', 'ship, step, waiting, rate limited, 5 s'],
];

for (const [path, state, text] of SHOWN) {
  test(`${path} is drawn as ${state}, with all of it in words`, () => {
    const status = statusesOf(OUTLINE, RUN).get(path)!;
    assert.equal(status.state, state);
    const shown = labelOf(OUTLINE.byPath.get(path)!, faceOf(path));
    assert.equal(shown.replace(', attempt 1,', ','), text.replace(', attempt 1,', ','));
  });
}

test('nothing is told to go on behind the time when it is over by itself', () => {
  const late = labelOf(OUTLINE.byPath.get('cool_down')!, faceOf('cool_down', RUN, T0 + 600_000));
  assert.equal(late, 'cool_down, sleep, waiting, sleeps, 1 m');
});

test('the sample run has every state', () => {
  const states = new Set([...statusesOf(OUTLINE, RUN).values()].map(({ state }) => state));
  assert.deepEqual([...states].sort(), DRAWN_STATES.toSorted());
});

test('every state has a picture of its own', () => {
  const icons = Object.values(STATE_LOOKS).map(([, icon]) => icon);
  assert.equal(new Set(icons).size, DRAWN_STATES.length);
});

const of = (id: string, node: Partial<TreeNode>, more: Partial<RunFacts> = {}) =>
  statusesOf(OUTLINE, { tree: treeOf(OUTLINE, { [id]: node }), ...more }).get(id)!;

const ENDS_BY_WORK: readonly Wait['kind'][] = ['worker', 'handler', 'engine'];

for (const kind of Object.keys(WAIT_NOTES) as Wait['kind'][]) {
  const expected =
    kind === 'retry' ? 'retrying' : ENDS_BY_WORK.includes(kind) ? 'running' : 'waiting';
  test(`a step whose explanation says ${kind} is ${expected}`, () => {
    const status = of('charge', open(0, 'waiting'), { waits: [wait('charge', kind)] });
    assert.equal(status.state, expected);
    assert.equal(status.note, kind === 'retry' ? '' : WAIT_NOTES[kind]);
  });
}

test('before the explanation is there a block is what the tree says', () => {
  assert.equal(of('charge', open(0, 'waiting')).state, 'waiting');
  assert.equal(of('charge', open(0)).state, 'running');
});

test('waits of a step that has ended since are not shown', () => {
  const status = of('charge', done(0, 100), { waits: [wait('charge', 'task')] });
  assert.equal(status.state, 'completed');
  assert.deepEqual(status.waits, []);
});

test('a step that several items are at shows what holds it up most, and how many more there are', () => {
  const waits = [wait('charge', 'worker'), wait('charge', 'task'), wait('charge', 'task')];
  const status = of('charge', open(0), { waits });
  assert.equal(status.state, 'waiting');
  assert.equal(status.note, 'waiting for a worker, 2 more');
  const retrying = of('charge', open(0), { waits: [...waits, wait('charge', 'retry')] });
  assert.equal(retrying.state, 'retrying');
});

test('a failure tells its attempt and its reason', () => {
  const failure: Failure = {
    block_id: 'charge',
    path: 'charge',
    handler: 'charge_card',
    attempt: 2,
    code: 'retries_exhausted',
    message: 'card declined',
    at: at(9_000),
  };
  const status = of('charge', { ...done(0, 9_000), state: 'failed' }, { failure });
  const face = runFace(status, T0);
  assert.equal(face.text, 'failed, attempt 3 of 3, card declined, 9 s');
  assert.equal(face.tone, 'danger');
});

test('the attempt is that of the newest iteration', () => {
  const status = of('charge', done(0, 9_000), {
    attempts: [
      attempt('charge', { iteration: '2', attempt: 2 }),
      attempt('charge', { iteration: '10', attempt: 0 }),
    ],
  });
  assert.equal(status.attemptNumber, 1);
});

test('how far a loop is comes from the tree, else from the path of what is open in it', () => {
  assert.equal(of('poll', { ...open(0), iteration: 0 }).note, '1 / 100,000');
  assert.equal(of('poll', done(0, 10)).note, '');
});

test('a block that ran in earlier iterations is not skipped behind the last one', () => {
  const tree = treeOf(OUTLINE, { check: { state: 'skipped', output_count: 100_000 } });
  const { state, note } = statusesOf(OUTLINE, { tree }).get('poll/check')!;
  assert.deepEqual([state, note], ['completed', '100,000 outputs']);
});

test('what goes on takes time, and what stands still shows none', () => {
  assert.equal(faceOf('prepare', RUN, T0 + 72_000).note, '1 m');
  assert.equal(runFace(statusesOf(OUTLINE, RUN).get('prepare')!, undefined).note, '');
});

test('pending and skipped blocks are drawn with less weight', () => {
  for (const [path, isFaint] of [
    ['by_amount/review', true],
    ['trip/cancel_hotel', true],
    ['by_amount/note', false],
  ] as const) {
    assert.equal(faceOf(path).isFaint, isFaint);
  }
});
