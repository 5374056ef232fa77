/**
 * The gates of a step that look at the calendar: `send_window` and `fire_at_local`. The arithmetic itself is tested in `timing.test.ts`.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../schema/blocks.js';
import { createValidators } from '../../schema/validators.js';
import { compilePlan } from '../../src/core/plan.js';
import {
  http,
  loop,
  noop,
  Player,
  type PlayerOptions,
  parallel,
  sleep,
  work,
} from '../helpers/player.js';

const OFFICE = { start_hour: 9, end_hour: 17 };
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** An instance that starts on the Wednesday of 2024-03-06 at this time of UTC. */
function at(clock: string, blocks: Block[], options: PlayerOptions & { timezone?: string } = {}) {
  const { timezone = 'UTC', ...rest } = options;
  const player = new Player(blocks, rest);
  player.now = Date.parse(clock.length === 5 ? `2024-03-06T${clock}:00Z` : clock);
  player.snapshot = { ...player.snapshot, timezone, nextFireAt: player.now };
  return player.start();
}

function nextFireAt(player: Player): string | null {
  const { nextFireAt } = player.snapshot;
  return nextFireAt === null ? null : new Date(nextFireAt).toISOString();
}

const withFields = (block: Block, fields: object): Block => ({ ...block, ...fields }) as Block;

