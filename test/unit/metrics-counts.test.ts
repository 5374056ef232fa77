/** What counts as an attempt that was started, failed or followed by another one, and as a claim. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { beforeOf, countProgress } from '../../actors/instance/advance.js';
import { Turn } from '../../actors/runtime/turn.js';
import type { EngineEvent, Progress } from '../../src/core/evaluator.js';
import { COUNTER_NAMES } from '../../src/metrics/catalog.js';
import { failing, http, noop, Player, START, sleep, work } from '../helpers/player.js';

type Triple = readonly [executed: number, failed: number, retried: number];

const countsOf = ({ counts }: Progress): Triple => [
  counts.stepsExecuted,
  counts.stepsFailed,
  counts.stepsRetried,
];

describe('steps', () => {
  test('a try counts when it is started, not when it ends', () => {
    const player = new Player([work('a'), noop('b')]).start();
    assert.deepEqual(countsOf(player.last!), [1, 0, 0]);
    assert.deepEqual(countsOf(player.complete('a')), [1, 0, 0]);
  });

  test('a sleep counts once, when it begins', () => {
    const player = new Player([sleep('a', 50)]).start();
    assert.deepEqual(countsOf(player.last!), [1, 0, 0]);
    assert.deepEqual(countsOf(player.tick().last!), [0, 0, 0]);
    assert.equal(player.state, 'completed');
  });

  test('each try that fails counts as failed, and as retried if another one follows', () => {
    const retry = { max_attempts: 2, initial_backoff: 10, max_backoff: 10 };
    const player = new Player([work('a', { retry })]).start();
    assert.deepEqual(countsOf(player.fail('a', true)), [0, 1, 1]);
    assert.deepEqual(countsOf(player.tick().last!), [1, 0, 0]);
    assert.deepEqual(countsOf(player.fail('a', true)), [0, 1, 0]);
    assert.equal(player.state, 'failed');
  });

  test('a step that fails in place was started and has failed', () => {
    assert.deepEqual(countsOf(new Player([failing('a')]).start().last!), [1, 1, 0]);
  });

  test('a try that is started again by a new process counts again, one of a worker does not', () => {
    const player = new Player([http('a')]).start();
    assert.deepEqual(countsOf(player.recover()), [1, 0, 0]);
    const external = new Player([work('a')]).start();
    assert.deepEqual(countsOf(external.recover()), [0, 0, 0]);
  });
});

describe('claims', () => {
  /** How often an instance was claimed when it has taken in these events. */
  function claims(player: Player, events: readonly EngineEvent[]): number {
    const turn = new Turn();
    for (const event of events) {
      const before = beforeOf(player.snapshot);
      const progress = player.sendOnce(event);
      countProgress(turn, event, before, player.snapshot, progress);
    }
    const counts = turn.takeCounts();
    const index = COUNTER_NAMES.indexOf('engine_instances_claimed_total');
    return counts.reduce((sum, value, i) => {
      return i % 2 === 1 && counts[i - 1] === index ? sum + value : sum;
    }, 0);
  }

  const WAKE: EngineEvent = { kind: 'wake' };
  const delayed = (id: string) => ({ ...noop(id), delay: { duration: 1_000 } });

  test('an eager start is one', () => {
    assert.equal(claims(new Player([noop('a')]), [WAKE]), 1);
    assert.equal(claims(new Player([work('a')]), [WAKE]), 1);
  });

  test('a start that is only a delay is one, and the end of the delay is another', () => {
    const player = new Player([delayed('a'), delayed('b')]);
    assert.equal(claims(player, [WAKE]), 1);
    assert.equal(player.state, 'scheduled');
    player.now += 1_000;
    assert.equal(claims(player, [WAKE]), 1);
    assert.equal(player.state, 'scheduled');
    player.now += 1_000;
    assert.equal(claims(player, [WAKE]), 1);
    assert.equal(player.state, 'completed');
  });

  test('a wake with nothing due is none, nor is one of an instance that waits', () => {
    const early = new Player([delayed('a')]).start();
    assert.equal(claims(early, [WAKE]), 0);
    const waiting = new Player([work('a')]).start();
    assert.equal(claims(waiting, [WAKE]), 0);
  });

  test('moves by request are none, and what follows a resume or a retry is one', () => {
    const player = new Player([delayed('a')]).start();
    assert.equal(claims(player, [{ kind: 'pause' }, { kind: 'resume' }]), 0);
    player.now = START + 1_000;
    assert.equal(claims(player, [WAKE]), 1);
    const failed = new Player([failing('a')]).start();
    assert.equal(claims(failed, [{ kind: 'retry' }]), 0);
    assert.equal(claims(failed, [WAKE]), 1);
    assert.equal(claims(new Player([noop('a')]), [{ kind: 'cancel' }]), 0);
  });
});

describe('a turn', () => {
  test('hands its counts over with its unit, and keeps its other effects in order', () => {
    const turn = new Turn();
    turn.reply(1, 200, 'a');
    turn.count('engine_signals_delivered_total');
    turn.count('engine_steps_failed_total', 0);
    turn.reply(2, 200, 'b');
    turn.count('engine_steps_executed_total', 3);
    assert.deepEqual(turn.takeCounts(), [
      COUNTER_NAMES.indexOf('engine_signals_delivered_total'),
      1,
      COUNTER_NAMES.indexOf('engine_steps_executed_total'),
      3,
    ]);
    const seen = turn.effects.map((effect) => effect.kind === 'reply' && effect.request);
    assert.deepEqual(seen, [1, 2]);
    assert.deepEqual(turn.takeCounts(), []);
  });
});
