/** The evaluator on signals, requested states, cancel and retry. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  Player,
  parallel,
  START,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

describe('pause and resume', () => {
  test('an outcome during a pause is stored, and nothing new is dispatched', () => {
    const player = new Player([work('a'), work('b')]).start();
    player.send({ kind: 'pause' });
    player.complete('a', { x: 1 });
    assert.equal(player.state, 'paused');
    assert.deepEqual(player.done, ['a']);
    assert.equal(player.snapshot.data.x, 1);
    assert.deepEqual(player.atWork, []);
    player.send({ kind: 'resume' });
    assert.deepEqual(player.atWork, ['b']);
    assert.equal(player.state, 'waiting');
  });

  test('a permanent failure fails a paused step-only instance', () => {
    const player = new Player([work('a')]).start();
    player.send({ kind: 'pause' });
    player.fail('a');
    assert.equal(player.state, 'failed');
  });

  test('a permanent failure leaves an instance with composite blocks paused', () => {
    const player = new Player([tryCatch('t', [work('a')], [noop('c')])]).start();
    player.send({ kind: 'pause' });
    player.fail('a');
    assert.equal(player.state, 'paused');
    assert.equal(player.tree.a, 'failed');
    player.send({ kind: 'resume' });
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['c']);
  });

  test('an instance whose last step completes during the pause completes after it', () => {
    const player = new Player([work('a')]).start();
    player.send({ kind: 'pause' });
    player.complete('a');
    assert.equal(player.state, 'paused');
    player.send({ kind: 'resume' });
    assert.equal(player.state, 'completed');
  });

  test('a sleep keeps its deadline over a pause, and a task its timeout', () => {
    const player = new Player([parallel('p', [sleep('s', 100)], [work('a', { timeout: 5_000 })])]);
    player.start();
    player.send({ kind: 'pause' });
    assert.equal(player.last!.wakeAt, START + 5_000);
    player.now += 200;
    player.send({ kind: 'wake' });
    assert.deepEqual(player.done, []);
    player.send({ kind: 'resume' });
    assert.deepEqual(player.done, ['s']);
    player.send({ kind: 'pause' });
    player.tick();
    assert.equal(player.tree.a, 'failed');
    assert.equal(player.state, 'paused');
  });

  test('a retry that falls into a pause is dispatched after it', () => {
    const player = new Player([work('a')]).start();
    player.send({ kind: 'pause' });
    player.fail('a', true);
    assert.deepEqual(player.atWork, []);
    player.send({ kind: 'resume' });
    assert.equal(player.dispatched.at(-1)!.attempt, 1);
  });

  test('resume makes a delayed start due now', () => {
    const player = new Player([noop('a')]);
    player.snapshot.nextFireAt = START + 60_000;
    player.start();
    player.send({ kind: 'pause' });
    player.sendOnce({ kind: 'resume' });
    assert.equal(player.state, 'scheduled');
    assert.equal(player.last!.wakeAt, START);
    player.send({ kind: 'wake' });
    assert.equal(player.state, 'completed');
  });

  test('a failed instance that is paused is retried when it is resumed', () => {
    const player = new Player([work('a')]).start();
    player.fail('a');
    player.send({ kind: 'pause' });
    player.send({ kind: 'wake' });
    assert.equal(player.state, 'paused');
    assert.equal(player.send({ kind: 'resume' }).dropErrorRows, true);
    assert.deepEqual(player.atWork, ['a']);
  });

  test('a failed instance that is paused and then cancelled keeps its error', () => {
    const player = new Player([failing('a')]).start();
    player.send({ kind: 'pause' });
    assert.equal(player.send({ kind: 'cancel' }).dropErrorRows, false);
    assert.equal(player.state, 'cancelled');
  });
});

describe('requested states', () => {
  test('park holds everything until an outcome', () => {
    const player = new Player([parallel('p', [work('a')], [sleep('s', 10)]), noop('z')]).start();
    player.send({ kind: 'park' });
    assert.equal(player.state, 'waiting');
    player.now += 20;
    player.send({ kind: 'wake' });
    assert.deepEqual(player.done, []);
    player.complete('a');
    assert.deepEqual(player.done, ['a', 's', 'z']);
  });

  test('reschedule holds new work until its time, while open work goes on', () => {
    const player = new Player([work('a'), work('b')]).start();
    player.send({ kind: 'reschedule', at: START + 1_000 });
    assert.equal(player.state, 'scheduled');
    player.complete('a');
    assert.equal(player.state, 'scheduled');
    assert.equal(player.snapshot.nextFireAt, START + 1_000);
    assert.deepEqual(player.atWork, []);
    player.tick();
    assert.deepEqual(player.atWork, ['b']);
  });

  test('reschedule to an earlier time ends a delay early, to a later one holds it', () => {
    const delayed = { ...noop('a'), delay: { duration: 10_000 } } as Block;
    const early = new Player([delayed]).start();
    early.send({ kind: 'reschedule', at: null });
    assert.equal(early.state, 'completed');
    const late = new Player([delayed]).start();
    late.send({ kind: 'reschedule', at: START + 20_000 });
    late.now = START + 15_000;
    late.send({ kind: 'wake' });
    assert.deepEqual(late.done, []);
    late.tick();
    assert.equal(late.now, START + 20_000);
    assert.equal(late.state, 'completed');
  });

  for (const state of ['completed', 'failed', 'cancelled'] as const) {
    test(`stop as ${state} is hard: open work is withdrawn and no finally list runs`, () => {
      const block = tryCatch(
        't',
        [parallel('p', [work('a')], [http('b')], [sleep('s', 9)])],
        [],
        [noop('f')],
      );
      const player = new Player([block, noop('z')]).start();
      player.send({ kind: 'stop', state, reason: 'by request' });
      assert.equal(player.state, state);
      assert.deepEqual(
        player.last!.withdrawals.map(({ blockId }) => blockId),
        ['a', 'b'],
      );
      assert.equal(player.last!.wakeAt, null);
      assert.deepEqual(player.done, []);
      assert.deepEqual(player.tree, {
        t: 'cancelled',
        p: 'cancelled',
        a: 'cancelled',
        b: 'cancelled',
        s: 'cancelled',
        f: 'cancelled',
        z: 'cancelled',
      });
      if (state === 'failed') assert.equal(player.last!.failure, 'by request');
    });
  }

  test('a terminal state is never left', () => {
    const player = new Player([noop('a')]).start();
    for (const event of [
      { kind: 'wake' },
      { kind: 'pause' },
      { kind: 'resume' },
      { kind: 'park' },
      { kind: 'cancel' },
      { kind: 'retry' },
      { kind: 'reschedule', at: null },
      { kind: 'stop', state: 'failed' },
    ] as const) {
      player.send(event);
      assert.equal(player.state, 'completed');
    }
  });
});

describe('cancel', () => {
  test('without protected work ends at once', () => {
    const player = new Player([parallel('p', [work('a')], [sleep('s', 9)]), noop('z')]).start();
    player.send({ kind: 'cancel' });
    assert.equal(player.state, 'cancelled');
    assert.deepEqual(player.atWork, []);
    assert.equal(player.tree.z, 'cancelled');
  });

  test('before the start, and of a failed instance, ends at once', () => {
    const early = new Player([noop('a')]);
    early.send({ kind: 'cancel' });
    assert.equal(early.state, 'cancelled');
    const failed = new Player([failing('a')]).start();
    failed.send({ kind: 'cancel' });
    assert.equal(failed.state, 'cancelled');
  });

  test('runs the finally list first, also from waiting and paused, and no later block', () => {
    for (const paused of [false, true]) {
      const block = tryCatch('t', [work('a'), noop('b')], [noop('c')], [work('f'), noop('g')]);
      const player = new Player([block, noop('z')]).start();
      if (paused) player.send({ kind: 'pause' });
      player.send({ kind: 'cancel' });
      assert.deepEqual(player.atWork, ['f']);
      assert.equal(player.state, 'waiting');
      assert.equal(player.tree.g, 'pending');
      player.send({ kind: 'cancel' });
      player.complete('f');
      assert.equal(player.state, 'cancelled');
      assert.deepEqual(player.done, ['f', 'g']);
      assert.deepEqual([player.tree.b, player.tree.z], ['cancelled', 'cancelled']);
    }
  });

  test('during the finally list lets it finish, even if it fails', () => {
    const player = new Player([tryCatch('t', [noop('a')], [], [work('f')])]).start();
    player.send({ kind: 'cancel' });
    player.fail('f');
    assert.equal(player.state, 'cancelled');
  });

  test('waits for steps that are not cancellable, and cuts off the rest', () => {
    const player = new Player([
      parallel('p', [work('a', { cancellable: false }), noop('a2')], [work('b')]),
      noop('z'),
    ]).start();
    player.send({ kind: 'cancel' });
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.state, 'waiting');
    player.complete('a');
    assert.equal(player.state, 'cancelled');
    assert.deepEqual(player.done, ['a']);
  });

  test('nested: the protected step ends, then its finally lists run inside out', () => {
    const inner = tryCatch('i', [work('a', { cancellable: false }), noop('b')], [], [noop('f1')]);
    const outer = tryCatch('o', [parallel('p', [inner, noop('c')], [work('d')])], [], [noop('f2')]);
    const player = new Player([outer]).start();
    player.send({ kind: 'cancel' });
    player.complete('a');
    assert.deepEqual(player.done, ['a', 'f1', 'f2']);
    assert.equal(player.state, 'cancelled');
  });

  test('in the body of a loop ends the loop', () => {
    const body = [tryCatch('t', [work('a')], [], [noop('f')])];
    const player = new Player([loop('l', 'true', 5, body)]).start();
    player.complete('a');
    player.send({ kind: 'cancel' });
    assert.deepEqual(player.done, ['a@0', 'f@0', 'l', 'f@1']);
    assert.equal(player.state, 'cancelled');
  });
});

describe('retry of a failed instance', () => {
  test('runs the failed step again, with fresh tries, and nothing that completed', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = new Player([noop('a'), work('b', { retry }), noop('c')]).start();
    player.fail('b', true);
    player.fail('b', true);
    assert.equal(player.state, 'failed');
    const progress = player.sendOnce({ kind: 'retry' });
    assert.equal(player.state, 'scheduled');
    assert.equal(player.snapshot.nextFireAt, START);
    assert.equal(progress.dropErrorRows, true);
    assert.equal(progress.more, true);
    player.send({ kind: 'wake' });
    assert.equal(player.dispatched.at(-1)!.attempt, 0);
    player.complete('b');
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['a', 'b', 'c']);
  });

  test('goes on in the iteration and the route that failed', () => {
    const routed: Block = {
      type: 'router',
      id: 'r',
      routes: [{ condition: 'go', blocks: [noop('a'), work('b')] }],
      default: [noop('d')],
    };
    const player = new Player([loop('l', 'true', 3, [routed])], { data: { go: true } }).start();
    player.complete('b', { go: true });
    player.fail('b');
    player.snapshot.data = { go: false };
    player.send({ kind: 'retry' });
    assert.equal(player.dispatched.at(-1)!.iteration, '1');
    player.complete('b', { go: true });
    player.complete('b');
    assert.equal(player.state, 'completed');
    assert.deepEqual(
      player.done.filter((id) => id.startsWith('a')),
      ['a@0', 'a@1', 'a@2'],
    );
  });

  test('keeps the items and the place of a for_each', () => {
    const player = new Player([forEach('f', 'xs', [work('a')])], { data: { xs: [1, 2] } }).start();
    player.complete('a');
    player.fail('a');
    player.send({ kind: 'retry' });
    assert.deepEqual(player.dispatched.at(-1)!.overlay, { item: 2 });
    player.complete('a');
    assert.equal(player.state, 'completed');
  });

  test('tries the whole of a try_catch again, and steps over what completed', () => {
    const block = tryCatch('t', [work('a')], [noop('c1'), work('c2')], [noop('f')]);
    const player = new Player([block]).start();
    player.fail('a');
    player.fail('c2');
    assert.equal(player.state, 'failed');
    player.send({ kind: 'retry' });
    player.fail('a');
    player.complete('c2');
    assert.equal(player.state, 'completed');
    assert.deepEqual(player.done, ['c1', 'f', 'c2']);
  });

  test('after a hard stop runs what was cut off', () => {
    const player = new Player([parallel('p', [work('a')], [noop('b')])]).start();
    player.send({ kind: 'stop', state: 'failed' });
    assert.equal(player.last!.failure, undefined);
    player.send({ kind: 'retry' });
    assert.deepEqual(player.atWork, ['a']);
    player.complete('a');
    assert.equal(player.state, 'completed');
  });
});