describe('send_window', () => {
  test('inside it a step runs at once', () => {
    const player = at('09:00', [withFields(noop('a'), { send_window: OFFICE })]);
    assert.equal(player.state, 'completed');
  });

  test('outside it the instance stays scheduled until it opens, and nothing is asked of anybody', () => {
    for (const block of [work('a'), http('a'), noop('a'), sleep('a', 5)]) {
      const player = at('20:00', [withFields(block, { send_window: OFFICE })]);
      assert.equal(player.state, 'scheduled');
      assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
      player.shows({ wakeAt: player.snapshot.nextFireAt, tree: { a: 'waiting' } });
      assert.deepEqual([player.dispatched, player.rows], [[], []]);
    }
  });

  test('the step runs when it opens, with its first try', () => {
    const player = at('20:00', [work('a', { send_window: OFFICE })]).tick();
    assert.deepEqual(player.atWork, ['a']);
    assert.equal(player.dispatched[0]!.attempt, 0);
    player.after('ok a').shows({ state: 'completed' });
  });

  test('without fields it is open from 9 to 17 on every day', () => {
    const player = at('08:59', [work('a', { send_window: {} })]);
    assert.equal(nextFireAt(player), '2024-03-06T09:00:00.000Z');
  });

  test('is judged in the zone of the instance', () => {
    const blocks = [work('a', { send_window: OFFICE })];
    const player = at('09:30', blocks, { timezone: 'America/New_York' });
    assert.equal(nextFireAt(player), '2024-03-06T14:00:00.000Z');
  });

  test('comes behind when: a step that is skipped waits for nothing', () => {
    const player = at('20:00', [work('a', { when: 'no', send_window: OFFICE }), noop('b')]);
    player.shows({ state: 'completed', done: ['b'] });
  });

  test('comes behind the delay, whose end may lie outside', () => {
    const fields = { delay: { duration: 2 * HOUR }, send_window: OFFICE };
    const player = at('16:00', [work('a', fields)]);
    assert.equal(nextFireAt(player), '2024-03-06T18:00:00.000Z');
    player.tick();
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
    player.after('tick').shows({ atWork: ['a'] });
  });

  test('comes before the rate limit: nothing is asked while it is closed', () => {
    const env = { isRateLimited: () => true };
    const fields = { send_window: OFFICE, rate_limit_key: 'k' };
    const player = at('20:00', [work('a', fields)], { env });
    assert.deepEqual(player.asked, []);
    player.after('tick').shows({ asked: 1 });
  });

  test('a try that the rate limit lets pass too late waits for the next opening and asks again', () => {
    const env = { isRateLimited: () => true };
    const fields = { send_window: OFFICE, rate_limit_key: 'k' };
    const player = at('16:59', [work('a', fields)], { env });
    const step = { node: 0, iteration: '', attempt: 0 };
    player.now += MINUTE;
    player.send({ kind: 'rate.granted', ...step });
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
    player.after('tick').shows({ asked: 2 });
    player.send({ kind: 'rate.granted', ...step });
    assert.deepEqual(player.atWork, ['a']);
  });

  test('comes before the templates, which see the data of the time of the try', () => {
    const fields = { send_window: OFFICE, params: { n: '{{ data.n }}' } };
    const player = at('20:00', [work('a', fields)], { data: { n: 1 } });
    player.snapshot.data = { n: 2 };
    player.tick();
    assert.deepEqual(player.dispatched[0]!.params, { n: 2 });
  });

  test('holds for every try: a retry that falls behind it waits for the next opening', () => {
    const retry = { max_attempts: 2, initial_backoff: 20 * MINUTE, max_backoff: HOUR };
    const player = at('16:50', [work('a', { retry, send_window: OFFICE })]);
    player.fail('a', true);
    assert.equal(nextFireAt(player), '2024-03-06T17:10:00.000Z');
    player.after('tick').shows({ state: 'scheduled' });
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
    player.tick();
    assert.equal(player.dispatched.at(-1)!.attempt, 1);
  });

  test('holds for a try that was lost with its process', () => {
    const player = at('16:59', [http('a', { send_window: OFFICE })]);
    player.now += HOUR;
    player.recover();
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
    player.tick();
    assert.deepEqual(player.dispatched.at(-1)!.attempt, 0);
  });

  test('does not take back a try that is at work when it closes', () => {
    const player = at('16:59', [work('a', { send_window: OFFICE }), noop('b')]);
    player.now += HOUR;
    player.after('ok a').shows({ state: 'completed' });
  });

  test('of one branch does not hold the others', () => {
    const player = at('20:00', [parallel('p', [work('a', { send_window: OFFICE })], [work('b')])]);
    assert.deepEqual(player.atWork, ['b']);
    player.after('ok b').shows({ state: 'scheduled' });
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
  });

  test('inside a loop holds for each iteration', () => {
    const body = [work('a', { send_window: OFFICE })];
    const player = at('16:59', [loop('l', 'true', 2, body)]);
    player.now += MINUTE;
    player.complete('a');
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
    player.tick().complete('a');
    assert.equal(player.state, 'completed');
  });

  test('is not opened by a reschedule to an earlier time', () => {
    const player = at('20:00', [work('a', { send_window: OFFICE })]);
    player.after({ kind: 'reschedule', at: null }).shows({ atWork: [] });
    assert.equal(nextFireAt(player), '2024-03-07T09:00:00.000Z');
  });

  test('a step that waits for it is cut off by a cancel, and outlives a pause', () => {
    const blocks = [work('a', { send_window: OFFICE })];
    const cancelled = at('20:00', blocks);
    cancelled.after('cancel').shows({ state: 'cancelled' });
    const paused = at('20:00', blocks);
    paused.send({ kind: 'pause' });
    paused.now += 14 * HOUR;
    paused.after('wake').shows({ atWork: [] });
    paused.after('resume').shows({ atWork: ['a'] });
  });
});

describe('fire_at_local', () => {
  const local = (fields: object) => [work('a', { delay: fields })];

  test('is a time of the zone of the instance, unless the delay names one', () => {
    const delay = { fire_at_local: '2024-03-07T09:00:00' };
    const timezone = 'Europe/Berlin';
    assert.equal(nextFireAt(at('09:00', local(delay), { timezone })), '2024-03-07T08:00:00.000Z');
    const named = { ...delay, timezone: 'Asia/Tokyo' };
    assert.equal(nextFireAt(at('09:00', local(named), { timezone })), '2024-03-07T00:00:00.000Z');
  });

  test('runs the step at that time, and not again for a retry', () => {
    const delay = { fire_at_local: '2024-03-06T10:00:00', duration: 0 };
    const retry = { max_attempts: 2, initial_backoff: 0 };
    const player = at('09:00', [work('a', { delay, retry })]);
    assert.equal(player.state, 'scheduled');
    player.tick();
    assert.equal(new Date(player.now).toISOString(), '2024-03-06T10:00:00.000Z');
    player.after('again a').shows({ atWork: ['a'] });
  });

  test('in the past is no wait', () => {
    assert.deepEqual(at('09:00', local({ fire_at_local: '2024-03-06T09:00:00' })).atWork, ['a']);
    assert.deepEqual(at('09:00', local({ fire_at_local: '1999-12-31T23:59:59' })).atWork, ['a']);
  });

  test('is moved off a weekend, and then by the jitter', () => {
    const delay = { fire_at_local: '2024-03-09T09:00:00', business_days_only: true, jitter: 500 };
    const env = { random: () => 0 };
    assert.equal(nextFireAt(at('09:00', local(delay), { env })), '2024-03-11T08:59:59.500Z');
  });
});

