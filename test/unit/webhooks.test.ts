/**
 * The sender of one shard in virtual time: whose turn it is, how long it waits, what it keeps
 * in memory, and what becomes of outcomes that could not be recorded.
 */

import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { WINDOW_MAX } from '../../actors/webhook/memory.js';
import { ATTEMPTS_AT_ONCE_MAX } from '../../actors/webhook/webhooks.js';
import { busy, TAKEN, WebhookWorld } from '../helpers/webhook-world.js';

const A = 'http://a.example/';
const B = 'http://b.example/';
const PARKED = { status: 'parked', next_attempt_at: null, attempts: 4 } as const;

let world: WebhookWorld;
beforeEach(() => {
  world = new WebhookWorld({ urls: [A] });
});

/** The sender has started, and an instance has ended: its webhook is under way. */
async function begun() {
  await world.restart();
  return world.end(A);
}

const bodiesSent = () => world.sent.map(({ body }) => body);
const attempts = () => world.log.map(({ number }) => number);
/** The number of webhooks that are stored, under way, and in the log. */
const counted = () => [world.outbox.size, world.sent.length, world.log.length];
const replies = () => Object.fromEntries(world.replies);

describe('a webhook to a subscription', () => {
  const SUBSCRIPTION = {
    id: '00000000-0000-7000-8000-00000000aaaa',
    tenant_id: 'tenant',
    url: A,
    events: ['instance.completed'],
    secret: { plain: 'its own' },
    created_at: '',
    updated_at: '',
  } as const;
  const TO_IT = { subscription_id: SUBSCRIPTION.id };

  beforeEach(() => world.subscriptions.set(SUBSCRIPTION.id, SUBSCRIPTION));

  test('is signed with its secret', async () => {
    world.store(A, TO_IT);
    world.store(A);
    await world.restart();
    assert.deepEqual(world.sent.map(({ secret }) => secret).sort(), ['its own', undefined]);
  });

  test('that is gone is given up: what is under way, what waits, and what is read later', async () => {
    await world.restart();
    world.store(A, TO_IT);
    world.sender.rescan();
    await world.quiet();
    const [sent] = world.sent;
    world.store(B, { ...TO_IT, next_attempt_at: '2999-01-01T00:00:00.000Z' });
    world.sender.rescan();
    await world.quiet();
    world.subscriptions.clear();
    world.sender.giveUp(new Set([SUBSCRIPTION.id]));
    await world.quiet();
    assert.equal(sent?.signal.aborted, true);
    assert.deepEqual([world.outbox.size, world.log], [0, []]);
    world.store(B, TO_IT);
    await world.restart();
    assert.deepEqual([world.outbox.size, world.sent.length], [0, 0]);
  });

  test('whose secret no key opens is parked, and says so', async () => {
    const sealed = { ...SUBSCRIPTION, secret: { sealed: 'AAAA' } };
    world.subscriptions.set(SUBSCRIPTION.id, sealed);
    const { id } = world.store(A, TO_IT);
    await world.restart();
    assert.equal(world.sent.length, 0);
    const { status, last_error } = world.outbox.get(id)!;
    assert.equal(status, 'parked');
    assert.match(last_error ?? '', /signature_configuration: .*ENGINE_ENCRYPTION_KEY/);
  });
});

describe('an address that nothing is configured for', () => {
  test('is forgotten when nothing waits for it, and found again with its next webhook', async () => {
    await world.restart();
    for (const url of [B, B]) {
      world.end(url);
      await world.quiet();
      assert.equal(world.sent.at(-1)?.url, B);
      await world.answer(TAKEN);
    }
    assert.equal(world.outbox.size, 0);
  });

  test('is found at the start among more than one page of them', async () => {
    for (let number = 0; number < 1_200; number += 1) world.store(`http://h${number}.example/`);
    await world.restart();
    const seen = new Set<string>();
    for (let round = 0; round < 100 && world.outbox.size > 0; round += 1) {
      for (const { url } of world.sent) seen.add(url);
      await world.answer(TAKEN);
    }
    assert.deepEqual([seen.size, world.outbox.size], [1_200, 0]);
  });
});

