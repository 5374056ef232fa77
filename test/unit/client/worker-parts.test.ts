/** The parts of the client's worker without a server: batches, conversations, failures. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventsOf } from '../../../client/src/client/events.js';
import { followChanges, type OpenEvents } from '../../../client/src/client/follow.js';
import type { ExchangeTasks, WorkerTask } from '../../../client/src/index.js';
import { EngineError, FatalError, RetryableError } from '../../../client/src/index.js';
import { Claim } from '../../../client/src/worker/claim.js';
import { Exchanges, type SendExchange } from '../../../client/src/worker/exchanges.js';
import { failureOf } from '../../../client/src/worker/failure.js';
import { Lines } from '../../../client/src/worker/lines.js';
import { Outbox, type Outcome, type Report, reportOf } from '../../../client/src/worker/outbox.js';
import { conforming } from '../../../client/src/worker/schemas.js';
import { column } from '../../helpers/columns.js';

describe('what waits to be said', () => {
  const report = (text: string): Report => {
    return { text, isFleeting: false, isRepeated: false, settle: () => undefined };
  };

  test('a request takes a thousand results at most, in their order', () => {
    const outbox = new Outbox();
    for (let n = 0; n < 1_500; n += 1) outbox.add(report(String(n)));
    const first = outbox.take();
    assert.deepEqual([first.length, first[0]?.text, outbox.isEmpty], [1_000, '0', false]);
    assert.deepEqual([outbox.take().length, outbox.isEmpty, outbox.take().length], [500, true, 0]);
  });

  test('a large result goes alone, and what was not answered goes first', () => {
    const outbox = new Outbox();
    const texts = ['a', 'b'.repeat(1_999_999), 'c', 'd'.repeat(3_000_000), 'e'];
    for (const text of texts) outbox.add(report(text));
    const batches = [outbox.take(), outbox.take()];
    const seen = batches.map((batch) => batch.map(({ text }) => text[0]));
    assert.deepEqual(seen, [['a', 'b'], ['c']]);
    outbox.putBack(batches[0] ?? []);
    const told = outbox.take().map(({ text }) => text[0]);
    assert.deepEqual(told, ['a', 'b']);
    const found = outbox.take().map(({ text }) => text[0]);
    assert.deepEqual(found, ['d']);
  });

  test('a report is a text from the beginning', () => {
    const output = { n: 1 };
    const result = { kind: 'complete', task_id: 't', claim_epoch: 1, output } as const;
    const { report: made } = reportOf(result);
    output.n = 2;
    assert.deepEqual(JSON.parse(made.text).output, { n: 1 });
    const circle = { output: {} as Record<string, unknown> };
    circle.output.self = circle;
    assert.throws(() => reportOf({ ...result, ...circle }), TypeError);
  });
});

test('a checkpoint is not said again and again of a claim that was given up before it was lost', async () => {
  let said = 0;
  const refuse = ({ settle, isRepeated }: Report) => {
    said += 1;
    assert.ok(said < 10, 'it is said again and again');
    settle({ status: 409, isRepeated });
  };
  const task = { id: 't', claim_epoch: 1, checkpoint_seq: 0 } as WorkerTask;
  const claim = new Claim(task, 0, refuse, () => undefined);
  claim.abort('timeout', 'its time is over');
  await assert.rejects(claim.context.checkpoint({ n: 1 }), /its time is over/);
  assert.deepEqual([said, claim.aborted, claim.isLost], [2, 'timeout', true]);
  await claim.beat(60_000, 1, 10);
  assert.equal(said, 2, 'nor is it kept alive');
});

test('a server whose database is away vouches for the claims that it cannot hear of', async (t) => {
  const away: number[] = [];
  const down = { status: 503, code: 'ENG_DATABASE_DOWN', message: 'the database is away' };
  const refuse = () => {
    throw new EngineError(down);
  };
  const exchanges = conversation(refuse, (sentAt) => away.push(sentAt));
  t.after(() => exchanges.close());
  void said(exchanges, 't');
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(away.length, 1);
  const task = { id: 't', claim_epoch: 1, checkpoint_seq: 0 } as WorkerTask;
  const nothing = () => undefined;
  const claim = new Claim(task, 0, nothing, nothing);
  claim.vouch(5);
  void claim.beat(14, 1_000, 10);
  assert.equal(claim.aborted, undefined);
  void claim.beat(15, 1_000, 10);
  assert.equal(claim.aborted, 'silent');
});

test('an error is retryable unless it says that it is not', () => {
  const failure = { retryable: true, retryAfterMs: 0, details: undefined };
  assert.deepEqual(failureOf(new Error('no')), { ...failure, message: 'no' });
  assert.deepEqual(failureOf(new RangeError()), { ...failure, message: 'RangeError' });
  const fatal = { ...failure, message: 'no', retryable: false };
  assert.deepEqual(failureOf(new FatalError('no')), fatal);
  const later = new RetryableError('later', { retryAfterMs: 50, details: { n: 1 } });
  const told = { message: 'later', retryAfterMs: 50, details: '{"n":1}' };
  assert.deepEqual(failureOf(later), { ...failure, ...told });
  class Declined extends Error {
    readonly retryable = false;
  }
  assert.equal(failureOf(new Declined('no')).retryable, false);
});

test('of many lines the last are kept, and it is said that there were more', () => {
  const lines = new Lines();
  assert.deepEqual(lines.said, {});
  for (let n = 0; n < 999; n += 1) lines.log.info(`${n}`);
  assert.equal(lines.said.logs?.length, 999);
  lines.log.info('999');
  assert.equal(lines.said.logs?.length, 1_000);
  assert.equal(lines.said.logs?.[0]?.message, '1 earlier lines were left out');
  assert.equal(lines.said.logs?.[1]?.message, '1');
});

test('a schema says what does not conform, not more than five of it', async () => {
  const issues = Array.from({ length: 7 }, (_, n) => ({ message: 'no', path: ['a', { key: n }] }));
  const schema = {
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues }) },
  } as const;
  const five = /^Error: \/a\/0: no; \/a\/1: no; .*\/a\/4: no; and 2 more$/;
  await assert.rejects(conforming(schema, {}), five);
  const later = {
    '~standard': { version: 1, vendor: 'test', validate: async () => ({ value: 2 }) },
  } as const;
  assert.equal(await conforming(later, 1), 2);
});

/** Answers each request as the function says; what a poll is given makes the worker busy. */
function conversation(
  answer: (asked: ExchangeTasks) => void,
  onAway: (sentAt: number) => void = () => undefined,
) {
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
      ...{ onTasks: nothing, onPoll: nothing, onReport: nothing, onAnswer: nothing, onAway },
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
  assert.deepEqual(column(outcomes, 'status'), [200, 400, 200]);
});

test('a stream that only ever ends is given up after as many tries as were asked for', async () => {
  let opened = 0;
  const open: OpenEvents = (_, { onOpen }) => {
    opened += 1;
    onOpen?.();
    return eventsOf(new Response('').body as ReadableStream<Uint8Array>);
  };
  await assert.rejects(followChanges(open, { retries: 2 }).next(), { code: 'CLIENT_NETWORK' });
  assert.equal(opened, 3);
});
