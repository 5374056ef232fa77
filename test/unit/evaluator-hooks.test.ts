/** The hooks of a sequence: what runs when an instance has failed or was cancelled, and what it leaves. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Hooks } from '../../schema/blocks.js';
import { compilePlan } from '../../src/core/plan.js';
import { failing, noop, Player, type PlayerOptions, parallel, work } from '../helpers/player.js';
import { column, lines } from '../helpers/rows.js';

const hook = (id: string, handler = 'noop', fields: object = {}) => ({
  type: 'step' as const,
  id,
  handler: handler as 'noop',
  ...fields,
});

const TELL = { params: { why: '{{ data._error.message }}', at: '{{ data._error.path }}' } };

/** An instance that has started, of a sequence with hooks. */
function playWith(hooks: Hooks, blocks = [work('a')], options: PlayerOptions = {}): Player {
  return new Player(blocks, { ...options, hooks }).start();
}

const hookRows = (player: Player) =>
  lines(
    player.rows.filter(({ iteration }) => iteration.startsWith('on_')),
    'blockId',
    'iteration',
    'attempt',
  );

describe('on_failure', () => {
  test('runs its steps in order once the instance has failed, and tells them why', () => {
    const hooks = { on_failure: [hook('tell', 'transform', TELL), hook('then')] };
    const player = playWith(hooks, [parallel('p', [work('a')])]).after('fail a');
    player.shows({ state: 'failed', wakeAt: null });
    assert.deepEqual(hookRows(player), ['tell on_failure.0 0', 'then on_failure.0 0']);
    assert.deepEqual(player.outputOf('tell'), { why: 'broken', at: 'p/a' });
    assert.equal(player.snapshot.data._error, undefined);
    assert.deepEqual(Object.keys(player.tree), ['p', 'a']);
  });

  test('does not begin before the failure is stored', () => {
    const player = playWith({ on_failure: [hook('tell')] }, [work('a')]);
    const { node, iteration, attempt } = player.dispatched[0]!;
    const outcome = { kind: 'failure', retryable: false, message: 'broken' } as const;
    const progress = player.sendOnce({
      kind: 'step.outcome',
      node,
      iteration,
      attempt,
      outcome,
      external: true,
    });
    assert.deepEqual([player.state, progress.more, player.rows.length], ['failed', true, 0]);
    player.after('wake');
    assert.equal(player.rows.length, 1);
  });

  test('goes on behind a step that fails, which leaves a line in the audit and no row', () => {
    const broken = hook('broken', 'transform', { params: { x: '{{ nonsense.x }}' } });
    const player = playWith({ on_failure: [hook('x', 'fail'), broken, hook('last')] });
    player.after('fail a').shows({ state: 'failed', failure: 'broken' });
    assert.deepEqual(hookRows(player), ['last on_failure.0 0']);
    assert.deepEqual(column(player.last!.audit, 'eventType'), ['hook_failed', 'hook_failed']);
    assert.equal(player.last!.audit[0]?.details?.hooks, 'on_failure');
  });

  test('reads the outputs of blocks and of hooks before it, and is skipped by its when', () => {
    const hooks = {
      on_failure: [
        hook('one', 'transform', { params: { n: '{{ outputs.t.n }}' } }),
        hook('skipped', 'noop', { when: 'data._error.code == timeout' }),
        hook('two', 'transform', { params: { n: '{{ outputs.one.n }}' } }),
      ],
    };
    const t = { type: 'step', id: 't', handler: 'transform', params: { n: 4 } } as const;
    const player = playWith(hooks, [t, failing('f')]);
    assert.deepEqual(player.outputOf('two'), { n: 4 });
    assert.deepEqual(column(player.rows, 'blockId').includes('skipped'), false);
  });

  test('runs again at the next failure, with rows of its own', () => {
    const player = playWith({ on_failure: [hook('tell')] }).after('fail a', 'retry', 'fail a');
    assert.deepEqual(hookRows(player), ['tell on_failure.0 0', 'tell on_failure.1 1']);
    player.after('retry', 'ok a').shows({ state: 'completed' });
    assert.equal(hookRows(player).length, 2);
  });

  test('leaves the times of an instance that lives again before the hook has ended', () => {
    const call = hook('call', 'http_request', { params: { url: 'https://a.example/' } });
    const nap = { type: 'step', id: 'nap', handler: 'sleep', params: { duration_ms: 20_000 } };
    const player = playWith({ on_failure: [call] }, [work('a'), nap as never]);
    player.after('fail a', 'retry', 'ok a');
    const { wakeAt } = player.last!;
    assert.ok(wakeAt !== null);
    player.after('ok call').shows({ state: 'running', wakeAt });
    assert.equal(player.last!.stale, undefined);
  });

  test('is nothing to an instance that completes or is cancelled', () => {
    const hooks = { on_failure: [hook('tell')] };
    assert.deepEqual(hookRows(playWith(hooks).after('ok a')), []);
    assert.deepEqual(hookRows(playWith(hooks).after('cancel')), []);
  });

  test('a failure that was caught is none', () => {
    const guarded = {
      type: 'try_catch',
      id: 't',
      try_block: [failing('x')],
      catch_block: [],
    } as const;
    assert.deepEqual(hookRows(playWith({ on_failure: [hook('tell')] }, [guarded as never])), []);
  });

  test('does so for one that is failed by request, too', () => {
    const player = playWith({ on_failure: [hook('tell', 'transform', TELL)] });
    player.after({ kind: 'stop', state: 'failed' }).shows({ state: 'failed' });
    assert.deepEqual(player.outputOf('tell'), { why: 'failed by request', at: null });
  });
});

