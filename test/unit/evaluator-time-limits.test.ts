/** Limits of time in virtual time: when they count, when they stand still, and what is over with them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { compilePlan } from '../../src/core/plan.js';
import {
  failing,
  forEach,
  http,
  loop,
  noop,
  Player,
  parallel,
  play,
  race,
  START,
  sleep,
  tryCatch,
  work,
} from '../helpers/player.js';

function limited<B extends Block>(block: B, timeout: number): B {
  return { ...block, timeout };
}

const code = ({ snapshot }: Player) => snapshot.execution.y?.code;
const audited = ({ last }: Player) => last!.audit.map(({ eventType }) => eventType);

describe('the time of a task', () => {
  test('counts from the claim, and anew from each claim', () => {
    const player = play([work('a', { timeout: 1_000 })]);
    player.shows({ wakeAt: null });
    player.now += 5_000;
    player.after('claim a').shows({ wakeAt: START + 6_000, state: 'waiting' });
    player.now += 500;
    player.after('return a').shows({ wakeAt: null });
    player.after('claim a').shows({ wakeAt: START + 6_500 });
    player.after('tick').shows({ state: 'failed', withdrawn: ['a'] });
    assert.equal(code(player), 'timeout');
  });

  test('a task that nobody claims in time fails its try, which may be tried again', () => {
    const retry = { max_attempts: 2, initial_backoff: 0 };
    const player = play([work('a', { queue_timeout: 100, timeout: 1_000, retry })]);
    player.after('tick').shows({ tries: ['a0', 'a1'], withdrawn: ['a'] });
    assert.equal(player.last!.withdrawals[0]!.reason, 'unclaimed');
    player.after('claim a').shows({ wakeAt: START + 1_100 });
    player.after('return a').shows({ wakeAt: START + 200 });
    player.after('tick').shows({
      state: 'failed',
      failure: 'no worker claimed the task within 100 ms',
    });
    assert.equal(code(player), 'queue_timeout');
  });

  test('without a retry policy it fails the step, and a claim in time ends that wait', () => {
    const late = play([work('a', { queue_timeout: 100 })]);
    late.after('tick').shows({ state: 'failed' });
    const claimed = play([work('a', { queue_timeout: 100 })]);
    claimed.after('claim a').shows({ wakeAt: null });
  });

  test('a task that was dispatched by an engine that counted from there times out then', () => {
    const player = play([work('a', { timeout: 1_000 })]);
    const [index] = Object.keys(player.snapshot.execution.o);
    const record = player.snapshot.execution.o[Number(index)]!;
    player.snapshot.execution = structuredClone({
      ...player.snapshot.execution,
      o: { [index!]: { ...record, d: START + 1_000 } },
    });
    player.after('wake', 'tick').shows({ state: 'failed', failure: 'timed out after 1000 ms' });
  });

  test('what is given back during a pause waits from the resume on', () => {
    const player = play([work('a', { queue_timeout: 100 })]);
    player.after('claim a', 'pause');
    player.now += 1_000;
    player.after('return a').shows({ wakeAt: null });
    player.now += 1_000;
    player.after('resume').shows({ state: 'waiting', wakeAt: START + 2_100 });
  });
});

describe('timeout of a block', () => {
  const kinds: Readonly<Record<string, Block>> = {
    parallel: parallel('b', [work('x')], [sleep('y', 60_000)]),
    race: race('b', [work('x')], [work('y')]),
    router: { type: 'router', id: 'b', routes: [], default: [work('x')] },
    try_catch: tryCatch('b', [work('x')], [noop('rescue')]),
    loop: loop('b', 'true', 10, [work('x')]),
    for_each: forEach('b', 'items', [work('x')]),
  };
  for (const [kind, block] of Object.entries(kinds)) {
    test(`${kind}: everything inside is cut off, and the block has failed`, () => {
      const player = play([limited(block, 1_000), noop('z')], { data: { items: [1, 2] } });
      player.shows({ wakeAt: START + 1_000 });
      player.after('tick').shows({ state: 'failed', done: kind === 'for_each' ? ['b'] : [] });
      player.shows({ tree: { b: 'failed', x: 'cancelled' }, atWork: [] });
      player.shows({ failure: `${kind} b timed out after 1000 ms` });
      assert.equal(code(player), 'timeout');
      assert.equal(player.last!.counts.timeouts, 1);
    });
  }

  test('is caught by a try_catch around, never by the block itself', () => {
    const inner = limited(tryCatch('i', [work('x')], [noop('own')]), 100);
    const player = play([tryCatch('t', [inner], [noop('rescue')])]);
    player.after('tick').shows({ state: 'completed', done: ['rescue'] });
    const error = player.snapshot.data._error as { failed_block_id: string; code: string };
    assert.deepEqual([error.failed_block_id, error.code], ['i', 'timeout']);
  });

  test('lets finally lists run first, its own too', () => {
    const inside = tryCatch('i', [work('x')], [], [work('clean')]);
    const outer = limited(tryCatch('o', [inside], [noop('own')], [work('last')]), 100);
    const player = play([tryCatch('t', [outer], [noop('rescue')])]);
    player.after('tick').shows({ atWork: ['clean'], withdrawn: ['x'] });
    player.after('ok clean').shows({ atWork: ['last'] });
    player.after('ok last').shows({ state: 'completed', done: ['clean', 'last', 'rescue'] });
    player.shows({ tree: { o: 'failed', i: 'cancelled', own: 'skipped' } });
  });

  test('a finally list that runs when the time is over runs to its end', () => {
    const block = limited(tryCatch('o', [noop('x')], [], [work('last')]), 100);
    const player = play([block, noop('z')]);
    player.after('tick').shows({ atWork: ['last'], wakeAt: null });
    player.after('ok last').shows({ state: 'failed', done: ['x', 'last'] });
  });

  test('a branch that times out fails its race and its parallel as any failure does', () => {
    const slow = limited(parallel('s', [work('x')]), 100);
    const raced = play([race('r', [slow], [work('y')])]);
    raced.after('tick').shows({ state: 'failed', tree: { y: 'cancelled' } });
    const together = play([parallel('p', [slow], [work('y')])]);
    together.after('tick').shows({ atWork: ['y'] });
    together.after('ok y').shows({ state: 'failed' });
  });

  test('a race that is decided has no time limit any more', () => {
    const loser = tryCatch('t', [work('y')], [], [work('clean')]);
    const player = play([limited(race('r', [work('x')], [loser]), 100)]);
    player.after('ok x').shows({ atWork: ['clean'], wakeAt: null });
    player.after('ok clean').shows({ state: 'completed' });
  });

  test('counts for each pass of a loop around it anew, and after a retry', () => {
    const body = limited(parallel('p', [work('x')]), 100);
    const player = play([loop('l', 'true', 2, [body])]);
    player.now += 90;
    player.after('ok x').shows({ wakeAt: START + 190 });
    player.after('tick').shows({ state: 'failed' });
    player.after('retry').shows({ wakeAt: START + 290, atWork: ['x'] });
  });

  test('counts while the instance is parked or put off, and a deferral is shown before it', () => {
    const block = limited(parallel('p', [work('x')]), 100);
    const parked = play([block]);
    parked.after('park').shows({ wakeAt: START + 100 });
    parked.after('tick').shows({ state: 'failed' });
    const waiting = play([limited(parallel('p', [work('x', { delay: { duration: 500 } })]), 100)]);
    waiting.shows({ state: 'scheduled', nextFireAt: START + 500, wakeAt: START + 100 });
    waiting.after('tick').shows({ state: 'failed', tree: { x: 'cancelled' } });
  });

  test('stands still in a pause, and goes on with what was left', () => {
    const player = play([limited(parallel('p', [work('x')]), 100)]);
    player.now += 30;
    player.after('pause').shows({ wakeAt: null });
    player.now += 10_000;
    player.after('wake', 'resume').shows({ state: 'waiting', wakeAt: START + 10_100 });
  });

  test('a signal that cancels meanwhile wins', () => {
    const inside = tryCatch('i', [work('x')], [], [work('clean')]);
    const player = play([limited(parallel('p', [inside]), 100)]);
    player.after('tick', 'cancel', 'ok clean').shows({ state: 'cancelled' });
  });
});

describe('timeout of an instance', () => {
  const started = (blocks: Block[], timeoutMs: number) => {
    const player = new Player(blocks);
    player.snapshot = { ...player.snapshot, timeoutMs };
    return player.start();
  };

  test('counts from the first step, fails what is open, and a retry has all of it again', () => {
    const player = started([work('a'), noop('z')], 1_000);
    player.shows({ wakeAt: START + 1_000 });
    player
      .after('tick')
      .shows({ state: 'failed', failure: 'the instance timed out after 1000 ms' });
    assert.equal(code(player), 'instance_timeout');
    player.now += 50;
    player.after('retry').shows({ state: 'waiting', wakeAt: START + 2_050 });
  });

  test('lets finally lists run first, and then it has failed', () => {
    const player = started(
      [tryCatch('t', [work('a')], [noop('c')], [work('clean')]), noop('z')],
      100,
    );
    player.after('tick').shows({ atWork: ['clean'], wakeAt: null });
    player.after('ok clean').shows({ state: 'failed', tree: { t: 'cancelled', z: 'cancelled' } });
    player.after('retry').shows({ atWork: ['a'] });
  });

  test('a cancel while it cleans up makes it cancelled', () => {
    const player = started([tryCatch('t', [work('a')], [], [work('clean')])], 100);
    player.after('tick', 'cancel', 'ok clean').shows({ state: 'cancelled', failure: undefined });
  });

  test('stands still in a pause, counts in every other state, and is nothing to one that ends', () => {
    const player = started([work('a')], 100);
    player.after('pause').shows({ wakeAt: null });
    player.now += 1_000;
    player.after('resume', 'park').shows({ wakeAt: START + 1_100 });
    player.after('ok a').shows({ state: 'completed', wakeAt: null });
    assert.equal(player.snapshot.execution.u, undefined);
  });
});

describe('deadline of a step', () => {
  const onBreach = (handler: string, params = {}) => ({
    deadline: 1_000,
    on_deadline_breach: { handler, params },
  });

  const ways: Readonly<Record<string, { block: Block; until: (player: Player) => void }>> = {
    'while it is delayed': {
      block: work('a', { deadline: 1_000, delay: { duration: 5_000 } }),
      until: () => {},
    },
    'while its task waits': { block: work('a', { deadline: 1_000 }), until: () => {} },
    'while a worker is at it': {
      block: work('a', { deadline: 1_000, timeout: 10_000 }),
      until: (player) => void player.after('claim a'),
    },
    'between two tries': {
      block: work('a', { deadline: 1_000, retry: { max_attempts: 9, initial_backoff: 700 } }),
      until: (player) => void player.after('again a', 'tick', 'again a'),
    },
    'in a handler': { block: http('a', { deadline: 1_000 }), until: () => {} },
    'in a sleep': { block: sleep('a', 5_000, { deadline: 1_000 }), until: () => {} },
  };
  for (const [when, { block, until }] of Object.entries(ways)) {
    test(`counts from its begin and fails it for good: ${when}`, () => {
      const player = play([block]);
      until(player);
      player.shows({ wakeAt: START + 1_000 });
      player.now = START + 1_234;
      player.after('wake').shows({ state: 'failed', failure: 'missed its deadline of 1000 ms' });
      player.shows({ atWork: [] });
      assert.equal(code(player), 'deadline');
      const row = { _error: 'sla_deadline_breached', _deadline_ms: 1_000, _elapsed_ms: 1_234 };
      assert.deepEqual(player.outputOf('a'), row);
      assert.deepEqual(audited(player).slice(0, 2), ['deadline_breached', 'step_failed']);
      assert.equal(player.last!.counts.breaches, 1);
    });
  }

  test('a sleep that ends first succeeds, however late it is looked at', () => {
    const player = play([sleep('a', 500, { deadline: 1_000 })]);
    player.now += 9_000;
    player.after('wake').shows({ state: 'completed' });
  });

  test('is caught by a try_catch, and a retry of the instance begins it anew', () => {
    const caught = play([tryCatch('t', [work('a', { deadline: 50 })], [noop('c')])]);
    caught.after('tick').shows({ state: 'completed', done: ['c'] });
    const player = play([work('a', { deadline: 50 }), work('b')]);
    player.after('tick').shows({ state: 'failed' });
    player.now += 100;
    player.after('retry').shows({ wakeAt: START + 200, atWork: ['a'] });
    assert.equal(player.outputOf('a'), undefined);
  });

  test('stands still in a pause', () => {
    const player = play([work('a', { deadline: 50 })]);
    player.now += 20;
    player.after('pause').shows({ wakeAt: null });
    player.now += 1_000;
    player.after('resume').shows({ state: 'waiting', wakeAt: START + 1_050 });
  });

  test('calls a pure handler in place, with what happened', () => {
    const player = play([work('a', onBreach('log', { message: 'late: {{ data.who }}' }))], {
      data: { who: 'me' },
    });
    player.after('tick');
    assert.deepEqual(player.last!.logs, [{ blockId: 'a', level: 'info', message: 'late: me' }]);
    const failingToo = play([work('a', onBreach('fail', { message: 'no' }))]);
    failingToo.after('tick').shows({ state: 'failed', failure: 'missed its deadline of 1000 ms' });
    assert.ok(audited(failingToo).includes('deadline_handler_failed'));
  });

  test('calls another one durably, beside the instance that has ended', () => {
    const player = play([work('a', onBreach('http_request', { url: 'http://x' }))]);
    player.after('tick').shows({ state: 'failed' });
    const [call] = player.last!.dispatches;
    assert.deepEqual(call?.params, {
      url: 'http://x',
      _breach_block_id: 'a',
      _breach_instance_id: player.snapshot.id,
      _breach_elapsed_ms: 1_000,
      _breach_deadline_ms: 1_000,
    });
    // Its process dies: it is called again, and once it has answered no more.
    assert.deepEqual(player.recover().dispatches, [call]);
    const { node, iteration, attempt } = call!;
    const outcome = { kind: 'failure', retryable: true, message: 'away' } as const;
    const end = { kind: 'step.outcome', node, iteration, attempt, external: false } as const;
    assert.equal(player.send({ ...end, outcome }).audit[0]?.eventType, 'deadline_handler_failed');
    assert.equal(player.snapshot.execution.b, undefined);
    player.shows({ state: 'failed' });
    assert.equal(player.sendOnce({ ...end, outcome }).stale, true);
    assert.deepEqual(player.recover().dispatches, []);
  });

  test('calls nobody outside in a dry run, and nobody with params that cannot be rendered', () => {
    const block = work('b', onBreach('http_request', { url: '{{ nowhere.x }}' }));
    const unrendered = play([block]);
    unrendered.after('tick');
    assert.deepEqual(unrendered.last!.dispatches, []);
    const dry = play([
      { ...sleep('a', 5_000, onBreach('http_request', { url: 'http://x' })) } as Block,
    ]);
    dry.snapshot.runtime.dry_run = true;
    dry.after('tick').shows({ state: 'failed' });
    assert.deepEqual(dry.last!.dispatches, []);
  });

  test('only built-in handlers that do something can be called', () => {
    for (const handler of ['page_somebody', 'sleep']) {
      const block = work('a', onBreach(handler));
      const compiled = compilePlan({ id: 's', blocks: [block] });
      assert.ok(!compiled.ok && compiled.message.includes('on_deadline_breach.handler'), handler);
    }
    assert.ok(compilePlan({ id: 's', blocks: [failing('a')] }).ok);
  });
});
