/** Conversations of the library with a server whose answers are written here: nothing is lost, and all of it ends. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventsOf } from '../../../client/src/client/events.js';
import { followChanges, type OpenEvents } from '../../../client/src/client/follow.js';
import { EngineError, type ExchangeTasks, type WorkerTask } from '../../../client/src/index.js';
import { Exchanges, type SendExchange } from '../../../client/src/worker/exchanges.js';
import { failureOf } from '../../../client/src/worker/failure.js';
import { type Outcome, reportOf } from '../../../client/src/worker/outbox.js';

/** Answers each request as the function says; what a poll is given makes the worker busy. */
function conversation(answer: (asked: ExchangeTasks) => void) {
  const send: SendExchange = async (text) => {
    const asked = JSON.parse(text) as ExchangeTasks;
    answer(asked);
    const outcomes = (asked.results ?? []).map(({ task_id }) => ({ task_id, status: 200 }));
    const tasks = Array.from({ length: asked.poll?.limit ?? 0 }, () => ({}) as WorkerTask);
    return { outcomes, tasks };
  };
  const nothing = () => undefined;
  return new Exchanges(
    send,
    { workerId: 'w', version: undefined, handlers: ['a'], queues: undefined, pollWaitMs: 0 },
    {
      freePlaces: () => 1,
      onTasks: nothing,
      onPoll: nothing,
      onReport: nothing,
      onAnswer: nothing,
      onFailure: nothing,
    },
  );
}

const said = (exchanges: Exchanges, task_id: string): Promise<Outcome> => {
  const { report, outcome } = reportOf({ kind: 'complete', task_id, claim_epoch: 1, output: {} });
  exchanges.say(report);
  return outcome;
};

test('a result is not lost by the poll that goes with it', async (t) => {
  const asked: ExchangeTasks[] = [];
  const exchanges = conversation((request) => {
    asked.push(request);
    if (!request.poll || !request.results?.length) return;
    throw new EngineError({ status: 400, code: 'ENG_VALIDATION', message: 'poll is wrong' });
  });
  t.after(() => exchanges.close());
  const polled = new Promise<void>((resolve) => {
    const look = () => (asked.length > 0 ? resolve() : setImmediate(look));
    look();
  });
  exchanges.startPolling();
  await polled;
  // By now it is busy: the next results go with a poll.
  assert.equal((await said(exchanges, 't')).status, 200);
  assert.ok(asked.some(({ poll, results }) => poll && results?.length === 1));
  assert.ok(asked.some(({ poll, results }) => !poll && results?.length === 1));
});

test('a result that is refused by itself says so, and those beside it are taken', async (t) => {
  const exchanges = conversation(({ results = [] }) => {
    if (!results?.some(({ task_id }) => task_id === 'bad')) return;
    throw new EngineError({ status: 400, code: 'ENG_VALIDATION', message: 'output is wrong' });
  });
  t.after(() => exchanges.close());
  const outcomes = await Promise.all(['a', 'bad', 'b'].map((id) => said(exchanges, id)));
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    [200, 400, 200],
  );
});

test('a stream that only ever ends is given up after as many tries as were asked for', async () => {
  let opened = 0;
  const open: OpenEvents = (_, { onOpen }) => {
    opened += 1;
    onOpen?.();
    return eventsOf(new Response('').body as ReadableStream<Uint8Array>);
  };
  const following = followChanges(open, { retries: 2 });
  await assert.rejects(following.next(), { code: 'CLIENT_NETWORK' });
  assert.equal(opened, 3);
});

test('whatever a handler throws has a text', () => {
  const circle: Record<string, unknown> = Object.create(null);
  circle.self = circle;
  assert.match(failureOf(circle).message, /the handler threw \[object Object\]/);
});
