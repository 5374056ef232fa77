/** What the evaluator asks about children, and what their ends come to. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { advance, type EngineEvent, type Snapshot, treeOf } from '../../src/core/evaluator.js';
import type { StepRecord } from '../../src/core/execution.js';
import { childInstanceId, routeOf } from '../../src/core/ids.js';
import type { Plan } from '../../src/core/plan.js';
import type { ChildEnd, ChildStart, Progress } from '../../src/core/progress.js';
import { clashOf, remapExecution } from '../../src/core/remap.js';
import { freshSnapshot, noop, planOf, race, START, tryCatch, work } from '../helpers/player.js';

const child = (id = 'child', more: object = {}): Block =>
  ({ type: 'sub_sequence', id, sequence_name: 'other', ...more }) as Block;

class Life {
  readonly plan: Plan;
  readonly snapshot: Snapshot;
  now = START;
  last!: Progress;

  constructor(blocks: Block[], data = {}) {
    this.plan = planOf(blocks);
    this.snapshot = freshSnapshot(data);
    this.take({ kind: 'wake' });
  }

  take(event: EngineEvent): Progress {
    this.now += 1;
    this.last = advance(this.plan, this.snapshot, event, {
      now: this.now,
      random: () => 0.5,
      unpoliciedRetry: 'redispatch',
      stepBudget: 250,
      outputBytesBudget: 1024 * 1024,
    });
    return this.last;
  }

  /** The child that was just asked for, as made. */
  made(): ChildStart {
    const start = this.last.children?.find((order) => order.kind === 'start') as ChildStart;
    assert.ok(start !== undefined, 'no child was asked for');
    this.make(start);
    return start;
  }

  make({ node, iteration, attempt, child }: ChildStart): void {
    this.take({ kind: 'child.made', node, iteration, attempt, child });
  }

  end({ node, iteration, attempt }: ChildStart, end: ChildEnd): Progress {
    return this.take({ kind: 'child.ended', node, iteration, attempt, end });
  }
}

const DONE: ChildEnd = { kind: 'completed', output: [] };
const FAILED: ChildEnd = { kind: 'failed', code: 'child_failed', message: 'no' };

test('a block asks for a child by name with its input, and waits', () => {
  const life = new Life([child('child', { version: 3, input: { n: '{{ data.n }}' } })], { n: 5 });
  const { sequence, version, input, blockId, child: id } = life.made();
  assert.deepEqual([sequence, version, input, blockId], ['other', 3, { n: 5 }, 'child']);
  assert.equal(id, childInstanceId(life.snapshot.id, 'child', '', 0));
  assert.equal(life.snapshot.state, 'waiting');
  assert.equal(
    treeOf(life.plan, life.snapshot.execution, life.snapshot.id)[0]!.child_instance_id,
    id,
  );
});

test('an instance waits for a child from when there is one, and is at work until then', () => {
  const life = new Life([child(), noop('after')]);
  const start = life.last.children?.[0] as ChildStart;
  assert.equal(life.snapshot.state, 'running');
  assert.deepEqual([life.last.more, life.last.wakeAt], [false, null]);
  life.take({ kind: 'wake' });
  assert.equal(life.snapshot.state, 'running');
  life.make(start);
  assert.equal(life.snapshot.state, 'waiting');
  life.make({ ...start, attempt: 7 });
  assert.equal(life.last.stale, true);
});

test('that there is a child does not wake a parent that was parked', () => {
  const life = new Life([child()]);
  const start = life.last.children?.[0] as ChildStart;
  life.take({ kind: 'park' });
  life.make(start);
  assert.equal(life.snapshot.execution.p, 1);
  assert.equal(life.snapshot.state, 'waiting');
});

test('no child is asked for where when does not hold, or does not parse', () => {
  const skipped = new Life([child('child', { when: 'data.on' })]);
  assert.deepEqual([skipped.last.children, skipped.snapshot.state], [undefined, 'completed']);
  const failed = new Life([child('child', { when: 'a b (' })]);
  assert.deepEqual([failed.last.children, failed.snapshot.state], [undefined, 'failed']);
  assert.equal(failed.snapshot.execution.y?.code, 'expression_error');
});

test('items side by side have children of their own, and each takes the end of its own', () => {
  const items = { type: 'for_each', id: 'f', collection: 'xs', concurrency: 2 };
  const each = child('child', { input: { n: '{{ data.item }}' } });
  const life = new Life([{ ...items, body: [each] } as unknown as Block], { xs: [7, 8] });
  const starts = (life.last.children ?? []) as ChildStart[];
  assert.deepEqual(
    starts.map(({ iteration, input }) => [iteration, input]),
    [
      ['0', { n: 7 }],
      ['1', { n: 8 }],
    ],
  );
  for (const start of starts) life.make(start);
  assert.notEqual(starts[0]!.child, starts[1]!.child);
  life.end(starts[1]!, DONE);
  assert.equal(life.snapshot.state, 'waiting');
  life.end(starts[0]!, DONE);
  assert.equal(life.snapshot.state, 'completed');
});

