/** The evaluator on steps that wait for events, and on signals that are kept for them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import type { StepRecord } from '../../src/core/execution.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import type { KeptSignal } from '../../src/core/progress.js';
import {
  noop,
  Player,
  type PlayerOptions,
  parallel,
  play,
  race,
  START,
} from '../helpers/player.js';

const wait = (id: string, params: JsonObject = {}, more: JsonObject = {}) =>
  ({
    type: 'step',
    id,
    handler: 'wait_for_event',
    params: { name: 'paid', ...params },
    ...more,
  }) as Block;

const arrives = (payload: JsonValue, node = 0, attempt = 0) =>
  ({ kind: 'event.arrived', node, iteration: '', attempt, event: { id: 'e', payload } }) as const;

const kept = (seq: number, payload: JsonValue, name = 'paid'): KeptSignal => ({
  id: `s${seq}`,
  seq,
  name,
  payload,
  characters: 1,
});

function playWith(signals: KeptSignal[], blocks: Block[], options: PlayerOptions = {}): Player {
  const player = new Player(blocks, options);
  player.snapshot.signals = signals;
  return player.start();
}

const recordOf = (player: Player, node = 0) => player.snapshot.execution.o[node] as StepRecord;

describe('a step that waits for an event', () => {
  test('makes the instance waiting without a time, and notes what it waits for', () => {
    const player = play([wait('a', { key: '{{ data.id }}' })], { data: { id: 7 } });
    player.shows({ state: 'waiting', wakeAt: null, tree: { a: 'waiting' } });
    assert.deepEqual(recordOf(player).v, { n: 'paid', k: '7' });
    assert.equal(player.last!.opensEventWait, true);
  });

  test('ends with the payload as its output, which is not merged', () => {
    const player = play([wait('a'), noop('b')]);
    player.send(arrives({ x: 1 }));
    player.shows({ state: 'completed', done: ['a', 'b'], data: {} });
    assert.deepEqual(player.outputOf('a'), { x: 1 });
  });

  test('takes one event only', () => {
    const player = play([wait('a'), wait('b')]);
    player.send(arrives(1));
    assert.equal(player.send(arrives(2)).stale, true);
  });

  test('times out at the earlier of the two times, and waits anew in its next try', () => {
    for (const [params, more, ms] of [
      [{ timeout_ms: 50 }, {}, 50],
      [{}, { timeout: 70 }, 70],
      [{ timeout_ms: 90 }, { timeout: 20 }, 20],
    ] as const) {
      const player = play([wait('a', params, more)]);
      player.shows({ wakeAt: START + ms });
      player.tick().shows({ state: 'failed', failure: `timed out after ${ms} ms` });
    }
    const retry = { max_attempts: 2, initial_backoff: 10, max_backoff: 10 };
    const player = play([wait('a', { timeout_ms: 50 }, { retry })])
      .tick()
      .tick();
    player.shows({ state: 'waiting' });
    assert.equal(player.send(arrives(1, 0, 0)).stale, true);
    player.send(arrives(1, 0, 1));
    player.shows({ state: 'completed' });
  });

  test('goes on waiting when the payload is none for it, and says so', () => {
    const compileSchema = () => (value: JsonValue) => (value === 'no' ? 'it says no' : undefined);
    const player = play([wait('a', { schema: {} })], { compileSchema });
    const { audit } = player.send(arrives('no'));
    assert.deepEqual(
      audit.map(({ eventType }) => eventType),
      ['event_refused'],
    );
    player.shows({ state: 'waiting' });
    player.send(arrives('yes'));
    player.shows({ state: 'completed' });
  });

  test('takes its event while the instance is paused, and what follows begins with resume', () => {
    const player = play([wait('a'), noop('b')]).after('pause');
    player.send(arrives(1));
    player.shows({ state: 'paused', done: ['a'] });
    player.after('resume').after('wake').shows({ state: 'completed' });
  });

  test('that loses a race, or is cancelled, is open no more', () => {
    const player = play([race('r', [wait('a')], [wait('b')])]);
    player.send(arrives(1, 2));
    player.shows({ state: 'completed' });
    assert.deepEqual(player.snapshot.execution.o, {});
    const cancelled = play([parallel('p', [wait('a')], [wait('b')])]).after('cancel');
    cancelled.shows({ state: 'cancelled' });
    assert.deepEqual(cancelled.snapshot.execution.o, {});
  });

  test('fails for good with params that cannot be right', () => {
    for (const params of [
      { name: ' ' },
      { name: 7 },
      { name: 'x'.repeat(256) },
      { key: '' },
      { key: {} },
      { key: 'x'.repeat(513) },
      { timeout_ms: 0 },
      { timeout_ms: '5' },
    ]) {
      const player = play([wait('a', params, { retry: { max_attempts: 3 } })]);
      player.shows({ state: 'failed' });
      assert.equal(player.snapshot.execution.y?.code, 'invalid_params');
    }
  });
});

describe('a signal that is kept', () => {
  test('is taken by the first wait for its name, the oldest first', () => {
    const player = playWith(
      [kept(1, 'x', 'other'), kept(2, 1), kept(3, 2)],
      [wait('a'), wait('b'), wait('c')],
    );
    player.shows({ state: 'waiting', done: ['a', 'b'] });
    assert.deepEqual(player.last!.takenSignals, [
      { seq: 2, blockId: 'a', status: 'taken' },
      { seq: 3, blockId: 'b', status: 'taken' },
    ]);
    assert.deepEqual(player.snapshot.signals, [kept(1, 'x', 'other')]);
  });

  test('ends a wait that is open', () => {
    const player = play([wait('a')]);
    player.snapshot.signals = [kept(1, 'now')];
    player.send({ kind: 'event.arrived', node: 0, iteration: '', attempt: 0 });
    player.shows({ state: 'completed' });
    assert.equal(player.outputOf('a'), 'now');
  });

  test('that is none for the wait is used up, and the next one is tried', () => {
    const compileSchema = () => (value: JsonValue) => (value === 1 ? 'it is 1' : undefined);
    const player = playWith([kept(1, 1), kept(2, 2)], [wait('a', { schema: {} })], {
      compileSchema,
    });
    player.shows({ state: 'completed' });
    const statuses = player.last!.takenSignals?.map(({ status }) => status);
    assert.deepEqual(statuses, ['refused', 'taken']);
  });

  test('ends the wait of a dry run, which waits for nothing else', () => {
    const player = new Player([wait('a', { key: 'k' }), wait('b')]);
    player.snapshot.signals = [kept(1, 'here')];
    player.snapshot.runtime.dry_run = true;
    player.start().shows({ state: 'completed' });
    assert.equal(player.outputOf('a'), 'here');
    assert.deepEqual(player.outputOf('b'), {
      dry_run: true,
      handler: 'wait_for_event',
      would: { params: { name: 'paid' } },
    });
  });
});