describe('what a definition may say', () => {
  const validators = createValidators();

  function refusal(fields: object): string | undefined {
    const block = work('a', fields);
    const body = { tenant_id: 't', namespace: 'n', name: 's', version: 1, blocks: [block] };
    const checked = validators.validateBody('sequences.create', body);
    if (!checked.ok) return checked.message;
    const compiled = compilePlan({ id: 's', blocks: checked.value.blocks });
    return compiled.ok ? undefined : compiled.message;
  }

  const cases: [fields: object, refused: string | undefined][] = [
    [{ send_window: null }, undefined],
    [{ send_window: {} }, undefined],
    [{ send_window: { start_hour: 0, end_hour: 23, days: [0, 6] } }, undefined],
    [{ send_window: { start_hour: 22, end_hour: 6, days: [] } }, undefined],
    [{ send_window: [] }, 'blocks[0].send_window must be an object'],
    [{ send_window: { start_hour: -1 } }, 'blocks[0].send_window.start_hour must be >= 0'],
    [{ send_window: { end_hour: 24 } }, 'blocks[0].send_window.end_hour must be <= 23'],
    [{ send_window: { end_hour: 9.5 } }, 'blocks[0].send_window.end_hour must be an integer'],
    [{ send_window: { days: [7] } }, 'blocks[0].send_window.days[0] must be <= 6'],
    [{ send_window: { days: ['Mon'] } }, 'blocks[0].send_window.days[0] must be an integer'],
    [{ send_window: { days: 1 } }, 'blocks[0].send_window.days must be an array'],
    [
      { send_window: { start_hour: 5, end_hour: 5 } },
      'step a: send_window must not start and end at the same hour, 5',
    ],
    [
      { send_window: { start_hour: 17 } },
      'step a: send_window must not start and end at the same hour, 17',
    ],
    [{ delay: { fire_at_local: '2030-01-01T00:00:00' } }, undefined],
    [{ delay: { fire_at_local: '2030-01-01T00:00:00', duration: 0 } }, undefined],
    [{ delay: { duration: 5, fire_at_local: null, timezone: 'Asia/Tokyo' } }, undefined],
    [
      { delay: { fire_at_local: '2030-01-01T00:00:00', duration: 1 } },
      'step a: delay must not have both a duration and fire_at_local',
    ],
    [
      { delay: { fire_at_local: '2030-02-30T00:00:00' } },
      'step a: delay.fire_at_local must be a day and time as YYYY-MM-DDTHH:MM:SS',
    ],
    [
      { delay: { fire_at_local: '2030-01-01T00:00:00Z' } },
      'step a: delay.fire_at_local must be a day and time as YYYY-MM-DDTHH:MM:SS',
    ],
    [{ delay: { fire_at_local: 5 } }, 'blocks[0].delay.fire_at_local must be a string'],
    [
      { delay: { fire_at_local: '2030-01-01T00:00:00', timezone: 'Mars/Base' } },
      'blocks[0].delay.timezone must be a known IANA time zone',
    ],
  ];
  for (const [fields, refused] of cases) {
    test(`${JSON.stringify(fields)} is ${refused === undefined ? 'accepted' : 'refused'}`, () => {
      assert.equal(refusal(fields), refused);
    });
  }

  test('false, which older definitions hold for absent, stays absent', () => {
    const fields = { send_window: false, delay: { fire_at_local: false, timezone: false } };
    assert.deepEqual(at('20:00', [work('a', fields)]).atWork, ['a']);
  });
});