test('the end of a child is taken once, and no other', () => {
  const life = new Life([child(), noop('after')]);
  const start = life.made();
  assert.equal(life.end({ ...start, attempt: 1 }, DONE).stale, true);
  life.end(start, DONE);
  assert.equal(life.snapshot.state, 'completed');
  assert.equal(life.end(start, DONE).stale, true);
});

test('a retry asks for another child, and a completed one is not asked for again', () => {
  const life = new Life([child('first'), child('second')]);
  life.end(life.made(), DONE);
  const failed = life.made();
  life.end(failed, FAILED);
  assert.equal(life.snapshot.state, 'failed');
  assert.equal(life.snapshot.execution.y?.code, 'child_failed');
  life.take({ kind: 'retry' });
  life.take({ kind: 'wake' });
  const again = life.made();
  assert.equal(again.blockId, 'second');
  assert.notEqual(again.child, failed.child);
  life.end(again, DONE);
  assert.equal(life.snapshot.state, 'completed');
});

test('passes of a loop have children with different ids', () => {
  const life = new Life([
    { type: 'loop', id: 'l', condition: 'true', max_iterations: 3, body: [child()] } as Block,
  ]);
  const ids = [0, 1, 2].map(() => {
    const start = life.made();
    life.end(start, DONE);
    return start.child;
  });
  assert.equal(new Set(ids).size, 3);
  assert.equal(new Set(ids.map(routeOf)).size, 3);
});

const CUTS: readonly (readonly [string, EngineEvent])[] = [
  ['the signal cancel', { kind: 'cancel' }],
  ['a hard stop', { kind: 'stop', state: 'cancelled' }],
  ['a rewind', { kind: 'rewind', node: 0 }],
];
for (const [what, event] of CUTS) {
  test(`${what} takes the child back`, () => {
    const life = new Life([child()]);
    const { child: id } = life.made();
    const orders = life.take(event).children ?? [];
    assert.deepEqual(
      orders.map((order) => [order.kind, order.child]),
      [['cancel', id]],
    );
  });
}

test('the child of a losing branch is taken back', () => {
  const life = new Life([race('r', [child()], [work('w')])]);
  const [dispatch] = life.last.dispatches;
  const { child: id } = life.made();
  const { node, iteration, attempt } = dispatch!;
  const outcome = { kind: 'success', output: {} } as const;
  life.take({ kind: 'step.outcome', node, iteration, attempt, external: true, outcome });
  assert.deepEqual(
    life.last.children?.map((order) => [order.kind, order.child]),
    [['cancel', id]],
  );
  assert.equal(life.snapshot.state, 'completed');
});

test('a child that is asked for and cut off in one turn is never asked for', () => {
  const life = new Life([race('r', [child()], [noop('n')])]);
  assert.deepEqual(life.last.children, []);
  assert.equal(life.snapshot.state, 'completed');
});

test('the failure of a child is caught like any other', () => {
  const life = new Life([tryCatch('t', [child()], [noop('c')])]);
  life.end(life.made(), FAILED);
  assert.equal(life.snapshot.state, 'completed');
  assert.equal((life.snapshot.data._error as { code?: string }).code, 'child_failed');
});

test('a paused parent takes in the end of its child and starts nothing', () => {
  const life = new Life([child(), work('after')]);
  const start = life.made();
  life.take({ kind: 'pause' });
  assert.deepEqual(life.end(start, DONE).dispatches, []);
  assert.equal(life.snapshot.state, 'paused');
  life.take({ kind: 'resume' });
  assert.equal(life.take({ kind: 'wake' }).dispatches.length, 1);
});

test('after a crash a child that was not made is asked for with the same id, one that was is looked at', () => {
  const life = new Life([child()]);
  const before = life.last.children?.[0] as ChildStart;
  life.take({ kind: 'wake', recovered: true });
  assert.equal(life.made().child, before.child);
  const [order] = life.take({ kind: 'wake', recovered: true }).children ?? [];
  assert.deepEqual([order?.kind, order?.child], ['look', before.child]);
});

test('an instance that goes over to another version keeps its child', () => {
  const life = new Life([child()]);
  const { child: id } = life.made();
  const target = planOf([noop('new'), child(), noop('after')]);
  const { execution } = life.snapshot;
  assert.equal(clashOf(execution, life.plan, target), undefined);
  const next = remapExecution(execution, life.plan, target);
  assert.equal((next.o[1] as StepRecord).c, id);
  const other = planOf([child('child', { sequence_name: 'third' })]);
  assert.match(clashOf(execution, life.plan, other)!, /starts the sequence third/);
});
