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
  play,
  START,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

describe('pause and resume', () => {
  test('an outcome during a pause is stored, and nothing new is dispatched', () => {
    const player = play([work('a'), work('b')]);
    player.send({ kind: 'pause' });
    player.complete('a', { x: 1 });
    player.shows({ state: 'paused', done: ['a'] });
    assert.equal(player.snapshot.data.x, 1);
    assert.deepEqual(player.atWork, []);
    player.after('resume').shows({ atWork: ['b'], state: 'waiting' });
  });

  test('a permanent failure fails a paused step-only instance', () => {
    play([work('a')])
      .after('pause', 'fail a')
      .shows({ state: 'failed' });
  });

  test('a permanent failure leaves an instance with composite blocks paused', () => {
    const player = play([tryCatch('t', [work('a')], [noop('c')])]);
    player.after('pause', 'fail a').shows({ state: 'paused', tree: { a: 'failed' } });
    player.after('resume').shows({ state: 'completed', done: ['c'] });
  });

  test('an instance whose last step completes during the pause completes after it', () => {
    const player = play([work('a')]);
    player.after('pause', 'ok a').shows({ state: 'paused' });
    player.after('resume').shows({ state: 'completed' });
  });

  test('a sleep keeps its deadline over a pause, and a try what is left of its timeout', () => {
    const player = play([parallel('p', [sleep('s', 100)], [http('a', { timeout: 5_000 })])]);
    player.now += 60;
    player.after('pause').shows({ wakeAt: null });
    player.now += 7_000;
    player.after('wake').shows({ done: [], tree: { a: 'running' } });
    player.after('resume').shows({ done: ['s'], wakeAt: START + 12_000 });
    player.after('tick').shows({ state: 'failed', tree: { a: 'failed' } });
  });

  test('a retry that falls into a pause is dispatched after it', () => {
    const player = play([work('a')]);
    player.after('pause', 'again a').shows({ atWork: [] });
    player.send({ kind: 'resume' });
    assert.equal(player.dispatched.at(-1)!.attempt, 1);
  });

  test('resume gives back a start that lies ahead, and begins at once with one that has passed', () => {
    for (const [pausedMs, wakeAt] of [
      [1_000, START + 60_000],
      [61_000, START + 61_000],
    ] as const) {
      const player = new Player([noop('a')]);
      player.snapshot.nextFireAt = START + 60_000;
      player.start();
      player.send({ kind: 'pause' });
      player.now += pausedMs;
      player.sendOnce({ kind: 'resume' });
      player.shows({ state: 'scheduled', nextFireAt: wakeAt, wakeAt });
      player.now = wakeAt;
      player.after('wake').shows({ state: 'completed' });
    }
  });

  test('resume gives back a start that was asked for, and a parked instance is parked again', () => {
    const held = play([work('a'), work('b')]);
    held.after({ kind: 'reschedule', at: START + 1_000 }, 'pause', 'ok a', 'resume');
    held.shows({ state: 'scheduled', nextFireAt: START + 1_000, atWork: [] });
    held.after('tick').shows({ atWork: ['b'] });
    const parked = play([work('a')]);
    parked.after('park', 'pause').sendOnce({ kind: 'resume' });
    parked.shows({ state: 'scheduled' });
    parked.after('wake').shows({ state: 'waiting' });
    assert.equal(parked.snapshot.execution.p, 1);
    // An outcome wakes it, in a pause too.
    parked.after('pause', 'ok a', 'resume').shows({ state: 'completed' });
  });

  test('a parked instance gets a slot of its key before it is parked again', () => {
    const player = play([work('a')], { env: { holdsPermit: true } });
    player.after('park', 'pause');
    player.env = { holdsPermit: false };
    player.after('resume').shows({ state: 'scheduled', waits: true });
    player.env = { holdsPermit: true };
    player.after('admitted').shows({ state: 'waiting', waits: false });
    assert.equal(player.snapshot.execution.p, 1);
  });

  test('resume shows when the first deferral ends, which it has not ended', () => {
    const player = play([work('a', { retry: { max_attempts: 2, initial_backoff: 500 } })]);
    player.after('again a', 'pause');
    player.now += 100;
    player.sendOnce({ kind: 'resume' });
    player.shows({ state: 'scheduled', nextFireAt: START + 500, wakeAt: START + 500 });
  });

  test('a failed instance that is paused is retried when it is resumed', () => {
    const player = play([work('a')]);
    player.after('fail a', 'pause', 'wake').shows({ state: 'paused' });
    assert.equal(player.send({ kind: 'resume' }).dropErrorRows, true);
    assert.deepEqual(player.atWork, ['a']);
  });

  test('a failed instance that is paused and then cancelled keeps its error', () => {
    const player = play([failing('a')]);
    player.send({ kind: 'pause' });
    assert.equal(player.send({ kind: 'cancel' }).dropErrorRows, false);
    assert.equal(player.state, 'cancelled');
  });
});

