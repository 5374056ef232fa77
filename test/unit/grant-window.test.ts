/** The arithmetic of sliding windows, with times in milliseconds of a made-up clock. */

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { GrantWindow } from '../../actors/limits/grant-window.js';
import { check } from '../helpers/properties.js';

const WINDOW_MS = 1_000;

/** Asks, and uses a grant at once. @returns when to come again, or undefined for a grant */
function take(window: GrantWindow, key: string, now: number): number | undefined {
  const at = window.place(key, now);
  if (at > now) return at;
  window.grant(now, now + WINDOW_MS);
  window.used(now, now);
  return undefined;
}

let window: GrantWindow;
beforeEach(() => {
  window = new GrantWindow(1, WINDOW_MS);
});

test('grants up to the maximum, then names the time at which the oldest one is over', () => {
  const window = new GrantWindow(2, WINDOW_MS);
  assert.equal(take(window, 'a', 100), undefined);
  assert.equal(take(window, 'b', 300), undefined);
  assert.equal(take(window, 'c', 400), 1_100);
  assert.equal(take(window, 'd', 400), 1_300);
  assert.equal(take(window, 'e', 400), 2_100);
});

test('lets those in first who were told to come, and puts newcomers behind them', () => {
  take(window, 'a', 0);
  assert.equal(take(window, 'b', 10), 1_000);
  assert.equal(take(window, 'newcomer', 1_000), 2_000);
  assert.equal(take(window, 'b', 1_000), undefined);
});

test('asking again with a place keeps the place', () => {
  take(window, 'a', 0);
  assert.equal(take(window, 'b', 10), 1_000);
  assert.equal(take(window, 'c', 20), 2_000);
  assert.equal(take(window, 'b', 30), 1_000);
});

test('a place that nobody takes up is given away', () => {
  take(window, 'a', 0);
  take(window, 'gone', 10);
  assert.equal(take(window, 'b', 6_100), undefined);
});

test('a grant counts from its use; one of unknown use from the last moment at which it could be', () => {
  window.grant(1, 500);
  window.used(1, 40);
  assert.equal(window.place('a', 50), 1_040);
  const unheard = new GrantWindow(1, WINDOW_MS);
  unheard.grant(1, 500);
  assert.equal(unheard.place('a', 600), 1_500);
});

test('a grant that was not used is free again', () => {
  window.grant(1, 500);
  window.used(1, null);
  assert.equal(window.place('a', 50), 50);
});

test('with another limit the places are void and those who had one are named', () => {
  take(window, 'a', 0);
  take(window, 'b', 10);
  assert.deepEqual(window.change(5, WINDOW_MS), ['b']);
  assert.equal(take(window, 'b', 20), undefined);
});

test('is empty when nothing counts any more', () => {
  take(window, 'a', 0);
  assert.equal(window.isEmpty(999), false);
  assert.equal(window.isEmpty(1_000), true);
});

test('no window of any position holds more than the maximum, and everyone is let in', (t) => {
  const run = fc.record({
    max: fc.integer({ min: 1, max: 4 }),
    asks: fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 40 }),
    useAfter: fc.integer({ min: 0, max: 50 }),
  });
  check(t, 100, run, ({ max, asks, useAfter }) => {
    const window = new GrantWindow(max, WINDOW_MS);
    const due = asks.map((at, index) => ({ at, key: String(index) }));
    const used: number[] = [];
    while (due.length > 0) {
      due.sort((a, b) => a.at - b.at);
      const next = due.shift();
      if (next === undefined) break;
      const at = window.place(next.key, next.at);
      if (at > next.at) due.push({ at, key: next.key });
      else {
        window.grant(used.length + 1, at + useAfter);
        // Every third use is never reported.
        if (used.length % 3 < 2) window.used(used.length + 1, at + useAfter);
        used.push(at + useAfter);
      }
      assert.ok(next.at < 1_000_000, 'somebody is never let in');
    }
    used.sort((a, b) => a - b);
    for (let i = max; i < used.length; i++) {
      assert.ok((used[i] as number) - (used[i - max] as number) >= WINDOW_MS);
    }
  });
});