describe('on_cancel', () => {
  const hooks = { on_cancel: [hook('tell')], on_failure: [hook('never')] };

  test('runs after the signal, after protected work, and after a hard stop', () => {
    assert.deepEqual(hookRows(playWith(hooks).after('cancel')), ['tell on_cancel.0 0']);
    const kept = playWith(hooks, [work('a', { cancellable: false })]).after('cancel');
    assert.deepEqual(hookRows(kept), []);
    assert.deepEqual(hookRows(kept.after('ok a')), ['tell on_cancel.0 0']);
    const stopped = playWith(hooks).after({ kind: 'stop', state: 'cancelled' });
    assert.deepEqual(hookRows(stopped), ['tell on_cancel.0 0']);
  });

  test('a failed instance that is cancelled has both', () => {
    const player = playWith(hooks).after('fail a', 'cancel').shows({ state: 'cancelled' });
    assert.deepEqual(hookRows(player), ['never on_failure.0 0', 'tell on_cancel.1 1']);
  });
});

describe('a hook that takes a while', () => {
  const call = hook('call', 'http_request', { params: { url: 'https://x.example' } });
  const hooks = { on_failure: [call, hook('last')] };

  test('keeps the next one waiting, and is not of the instance', () => {
    const player = playWith(hooks).after('fail a');
    player.shows({ state: 'failed', atWork: ['call'], wakeAt: player.now + 30_000 });
    player.after('ok call').shows({ wakeAt: null });
    assert.deepEqual(hookRows(player), ['call on_failure.0 0', 'last on_failure.0 0']);
  });

  test('is given up after 30 s, or after its timeout if that is shorter', () => {
    const player = playWith(hooks).after('fail a', 'tick');
    player.shows({ withdrawn: ['call'], wakeAt: null });
    assert.deepEqual(hookRows(player), ['last on_failure.0 0']);
    const short = { on_failure: [{ ...call, timeout: 50 }] };
    const other = playWith(short).after('fail a');
    other.shows({ wakeAt: other.now + 50 });
    const long = playWith({ on_failure: [{ ...call, timeout: 90_000 }] }).after('fail a');
    long.shows({ wakeAt: long.now + 30_000 });
  });

  test('runs again when its process died, with the same token', () => {
    const player = playWith(hooks)
      .after('fail a', 'recover')
      .shows({ atWork: ['call'] });
    assert.deepEqual(lines(player.dispatched.slice(1), 'blockId', 'iteration', 'attempt'), [
      'call on_failure.0 0',
      'call on_failure.0 0',
    ]);
    player.after('ok call').shows({ atWork: [] });
  });

  test('ends in its own time when the instance is retried meanwhile', () => {
    const player = playWith(hooks)
      .after('fail a', 'retry')
      .shows({ atWork: ['call', 'a'] });
    player.after('ok call', 'ok a').shows({ state: 'completed' });
    assert.deepEqual(hookRows(player), ['call on_failure.0 0', 'last on_failure.0 0']);
  });

  test('comes before the hooks of a later end', () => {
    const both = { ...hooks, on_cancel: [hook('sorry')] };
    const player = playWith(both).after('fail a', 'cancel').shows({ state: 'cancelled' });
    assert.deepEqual(hookRows(player), []);
    player.after('ok call');
    assert.deepEqual(hookRows(player), [
      'call on_failure.0 0',
      'last on_failure.0 0',
      'sorry on_cancel.1 1',
    ]);
  });

  test('a sleep is a timer', () => {
    const rest = hook('rest', 'sleep', { params: { duration_ms: 70 } });
    const player = playWith({ on_failure: [rest] }).after('fail a');
    player
      .shows({ wakeAt: player.now + 70 })
      .after('tick')
      .shows({ wakeAt: null });
    assert.deepEqual(player.outputOf('rest'), { slept_ms: 70 });
  });

  test('an outcome that comes when it is over is stale', () => {
    const player = playWith(hooks).after('fail a');
    const { node, iteration, attempt } = player.dispatched.at(-1)!;
    player.after('ok call');
    const outcome = { kind: 'success', output: {} } as const;
    const event = { kind: 'step.outcome', node, iteration, attempt, outcome, external: false };
    assert.equal(player.sendOnce(event as never).stale, true);
  });

  test('what makes the engine throw is dropped with what is left of the list', () => {
    const player = playWith(hooks).after('fail a', { kind: 'hooks.dropped', message: 'refused' });
    assert.deepEqual(column(player.last!.audit, 'eventType'), ['hook_failed']);
    player.shows({ wakeAt: null, state: 'failed' });
  });

  test('a hook that is under way when its list is dropped is taken back', () => {
    const player = playWith(hooks).after('fail a');
    const { blockId, iteration } = player.dispatched.at(-1)!;
    player.sendOnce({ kind: 'hooks.dropped', message: 'refused' });
    const [withdrawal, ...others] = player.last!.withdrawals;
    assert.deepEqual([withdrawal?.blockId, withdrawal?.iteration], [blockId, iteration]);
    assert.deepEqual(others, []);
  });
});

test('an instance of a sequence without hooks has nothing of them in its execution', () => {
  const player = new Player([failing('a')]).start();
  assert.equal(player.snapshot.execution.j, undefined);
});

test('ids of hooks are unique among those of all blocks', () => {
  const on_failure = [hook('a')];
  const compiled = compilePlan({ id: 's', blocks: [noop('a')], on_failure });
  assert.deepEqual(compiled, { ok: false, message: 'block id a is not unique' });
});