describe('requested states', () => {
  test('park holds everything until an outcome', () => {
    const player = play([parallel('p', [work('a')], [sleep('s', 10)]), noop('z')]);
    player.after('park').shows({ state: 'waiting' });
    player.now += 20;
    player.after('wake').shows({ done: [] });
    player.after('ok a').shows({ done: ['a', 's', 'z'] });
  });

  test('reschedule holds new work until its time, while open work goes on', () => {
    const player = play([work('a'), work('b')]);
    player.after({ kind: 'reschedule', at: START + 1_000 }).shows({ state: 'scheduled' });
    player.after('ok a').shows({ state: 'scheduled', nextFireAt: START + 1_000, atWork: [] });
    player.after('tick').shows({ atWork: ['b'] });
  });

  test('reschedule to an earlier time ends a delay early, to a later one holds it', () => {
    const delayed = { ...noop('a'), delay: { duration: 10_000 } } as Block;
    const early = play([delayed]);
    early.after({ kind: 'reschedule', at: null }).shows({ state: 'completed' });
    const late = play([delayed]);
    late.send({ kind: 'reschedule', at: START + 20_000 });
    late.now = START + 15_000;
    late.after('wake').shows({ done: [] });
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
      const player = play([block, noop('z')]);
      player
        .after({ kind: 'stop', state, failure: { code: 'memory_limit', message: 'no more' } })
        .shows({ state, withdrawn: ['a', 'b'], wakeAt: null, done: [] });
      assert.deepEqual(player.tree, {
        t: 'cancelled',
        p: 'cancelled',
        a: 'cancelled',
        b: 'cancelled',
        s: 'cancelled',
        f: 'cancelled',
        z: 'cancelled',
      });
      if (state === 'failed') assert.equal(player.snapshot.execution.y?.message, 'no more');
    });
  }

  test('a terminal state is never left', () => {
    const player = play([noop('a')]);
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
    play([parallel('p', [work('a')], [sleep('s', 9)]), noop('z')])
      .after('cancel')
      .shows({ state: 'cancelled', atWork: [], tree: { z: 'cancelled' } });
  });

  test('before the start, and of a failed instance, ends at once', () => {
    const early = new Player([noop('a')]);
    early.after('cancel').shows({ state: 'cancelled' });
    play([failing('a')])
      .after('cancel')
      .shows({ state: 'cancelled' });
  });

  test('runs the finally list first, also from waiting and paused, and no later block', () => {
    for (const paused of [false, true]) {
      const block = tryCatch('t', [work('a'), noop('b')], [noop('c')], [work('f'), noop('g')]);
      const player = play([block, noop('z')]);
      if (paused) player.send({ kind: 'pause' });
      player.after('cancel').shows({ atWork: ['f'], state: 'waiting', tree: { g: 'pending' } });
      player
        .after('cancel', 'ok f')
        .shows({ state: 'cancelled', done: ['f', 'g'], tree: { b: 'cancelled', z: 'cancelled' } });
    }
  });

  test('during the finally list lets it finish, even if it fails', () => {
    play([tryCatch('t', [noop('a')], [], [work('f')])])
      .after('cancel', 'fail f')
      .shows({ state: 'cancelled' });
  });

  test('waits for steps that are not cancellable, and cuts off the rest', () => {
    const player = play([
      parallel('p', [work('a', { cancellable: false }), noop('a2')], [work('b')]),
      noop('z'),
    ]);
    player.after('cancel').shows({ atWork: ['a'], state: 'waiting' });
    player.after('ok a').shows({ state: 'cancelled', done: ['a'] });
  });

  test('nested: the protected step ends, then its finally lists run inside out', () => {
    const inner = tryCatch('i', [work('a', { cancellable: false }), noop('b')], [], [noop('f1')]);
    const outer = tryCatch('o', [parallel('p', [inner, noop('c')], [work('d')])], [], [noop('f2')]);
    play([outer])
      .after('cancel', 'ok a')
      .shows({ done: ['a', 'f1', 'f2'], state: 'cancelled' });
  });

  test('in the body of a loop ends the loop', () => {
    const body = [tryCatch('t', [work('a')], [], [noop('f')])];
    play([loop('l', 'true', 5, body)])
      .after('ok a', 'cancel')
      .shows({ done: ['a@0', 'f@0', 'l', 'f@1'], state: 'cancelled' });
  });
});

