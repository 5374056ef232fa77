/** What is on the screen is read again as often as it changes and no oftener, also when reading is slow or fails. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EngineError } from 'durable-workflow-engine-client';
import { pauseMs } from '../src/api/pause.ts';
import { listInTurn, type Read, whenToRead } from '../src/api/rereads.ts';

const NOW = 1_000_000;

type State = Partial<Read['state']>;

/** Answered a minute ago, unless `state` says otherwise. */
const read = (state: State = {}, meta: Read['meta'] = { live: 'all' }): Read => ({
  meta,
  state: {
    status: 'success',
    fetchStatus: 'idle',
    dataUpdatedAt: NOW - 60_000,
    errorUpdatedAt: 0,
    error: null,
    ...state,
  },
});

const refusal = (status: number, retryAfterMs?: number) =>
  new EngineError({ status, code: 'ENG_SAMPLE', message: 'no', retryAfterMs });

const failed = (error: EngineError, agoMs: number) =>
  read({ status: 'error', error, errorUpdatedAt: NOW - agoMs });

test('what is behind is read again, and nothing else', () => {
  assert.equal(whenToRead(read(), true, NOW), 'now');
  assert.equal(whenToRead(read(), false, NOW), 'never');
});

test('what was read just now rests for its own pace', () => {
  const justNow = { dataUpdatedAt: NOW - 3000 };
  assert.equal(whenToRead(read(justNow), true, NOW), 'now');
  assert.equal(whenToRead(read(justNow, { live: 'all', paceMs: 5000 }), true, NOW), 'later');
});

test('what shows one instance rests for half of what lists do', () => {
  const justNow = { dataUpdatedAt: NOW - 600 };
  assert.equal(whenToRead(read(justNow, { live: 'all' }), true, NOW), 'later');
  assert.equal(whenToRead(read(justNow, { live: 'an id' }), true, NOW), 'now');
});

test('of several lists one is read at a time, the one with the oldest answer', () => {
  const lists = [3000, 9000, 5000].map((agoMs) => read({ dataUpdatedAt: NOW - agoMs }));
  const ofOne = read({ dataUpdatedAt: 0 }, { live: 'an id' });
  assert.equal(listInTurn([ofOne, ...lists], NOW - 2000, NOW), lists[1]);
  assert.equal(listInTurn(lists, NOW - 1000, NOW), undefined);
  assert.equal(listInTurn([ofOne], NOW - 2000, NOW), undefined);
});

test('a slow read is left to end, however much changes meanwhile', () => {
  const underWay = read({ fetchStatus: 'fetching' });
  assert.equal(whenToRead(underWay, true, NOW), 'later');
  assert.equal(whenToRead(underWay, true, NOW + 3_600_000), 'later');
});

test('what was refused for good is not asked again, whatever changes', () => {
  for (const status of [400, 403, 404]) {
    assert.equal(whenToRead(failed(refusal(status), 60_000), true, NOW), 'never', `${status}`);
  }
});

test('what failed for a while rests longer, and is asked again though nothing changes', () => {
  for (const status of [0, 429, 500, 503]) {
    assert.equal(whenToRead(failed(refusal(status), 2_000), true, NOW), 'later', `${status}`);
    assert.equal(whenToRead(failed(refusal(status), 12_000), false, NOW), 'now', `${status}`);
  }
});

test('what the engine asks to wait for is waited for', () => {
  assert.equal(whenToRead(failed(refusal(429, 30_000), 12_000), true, NOW), 'later');
  assert.equal(whenToRead(failed(refusal(429, 30_000), 31_000), true, NOW), 'now');
});

test('pauses between tries grow to half a minute, and are as long as the engine asks for', () => {
  const within = (ms: number, min: number, max: number) =>
    assert.ok(ms >= min && ms <= max, `${ms}`);
  within(pauseMs(0, undefined), 500, 1_000);
  within(pauseMs(3, undefined), 4_000, 8_000);
  within(pauseMs(1_000, undefined), 15_000, 30_000);
  assert.equal(pauseMs(0, refusal(429, 45_000)), 45_000);
});
