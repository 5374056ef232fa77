/**
 * How far one turn of the evaluator goes: steps, characters and time bound it, and what a step costs
 * does not grow with what lies around it. Where it stops never changes what comes out.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { TurnEnv } from '../../src/core/evaluation.js';
import { advance } from '../../src/core/evaluator.js';
import type { JsonObject } from '../../src/core/json.js';
import {
  forEach,
  freshSnapshot,
  loop,
  noop,
  parallel,
  planOf,
  START,
  sleep,
  work,
} from '../helpers/player.js';

const ENV: TurnEnv = {
  now: START,
  random: () => 0.5,
  unpoliciedRetry: 'redispatch',
  stepBudget: 1_000,
  outputBytesBudget: 1_000_000,
};

const step = (id: string, handler: string, params: JsonObject): Block => ({
  type: 'step',
  id,
  handler,
  params,
});

/** Wakes the instance until nothing is left to do; the block ids of the rows of each turn. */
function turns(blocks: Block[], env: Partial<TurnEnv>, data: JsonObject = {}): string[][] {
  const plan = planOf(blocks);
  const snapshot = freshSnapshot(data);
  const rows: string[][] = [];
  for (let more = true; more; ) {
    const progress = advance(plan, snapshot, { kind: 'wake' }, { ...ENV, ...env });
    rows.push(progress.outputs.map(({ blockId, attempt }) => `${blockId}${attempt}`));
    more = progress.more;
  }
  assert.equal(snapshot.state, 'completed');
  return rows;
}

const BLOCKS = [noop('a'), loop('l', 'true', 5, [noop('b'), noop('c')]), noop('d')];

test('a turn ends when its time is over, and the next one goes on from there', () => {
  const all = turns(BLOCKS, {});
  assert.equal(all.length, 1);
  let asked = 0;
  const cut = turns(BLOCKS, {
    isOver: () => {
      asked += 1;
      return asked % 3 === 0;
    },
  });
  assert.ok(cut.length > 4);
  assert.deepEqual(cut.flat(), all.flat());
});

test('due steps wait for the next turn when the time of this one is over', () => {
  const branches = Array.from({ length: 6 }, (_, i) => [sleep(`s${i}`, 5)]);
  const plan = planOf([parallel('p', ...branches)]);
  const snapshot = freshSnapshot();
  advance(plan, snapshot, { kind: 'wake' }, ENV);
  let left = 3;
  const isOver = () => {
    left -= 1;
    return left < 0;
  };
  const late = { ...ENV, now: START + 10, isOver };
  const first = advance(plan, snapshot, { kind: 'wake' }, late);
  assert.deepEqual([first.outputs.length, first.more], [3, true]);
  const second = advance(plan, snapshot, { kind: 'wake' }, { ...ENV, now: START + 10 });
  assert.deepEqual([second.outputs.length, snapshot.state], [3, 'completed']);
});

test('an item of a for_each costs the same, whatever else the data holds', () => {
  let lists = 0;
  const data = new Proxy<JsonObject>(
    { items: Array.from({ length: 100 }, (_, i) => i), other: 1 },
    {
      ownKeys(target) {
        lists += 1;
        return Reflect.ownKeys(target);
      },
    },
  );
  const body = step('s', 'transform', { v: '{{data.item}}', o: '{{data.other}}' });
  const blocks = [forEach('f', 'items', [body])];
  const rows = turns(blocks, {}, data).flat();
  assert.equal(rows.length, 201);
  assert.equal(lists, 0);
});

test('data that a step keeps as a whole is that of its own item', () => {
  const body = step('s', 'transform', { all: '{{data}}' });
  const plan = planOf([forEach('f', 'items', [body])]);
  const { outputs } = advance(plan, freshSnapshot({ items: [7, 8] }), { kind: 'wake' }, ENV);
  assert.deepEqual(
    outputs.filter(({ blockId }) => blockId === 's').map(({ output }) => JSON.stringify(output)),
    [7, 8].map((item) => JSON.stringify({ all: { items: [7, 8], item } })),
  );
});

test('a worker that gives nothing leaves the data as it is, unwritten', () => {
  const plan = planOf([work('a'), work('b')]);
  const snapshot = freshSnapshot({ x: 1 });
  const { data } = snapshot;
  advance(plan, snapshot, { kind: 'wake' }, ENV);
  const complete = (node: number, output: JsonObject) =>
    advance(
      plan,
      snapshot,
      {
        kind: 'step.outcome',
        node,
        iteration: '',
        attempt: 0,
        outcome: { kind: 'success', output },
        external: true,
      },
      ENV,
    );
  complete(0, {});
  assert.equal(snapshot.data, data);
  complete(1, { y: 2 });
  assert.deepEqual(snapshot.data, { x: 1, y: 2 });
});

test('a reason is cut between characters, never inside of one', () => {
  const message = `${'x'.repeat(499)}🙂 and more`;
  const plan = planOf([step('a', 'fail', { message })]);
  const snapshot = freshSnapshot();
  const progress = advance(plan, snapshot, { kind: 'wake' }, ENV);
  const reason = snapshot.execution.y?.message ?? '';
  assert.equal(reason, `${'x'.repeat(499)}…`);
  assert.equal(progress.audit.find((entry) => entry.blockId === 'a')?.details?.message, reason);
});