describe('retry of a failed instance', () => {
  test('runs the failed step again, with fresh tries, and nothing that completed', () => {
    const retry = { max_attempts: 2, initial_backoff: 0, max_backoff: 0 };
    const player = play([noop('a'), work('b', { retry }), noop('c')]);
    player.after('again b', 'again b').shows({ state: 'failed' });
    const progress = player.sendOnce({ kind: 'retry' });
    player.shows({ state: 'scheduled', nextFireAt: START });
    assert.equal(progress.dropErrorRows, true);
    assert.equal(progress.more, true);
    player.send({ kind: 'wake' });
    assert.equal(player.dispatched.at(-1)!.attempt, 0);
    player.after('ok b').shows({ state: 'completed', done: ['a', 'b', 'c'] });
  });

  test('goes on in the iteration and the route that failed', () => {
    const routed: Block = {
      type: 'router',
      id: 'r',
      routes: [{ condition: 'go', blocks: [noop('a'), work('b')] }],
      default: [noop('d')],
    };
    const player = play([loop('l', 'true', 3, [routed])], { data: { go: true } });
    player.complete('b', { go: true });
    player.fail('b');
    player.snapshot.data = { go: false };
    player.send({ kind: 'retry' });
    assert.equal(player.dispatched.at(-1)!.iteration, '1');
    player.complete('b', { go: true });
    player.after('ok b').shows({ state: 'completed' });
    const seen = player.done.filter((id) => id.startsWith('a'));
    assert.deepEqual(seen, ['a@0', 'a@1', 'a@2']);
  });

  test('keeps the items and the place of a for_each', () => {
    const player = play([forEach('f', 'xs', [work('a')])], { data: { xs: [1, 2] } });
    player.after('ok a', 'fail a', 'retry');
    assert.deepEqual(player.dispatched.at(-1)!.overlay, { item: 2 });
    player.after('ok a').shows({ state: 'completed' });
  });

  test('tries the whole of a try_catch again, and steps over what completed', () => {
    const block = tryCatch('t', [work('a')], [noop('c1'), work('c2')], [noop('f')]);
    const player = play([block]);
    player.after('fail a', 'fail c2').shows({ state: 'failed' });
    player.after('retry', 'fail a', 'ok c2').shows({ state: 'completed', done: ['c1', 'f', 'c2'] });
  });

  test('after a hard stop runs what was cut off', () => {
    const player = play([parallel('p', [work('a')], [noop('b')])]);
    player.after({ kind: 'stop', state: 'failed' }).shows({ failure: 'failed by request' });
    player.after('retry').shows({ atWork: ['a'] });
    player.after('ok a').shows({ state: 'completed' });
  });
});
