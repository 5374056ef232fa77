/** The parts of the client's worker without a server: batches, conversations, failures. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventsOf } from '../../../client/src/client/events.js';
import { followChanges, type OpenEvents } from '../../../client/src/client/follow.js';
import { after } from '../../../client/src/client/time.js';
import type { ExchangeTasks, WorkerTask } from '../../../client/src/index.js';
import { EngineError, FatalError, RetryableError } from '../../../client/src/index.js';
import { Claim } from '../../../client/src/worker/claim.js';
import { Exchanges, type SendExchange } from '../../../client/src/worker/exchanges.js';
import { failureOf } from '../../../client/src/worker/failure.js';
import { Lines } from '../../../client/src/worker/lines.js';
import { Outbox, type Outcome, type Report, reportOf } from '../../../client/src/worker/outbox.js';
import { conforming } from '../../../client/src/worker/schemas.js';
import { column } from '../../helpers/columns.js';

describe('reports that wait', () => {
  const report = (text: string) => reportOf(text).report;
  const letters = (reports: readonly Report[]) => reports.map(({ text }) => text[0]).join('');
  const MAX = 2_000_000;

  test('a request takes a thousand of them at most, in their order', () => {
    const outbox = new Outbox();
    for (let n = 0; n < 1_500; n += 1) outbox.add(report(String(n)));
    const taken = outbox.take(MAX);
    assert.deepEqual([taken.length, taken[0]?.text, outbox.isEmpty], [1_000, '0', false]);
    assert.deepEqual([outbox.take(MAX).length, outbox.isEmpty], [500, true]);
    assert.equal(outbox.take(MAX).length, 0);
  });

  test('a large one goes alone, and what was not received goes first', () => {
    const outbox = new Outbox();
    const texts = ['a', 'b'.repeat(1_999_997), 'c', 'd'.repeat(3_000_000), 'e'];
    for (const text of texts) outbox.add(report(text));
    const batch = outbox.take(MAX);
    assert.deepEqual([letters(batch), letters(outbox.take(MAX))], ['ab', 'c']);
    outbox.putBack(batch);
    assert.deepEqual([letters(outbox.take(MAX)), letters(outbox.take(MAX))], ['ab', 'd']);
  });

  test('those of a request that failed go apart, the smallest first, and faster while they succeed', () => {
    const outbox = new Outbox();
    const reports = ['ddddd', 'c', 'bb', 'a', 'eeeeee', 'fffffff'].map(report);
    outbox.setAside(reports, false);
    const sent = [];
    while (outbox.hasAside(false)) {
      const taken = outbox.takeAside(MAX);
      const isBad = taken.some(({ text }) => text[0] === 'd');
      sent.push(letters(taken));
      if (isBad && taken.length === 1) break;
      if (isBad) outbox.setAside(taken, false);
      else outbox.received();
    }
    assert.deepEqual(sent, ['c', 'ab', 'def', 'd']);
  });

  test('one that failed alone holds none of the others back, and goes alone again', () => {
    const outbox = new Outbox();
    const [bad, good, better] = ['x', 'yy', 'zzz'].map(report) as [Report, Report, Report];
    outbox.setAside([bad], true);
    assert.equal(outbox.hasAside(true), false);
    outbox.setAside([good, better], false);
    for (let n = 0; n < 3; n += 1) outbox.received();
    assert.deepEqual(letters(outbox.takeAside(MAX)), 'yz');
    assert.deepEqual(letters(outbox.takeAside(MAX)), 'x');
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
  const claim = new Claim(task, 0, { resultBytesMax: 1e6, say: refuse }, () => undefined);
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
  while (away.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const task = { id: 't', claim_epoch: 1, checkpoint_seq: 0 } as WorkerTask;
  const nothing = () => undefined;
  const claim = new Claim(task, 0, { resultBytesMax: 1e6, say: nothing }, nothing);
  claim.vouch(5);
  void claim.beat(14, 1_000, 10);
  assert.equal(claim.aborted, undefined);
  void claim.beat(15, 1_000, 10);
  assert.equal(claim.aborted, 'silent');
});

test('an error is retryable unless it says that it is not', () => {
  const failure = { retryable: true, retryAfterMs: 0, lines: [] };
  assert.deepEqual(failureOf(new Error('no')), { ...failure, message: 'no' });
  assert.deepEqual(failureOf(new RangeError()), { ...failure, message: 'RangeError' });
  const fatal = { ...failure, message: 'no', retryable: false };
  assert.deepEqual(failureOf(new FatalError('no')), fatal);
  const later = new RetryableError('later', { retryAfterMs: 50, details: { n: 1 } });
  const told = { message: 'later', retryAfterMs: 50, lines: ['{"n":1}'] };
  assert.deepEqual(failureOf(later), { ...failure, ...told });
  class Declined extends Error {
    readonly retryable = false;
  }
  assert.equal(failureOf(new Declined('no')).retryable, false);
});

test('a wait is as long as it says, or is refused', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const day = 86_400_000;
  let rings = 0;
  after(30 * day, () => {
    rings += 1;
  });
  const forget = after(Number.POSITIVE_INFINITY, () => assert.fail('for ever is over'));
  const pass = (hours: number) => {
    for (let n = 0; n < hours; n += 1) t.mock.timers.tick(day / 24);
  };
  pass(29 * 24);
  assert.equal(rings, 0);
  pass(25);
  assert.equal(rings, 1);
  forget();
  const until = (retryAfterMs: unknown) => new RetryableError('no', { retryAfterMs } as object);
  assert.equal(until(new Date(Date.now() + day)).retryAfterMs, day);
  assert.equal(until(Number.POSITIVE_INFINITY).retryAfterMs, Number.POSITIVE_INFINITY);
  for (const odd of ['5', Number.NaN, {}, new Date('never')]) {
    assert.throws(() => until(odd), /^TypeError: retryAfterMs must be milliseconds or a Date/);
    const { retryAfterMs, lines } = failureOf(
      Object.assign(new Error('no'), { retryAfterMs: odd }),
    );
    assert.equal(retryAfterMs, 0);
    assert.match(lines.join(), /^retryAfterMs is not a valid time/);
  }
});

test('of many lines the last are kept, and it is said that there were more', () => {
  const lines = new Lines();
  const messages = (bytesMax: number) =>
    column(JSON.parse(lines.json(bytesMax)) as { message: string }[], 'message');
  assert.equal(lines.json(1e6), '');
  for (let n = 0; n < 999; n += 1) lines.log.info(`${n}`);
  assert.equal(messages(1e6).length, 999);
  lines.log.info('999');
  assert.equal(messages(1e6).length, 1_000);
  assert.deepEqual(messages(1e6).slice(0, 2), ['1 earlier lines were dropped', '1']);
  assert.deepEqual(messages(300), ['998 earlier lines were dropped', '998', '999']);
  assert.deepEqual(messages(128), ['1000 earlier lines were dropped']);
  assert.equal(lines.json(127), '');
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
  const result = { kind: 'complete', task_id, claim_epoch: 1, output: {} };
  const { report, outcome } = reportOf(JSON.stringify(result));
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