describe('the course of a webhook', () => {
  test('it is sent when it is there, and gone once it was taken', async () => {
    const { id } = await begun();
    assert.deepEqual([world.sent[0]?.url, ...bodiesSent()], [A, `"${id}"`]);
    assert.equal(world.outbox.get(id)?.status, 'in_flight');
    await world.answer(TAKEN);
    assert.equal(world.outbox.size, 0);
    assert.deepEqual(world.log, [{ webhook: id, number: 1, success: true }]);
  });

  test('it waits 500 ms, one second and two between its attempts, then it is parked', async () => {
    const { id } = await begun();
    for (const waitMs of [500, 1_000, 2_000]) {
      await world.answer(busy());
      assert.equal(world.outbox.get(id)?.status, 'pending');
      await world.pass(waitMs - 1);
      assert.equal(world.sent.length, 0, `before ${waitMs} ms`);
      await world.pass(1);
      assert.equal(world.sent.length, 1, `after ${waitMs} ms`);
    }
    await world.answer(busy());
    const { status, attempts, next_attempt_at } = world.outbox.get(id)!;
    assert.deepEqual([status, attempts, next_attempt_at], ['parked', 4, null]);
    await world.pass(3_600_000);
    await world.restart();
    assert.equal(world.sent.length, 0);
  });

  test('what an earlier process left is taken up, also of addresses that are not configured any more', async () => {
    world.store(A, { status: 'in_flight' });
    world.store(B);
    world.store(B, { status: 'parked', next_attempt_at: null });
    await world.restart();
    assert.deepEqual(world.sent.map(({ url }) => url).sort(), [A, B]);
    await world.answer(TAKEN);
    assert.equal(world.outbox.size, 1);
  });

  test('a wait that began before a restart goes on', async () => {
    await begun();
    await world.answer(busy());
    await world.pass(100);
    await world.restart();
    assert.equal(world.sent.length, 0);
    await world.pass(400);
    assert.equal(world.sent.length, 1);
    await world.answer(TAKEN);
    assert.deepEqual(attempts(), [1, 2]);
  });
});

/** One tenant leaves a quarter to the others. */
const OF_TENANT_MAX = (ATTEMPTS_AT_ONCE_MAX * 3) / 4;

describe('many webhooks', () => {
  test('of one tenant leave places to others, who take turns with it', async () => {
    const tenantOf = new Map<string, string>();
    const store = (tenant_id: string, count: number) => {
      for (let i = 0; i < count; i++)
        tenantOf.set(`"${world.store(A, { tenant_id }).id}"`, tenant_id);
    };
    const under = (tenant: string) =>
      world.sent.filter(({ body }) => tenantOf.get(body) === tenant).length;
    store('flood', 200);
    store('quiet', 30);
    await world.restart();
    const others = ATTEMPTS_AT_ONCE_MAX - 30;
    assert.deepEqual([under('flood'), under('quiet')], [others, 30]);
    store('third', 2);
    world.sender.rescan();
    await world.quiet();
    for (const sent of world.sent.splice(0, 4)) sent.answer(TAKEN);
    await world.quiet();
    assert.equal(under('third'), 2);
  });

  test('no more are under way than there may be, and one that is answered makes room', async () => {
    for (let i = 0; i < 200; i++) world.store(A);
    await world.restart();
    assert.equal(world.sent.length, OF_TENANT_MAX);
    const [first] = world.sent.splice(0, 1);
    first!.answer(TAKEN);
    await world.quiet();
    assert.equal(world.sent.length, OF_TENANT_MAX);
    while (world.sent.length > 0) await world.answer(TAKEN);
    assert.deepEqual(counted(), [0, 0, 200]);
  });

  test('an address that does not answer takes its share, and no more', async () => {
    world = new WebhookWorld({ urls: [A, B] });
    for (let i = 0; i < 1_000; i++) world.store(A);
    await world.restart();
    assert.equal(world.sent.length, ATTEMPTS_AT_ONCE_MAX / 2);
    for (let i = 0; i < 100; i++) {
      await world.end(B);
      await world.answer(TAKEN, B);
    }
    assert.ok(![...world.outbox.values()].some(({ url }) => url === B));
  });

  test('only a window of a long outbox is in memory, and all of it is sent, each once', async () => {
    const rows = 5_000;
    for (let i = 0; i < rows; i++) world.store(A);
    await world.restart();
    assert.ok(world.rowsRead <= WINDOW_MAX, `${world.rowsRead} were read at once`);
    let added = 0;
    while (world.sent.length > 0) {
      // More come while the old ones are sent.
      if (added < 100) {
        added += 1;
        await world.end(A);
      }
      await world.answer(TAKEN);
    }
    assert.equal(world.outbox.size, 0);
    assert.equal(new Set(world.log.map(({ webhook }) => webhook)).size, rows + added);
    assert.equal(world.log.length, rows + added);
    assert.ok(world.rowsRead < 3 * rows, `${world.rowsRead} rows were read`);
  });

  test('what comes while a window is full is found later', async () => {
    await world.restart();
    const rows = 2 * WINDOW_MAX;
    for (let i = 0; i < rows; i++) world.sender.added(world.store(A));
    await world.quiet();
    while (world.sent.length > 0) await world.answer(TAKEN);
    assert.deepEqual(counted(), [0, 0, rows]);
  });

  test('a window full of waits does not keep others from being found afterwards', async () => {
    for (let i = 0; i < 2 * WINDOW_MAX; i++) world.store(A);
    await world.restart();
    // The first attempt of each fails.
    const tried = new Set<string>();
    for (let i = 0; i < 200; i++) {
      for (const sent of world.sent.splice(0)) {
        sent.answer(tried.has(sent.body) ? TAKEN : busy());
        tried.add(sent.body);
      }
      await world.quiet();
      await world.pass(100);
    }
    assert.equal(world.outbox.size, 0);
  });
});

