/** Large answers of other servers: few are kept in memory at a time, and the others lose nothing by it. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { StepOutcome } from '../../src/core/builtin.js';
import { eventually } from '../helpers/api.js';
import type { Handler } from '../helpers/http-handler.js';
import { failureOf, listen, manualTimers, openHandler } from '../helpers/http-handler.js';

/** What is kept of one origin at a time, and where a large answer begins. */
const KEPT_MAX = 8;
const SMALL_BYTES_MAX = 256 * 1024;

interface Asked {
  /** Those that have come to an outcome. */
  readonly ended: StepOutcome[];
  /** Lets go of the answer of the request that ended first and still keeps one. */
  takeOne(): void;
  readonly all: Promise<StepOutcome[]>;
}

/** Asks for the url so many times; no answer is taken before the test says so. */
function ask(handler: Handler, url: string, times: number, signal?: AbortSignal): Asked {
  const ended: StepOutcome[] = [];
  const kept: (() => void)[] = [];
  const whenTaken = (then: () => void) => void kept.push(then);
  const requests = Array.from({ length: times }, async () => {
    const outcome = await handler.run({ url }, { whenTaken, ...(signal && { signal }) });
    ended.push(outcome);
    return outcome;
  });
  return {
    ended,
    takeOne: () => {
      const take = kept.shift();
      assert.ok(take);
      take();
    },
    all: Promise.all(requests),
  };
}

/** @param onRequest told of every request that arrives */
async function serve(t: TestContext, bytes: number, onRequest = () => {}): Promise<string> {
  const body = Buffer.alloc(bytes, 'x');
  const { origin } = await listen(t, (_request, response) => {
    onRequest();
    response.end(body);
  });
  return origin;
}

const ended = (asked: Asked, times: number) =>
  eventually(() => assert.equal(asked.ended.length, times));

test('large answers of one origin are kept in turns, each complete', async (t) => {
  const url = await serve(t, SMALL_BYTES_MAX + 1);
  const asked = ask(openHandler(t), url, KEPT_MAX + 4);
  for (let taken = 0; taken < 4; taken += 1) {
    await ended(asked, KEPT_MAX + taken);
    asked.takeOne();
  }
  for (const outcome of await asked.all) {
    assert.ok(outcome.kind === 'success');
    assert.equal((outcome.output as { body: string }).body.length, SMALL_BYTES_MAX + 1);
  }
});

test('small ones pass them, however many are kept', async (t) => {
  const large = await serve(t, SMALL_BYTES_MAX + 1);
  const small = await serve(t, SMALL_BYTES_MAX);
  const handler = openHandler(t);
  const waiting = ask(handler, large, KEPT_MAX + 1);
  await ended(waiting, KEPT_MAX);
  await ask(handler, small, KEPT_MAX + 4).all;
  assert.equal(waiting.ended.length, KEPT_MAX);
  waiting.takeOne();
  await waiting.all;
});

test('the wait is not counted against the time limit, and what comes after it is', async (t) => {
  const url = await serve(t, 4 * SMALL_BYTES_MAX);
  const timers = manualTimers();
  const asked = ask(openHandler(t, { setTimer: timers.setTimer }), url, KEPT_MAX + 1);
  await ended(asked, KEPT_MAX);
  await eventually(() => assert.deepEqual(timers.pendingMs(), []));
  asked.takeOne();
  await asked.all;
  assert.deepEqual(timers.pendingMs(), []);
});

test('a request that is withdrawn while it waits leaves its place to the next', async (t) => {
  let arrived = 0;
  const url = await serve(t, SMALL_BYTES_MAX + 1, () => {
    arrived += 1;
  });
  const timers = manualTimers();
  const handler = openHandler(t, { setTimer: timers.setTimer });
  const first = ask(handler, url, KEPT_MAX);
  await first.all;
  const controller = new AbortController();
  const second = ask(handler, url, 1, controller.signal);
  // It cannot end, and its clock stands still as soon as it waits.
  await eventually(() => assert.deepEqual([arrived, timers.pendingMs()], [KEPT_MAX + 1, []]));
  const third = ask(handler, url, 1);
  controller.abort();
  const [outcome] = await second.all;
  assert.ok(outcome);
  assert.deepEqual(failureOf(outcome).details, { code: 'ABORTED' });
  assert.equal(third.ended.length, 0);
  first.takeOne();
  await third.all;
});
