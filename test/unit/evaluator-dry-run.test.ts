/** The evaluator on instances whose steps only say what they would do. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import {
  forEach,
  http,
  noop,
  Player,
  type PlayerOptions,
  play,
  START,
  sleep,
  work,
} from '../helpers/player.js';

function rehearse(blocks: Block[], options: PlayerOptions = {}): Player {
  const player = new Player(blocks, options);
  player.snapshot.runtime.dry_run = true;
  return player.start();
}

test('a dry run ends without a single dispatch', () => {
  const player = rehearse([work('a'), http('b'), noop('c')]);
  player.shows({ state: 'completed', done: ['a', 'b', 'c'] });
  assert.deepEqual(player.dispatched, []);
  const counts = {
    stepsExecuted: 3,
    stepsInPlace: 1,
    stepsFailed: 0,
    stepsRetried: 0,
    timeouts: 0,
    breaches: 0,
  };
  assert.deepEqual(player.last!.counts, counts);
});

test('an external step gives what its worker would have got, rendered', () => {
  const params = { order: '{{ data.id }}', fixed: [1] };
  const player = rehearse([work('a', { params })], { data: { id: 7 } });
  assert.deepEqual(player.outputOf('a'), {
    dry_run: true,
    handler: 'work',
    would: { params: { order: 7, fixed: [1] } },
  });
});

test('a step without params would have got an empty object', () => {
  const player = rehearse([work('a')]);
  assert.deepEqual(player.outputOf('a'), { dry_run: true, handler: 'work', would: { params: {} } });
});

test('an http_request says its method and url, as far as it has them', () => {
  const url = 'https://example.org/{{ data.id }}';
  const player = rehearse(
    [http('a', { params: { url, method: 'POST', body: 'x' } }), http('b', { params: { url } })],
    { data: { id: 7 } },
  );
  const sent = 'https://example.org/7';
  assert.deepEqual(player.outputOf('a'), {
    dry_run: true,
    handler: 'http_request',
    would: { params: { url: sent, method: 'POST', body: 'x' }, method: 'POST', url: sent },
  });
  assert.deepEqual(player.outputOf('b'), {
    dry_run: true,
    handler: 'http_request',
    would: { params: { url: sent }, url: sent },
  });
});

test('later steps see the output, and the data stays as it is', () => {
  const player = rehearse([
    work('a', { params: { n: 3 } }),
    {
      type: 'step',
      id: 'b',
      handler: 'transform',
      params: { n: '{{ outputs.a.would.params.n }}' },
    },
  ]);
  assert.deepEqual(player.outputOf('b'), { n: 3 });
  assert.deepEqual(player.snapshot.data, {});
});

test('the output is not held against output_schema, which is about the real one', () => {
  const compileSchema = () => () => 'never conforms';
  const blocks = [work('a', { output_schema: {} })];
  assert.equal(rehearse(blocks, { compileSchema }).state, 'completed');
  play(blocks, { compileSchema }).after('ok a').shows({ state: 'failed' });
});

test('steps without an effect outside run as ever', () => {
  const player = rehearse([sleep('a', 40), { type: 'step', id: 'b', handler: 'fail' }]);
  assert.equal(player.state, 'running');
  player.tick();
  assert.equal(player.now, START + 40);
  assert.deepEqual(player.outputOf('a'), { slept_ms: 40 });
  assert.equal(player.state, 'failed');
});

test('the gates of a step hold, but no rate limit is asked', () => {
  const env = { isRateLimited: () => true };
  const skipped = rehearse([work('a', { when: 'no' })]);
  assert.deepEqual([skipped.tree.a, skipped.rows], ['skipped', []]);
  const delayed = rehearse([work('a', { delay: { duration: 50 }, rate_limit_key: 'k' })], { env });
  assert.equal(delayed.state, 'scheduled');
  delayed.after('tick').shows({ state: 'completed' });
  assert.deepEqual(delayed.asked, []);
  const closed = rehearse([work('a', { send_window: { start_hour: 1, end_hour: 2 } })]);
  assert.equal(closed.state, 'scheduled');
  assert.equal(closed.tick().state, 'completed');
});

test('a template that fails, fails the step', () => {
  const player = rehearse([work('a', { params: { n: '{{ nowhere.x }}' } })]);
  assert.equal(player.state, 'failed');
  assert.match(player.snapshot.execution.y!.message, /nowhere/);
});

test('each iteration has a row of its own', () => {
  const blocks = [forEach('f', 'xs', [work('a', { params: { x: '{{ data.item }}' } })])];
  const player = rehearse(blocks, { data: { xs: [1, 2] } });
  const rows = player.rows.filter(({ blockId }) => blockId === 'a');
  assert.deepEqual(
    rows.map(({ iteration, attempt, output }) => [iteration, attempt, output]),
    [1, 2].map((x, i) => [
      String(i),
      i,
      { dry_run: true, handler: 'work', would: { params: { x } } },
    ]),
  );
});

test('only true makes a dry run', () => {
  for (const value of [false, null, 'true', 1]) {
    const player = new Player([work('a')]);
    player.snapshot.runtime.dry_run = value;
    assert.deepEqual(player.start().atWork, ['a']);
  }
});