describe('outcomes that are hard to record', () => {
  test('nothing more is sent than there are places while nothing can be committed', async () => {
    for (let i = 0; i < 200; i++) world.store(A);
    await world.restart();
    world.fate = 'hold';
    await world.answer(TAKEN);
    await world.pass(60_000);
    assert.equal(world.sent.length, 0);
    await world.settle();
    assert.equal(world.outbox.size, 200 - OF_TENANT_MAX);
    assert.equal(world.sent.length, OF_TENANT_MAX);
  });

  test('lost with the writer but committed: it is not sent again', async () => {
    await begun();
    world.fate = 'hold';
    await world.answer(TAKEN);
    await world.loseWriter(true);
    await world.findWriter();
    assert.deepEqual(counted(), [0, 0, 1]);
  });

  test('lost with the writer and not committed: it is sent again, once that is known', async () => {
    await begun();
    world.fate = 'hold';
    await world.answer(TAKEN);
    await world.loseWriter(false);
    await world.pass(10_000);
    assert.equal(world.sent.length, 0);
    await world.findWriter();
    assert.equal(world.sent.length, 1);
    await world.answer(TAKEN);
    assert.equal(world.outbox.size, 0);
  });

  test('what a dead writer committed without telling is found', async () => {
    await world.restart();
    await world.loseWriter(false);
    world.store(A);
    await world.findWriter();
    assert.equal(world.sent.length, 1);
  });

  test('refused by the database: it is recorded again, not sent again', async () => {
    await begun();
    world.fate = 'refuse';
    await world.answer(TAKEN);
    assert.deepEqual([world.outbox.size, world.log.length], [1, 0]);
    world.fate = 'commit';
    await world.pass(1_000);
    assert.deepEqual(counted(), [0, 0, 1]);
  });

  test('refused again and again: it is let be until the next start', async () => {
    await begun();
    world.fate = 'refuse';
    await world.answer(TAKEN);
    for (let i = 0; i < 20; i++) await world.pass(10_000);
    world.fate = 'commit';
    await world.pass(60_000);
    assert.deepEqual([world.outbox.size, world.sent.length], [1, 0]);
    await world.restart();
    await world.answer(TAKEN);
    assert.equal(world.outbox.size, 0);
  });

  test('more than a window refused for good: what is behind them is sent, and they are not sent again', async () => {
    const rows = WINDOW_MAX + 100;
    for (let i = 0; i < rows; i++) world.store(A);
    await world.restart();
    world.fate = 'refuse';
    const tried: string[] = [];
    for (let i = 0; i < 200; i++) {
      tried.push(...world.sent.map(({ body }) => body));
      await world.answer(TAKEN);
      await world.pass(10_000);
    }
    assert.deepEqual([tried.length, new Set(tried).size], [rows, rows]);
    world.fate = 'commit';
    world.sender.rescan();
    const { id } = await world.end(A);
    assert.deepEqual(bodiesSent(), [`"${id}"`]);
  });
});

describe('answers that are older than what happened meanwhile', () => {
  test('a page that still has a delivered webhook does not bring it back', async () => {
    await begun();
    world.areReadsHeld = true;
    world.sender.rescan();
    await world.quiet();
    await world.answer(TAKEN);
    await world.answerReads();
    assert.deepEqual(counted(), [0, 0, 1]);
  });

  test('what ends while a page is read is found by the next one', async () => {
    world.areReadsHeld = true;
    await begun();
    assert.equal(world.sent.length, 0);
    await world.answerReads();
    assert.equal(world.sent.length, 1);
  });

  test('a redelivery of what was delivered meanwhile finds nothing', async () => {
    await world.restart();
    const { id } = world.store(A, PARKED);
    world.areReadsHeld = true;
    world.sender.redeliver(id, 1);
    world.sender.redeliver(id, 2);
    await world.quiet();
    await world.answerReads();
    await world.answer(TAKEN);
    world.sender.redeliver(id, 3);
    await world.quiet();
    assert.deepEqual(replies(), { 1: 200, 2: 'ENG_CONFLICT', 3: 'ENG_NOT_FOUND' });
  });
});

describe('by hand', () => {
  test('a parked one is sent once: taken, or parked again', async () => {
    const taken = world.store(A, PARKED);
    const refused = world.store(B, { ...PARKED, attempts: 1 });
    await world.restart();
    world.sender.redeliver(taken.id, 1);
    world.sender.redeliver(refused.id, 2);
    await world.quiet();
    await world.answer(TAKEN, A);
    await world.answer(busy(), B);
    assert.deepEqual(replies(), { 1: 200, 2: 'ENG_DELIVERY_FAILED' });
    const left = [...world.outbox.values()].map(({ status, attempts: made }) => [status, made]);
    assert.deepEqual(left, [['parked', 2]]);
    assert.deepEqual(attempts(), [1, 1]);
    await world.pass(60_000);
    assert.equal(world.sent.length, 0);
  });

  test('it is refused while one is in flight, and for one that is not there', async () => {
    const { id } = await begun();
    world.sender.redeliver(id, 1);
    world.sender.redeliver('00000000-0000-7000-8000-0000000000ff', 2);
    world.sender.discard('00000000-0000-7000-8000-0000000000ff', 3);
    await world.quiet();
    assert.deepEqual(replies(), { 1: 'ENG_CONFLICT', 2: 'ENG_NOT_FOUND', 3: 'ENG_NOT_FOUND' });
    assert.equal(world.sent.length, 1);
  });

  test('two at once: the second is refused', async () => {
    const { id } = world.store(A, PARKED);
    await world.restart();
    world.sender.redeliver(id, 1);
    world.sender.redeliver(id, 2);
    await world.quiet();
    assert.equal(world.sent.length, 1);
    await world.answer(TAKEN);
    assert.deepEqual(replies(), { 1: 200, 2: 'ENG_CONFLICT' });
  });

  test('a discarded one is aborted, and what its receiver says interests nobody', async () => {
    const { id } = await begun();
    world.sender.discard(id, 1);
    await world.quiet();
    assert.equal(world.sent[0]?.signal.aborted, true);
    assert.equal(world.replies.get(1), 204);
    await world.answer(TAKEN);
    assert.deepEqual([world.outbox.size, world.log.length], [0, 0]);
  });

  test('one that waits can be discarded, and does not come back', async () => {
    const { id } = await begun();
    await world.answer(busy());
    world.sender.discard(id, 1);
    await world.quiet();
    await world.pass(60_000);
    assert.deepEqual([world.outbox.size, world.sent.length, world.replies.get(1)], [0, 0, 204]);
  });
});

describe('the end of the process', () => {
  test('attempts are aborted, count as not made, and are made by the next one', async () => {
    const { id } = await begun();
    world.sender.drain();
    await world.quiet();
    assert.equal(world.sent[0]?.signal.aborted, true);
    const { status, attempts: made } = world.outbox.get(id)!;
    assert.deepEqual([status, made], ['pending', 0]);
    await world.end(A);
    assert.equal(world.sent.length, 1, 'nothing new is begun');
    await world.answer({ delivered: false, errorClass: 'aborted', status: undefined, excerpt: '' });
    assert.deepEqual([world.outbox.get(id)?.attempts, world.log.length], [0, 0]);
    await world.restart();
    assert.equal(world.sent.length, 2);
    await world.answer(TAKEN);
    assert.deepEqual(attempts(), [1, 1]);
  });

  test('who waits for a redelivery is told that the engine stops', async () => {
    const { id } = world.store(A, PARKED);
    await world.restart();
    world.sender.redeliver(id, 1);
    await world.quiet();
    world.sender.drain();
    world.sender.redeliver(id, 2);
    await world.quiet();
    assert.deepEqual(replies(), { 1: 'ENG_STOPPING', 2: 'ENG_STOPPING' });
    assert.equal(world.outbox.get(id)?.status, 'parked');
  });
});
