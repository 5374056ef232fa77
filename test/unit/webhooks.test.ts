/**
 * Webhooks: the sender of one shard in virtual time, single attempts on loopback, and signatures.
 *
 * Cost: 2 s, since it loads the engine's modules and sends outboxes of thousands.
 */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { beforeEach, describe, type TestContext, test } from 'node:test';
import { signatureOf, signatureProblem } from '../../actors/trigger/core/trigger-signature.js';
import { WINDOW_MAX } from '../../actors/webhook/memory.js';
import { ATTEMPTS_AT_ONCE_MAX } from '../../actors/webhook/webhooks.js';
import type { AttemptOutcome, DeliveryErrorClass } from '../../src/core/webhook.js';
import { nextWaitMs, webhookSignature } from '../../src/core/webhook.js';
import { isPublicAddress } from '../../src/handlers/address-guard.js';
import { type HttpOptions, openHttp } from '../../src/handlers/http-transport.js';
import { createWebhookSender } from '../../src/handlers/webhook-sender.js';
import { cut, listen, manualTimers } from '../helpers/http-handler.js';
import { portOf } from '../helpers/loopback.js';
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

/** Many are stored, and the sender has started. */
async function startedWith(count: number): Promise<void> {
  for (let i = 0; i < count; i++) world.store(A);
  await world.restart();
}

/** The webhook that is under way is taken, and that cannot be recorded: it meets this fate. */
async function takenBut(fate: typeof world.fate): Promise<{ readonly id: string }> {
  const webhook = await begun();
  world.fate = fate;
  await world.answer(TAKEN);
  return webhook;
}

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
    world.store(A, TO_IT);
    world.store(B, { ...TO_IT, next_attempt_at: '2999-01-01T00:00:00.000Z' });
    await world.restart();
    const [sent] = world.sent;
    world.subscriptions.clear();
    world.sender.giveUp(new Set([SUBSCRIPTION.id]));
    await world.quiet();
    assert.equal(sent?.signal.aborted, true);
    assert.deepEqual([world.outbox.size, world.log], [0, []]);
    world.store(B, TO_IT);
    await world.restart();
    assert.equal(world.outbox.size, 0);
  });

  test('whose secret no key opens is parked, and says so', async () => {
    world.subscriptions.set(SUBSCRIPTION.id, { ...SUBSCRIPTION, secret: { sealed: 'AAAA' } });
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

  test('what an earlier process left is taken up, also of other addresses, and waits go on', async () => {
    world.store(A, { status: 'in_flight' });
    world.store(B);
    world.store(B, { status: 'parked', next_attempt_at: null });
    await world.restart();
    assert.deepEqual(world.sent.map(({ url }) => url).sort(), [A, B]);
    await world.answer(busy(), A);
    await world.answer(TAKEN, B);
    await world.pass(100);
    await world.restart();
    assert.equal(world.sent.length, 0);
    await world.pass(400);
    await world.answer(TAKEN);
    assert.deepEqual([attempts(), world.outbox.size], [[1, 1, 2], 1]);
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
    assert.deepEqual([under('flood'), under('quiet')], [ATTEMPTS_AT_ONCE_MAX - 30, 30]);
    store('third', 2);
    world.sender.writerReady();
    await world.quiet();
    for (const sent of world.sent.splice(0, 4)) sent.answer(TAKEN);
    await world.quiet();
    assert.equal(under('third'), 2);
  });

  test('an address that does not answer takes its share, and no more', async () => {
    world = new WebhookWorld({ urls: [A, B] });
    await startedWith(1_000);
    assert.equal(world.sent.length, ATTEMPTS_AT_ONCE_MAX / 2);
    for (let i = 0; i < 100; i++) {
      await world.end(B);
      await world.answer(TAKEN, B);
    }
    assert.ok(![...world.outbox.values()].some(({ url }) => url === B));
  });

  test('only a window of a long outbox is in memory, and all of it is sent, each once', async () => {
    const rows = 5_000;
    await startedWith(rows);
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

  test('what comes while a window is full is found later, also when it is full of waits', async () => {
    await world.restart();
    const rows = 2 * WINDOW_MAX;
    for (let i = 0; i < rows; i++)
      world.sender.effects.webhook({ kind: 'webhook', row: world.store(A) });
    await world.quiet();
    const tried = new Set<string>();
    for (let i = 0; i < 200; i++) {
      for (const sent of world.sent.splice(0)) {
        sent.answer(tried.has(sent.body) ? TAKEN : busy());
        tried.add(sent.body);
      }
      await world.quiet();
      await world.pass(100);
    }
    assert.deepEqual([world.outbox.size, world.log.length], [0, 2 * rows]);
  });
});

describe('outcomes that are hard to record', () => {
  test('nothing more is sent than there are places while nothing can be committed', async () => {
    await startedWith(200);
    world.fate = 'hold';
    await world.answer(TAKEN);
    await world.pass(60_000);
    assert.equal(world.sent.length, 0);
    await world.settle();
    assert.equal(world.outbox.size, 200 - OF_TENANT_MAX);
    assert.equal(world.sent.length, OF_TENANT_MAX);
  });

  test('lost with the writer but committed: it is not sent again', async () => {
    await takenBut('hold');
    await world.loseWriter(true);
    await world.findWriter();
    assert.deepEqual(counted(), [0, 0, 1]);
  });

  test('lost with the writer and not committed: it is sent again, once that is known', async () => {
    await takenBut('hold');
    await world.loseWriter(false);
    await world.pass(10_000);
    assert.equal(world.sent.length, 0);
    // Which a dead writer committed without telling.
    world.store(A);
    await world.findWriter();
    assert.equal(world.sent.length, 2);
    await world.answer(TAKEN);
    assert.equal(world.outbox.size, 0);
  });

  test('refused by the database: it is recorded again, not sent again', async () => {
    await takenBut('refuse');
    assert.deepEqual([world.outbox.size, world.log.length], [1, 0]);
    world.fate = 'commit';
    await world.pass(1_000);
    assert.deepEqual(counted(), [0, 0, 1]);
  });

  test('more than a window refused for good: what is behind them is sent, and they are not sent again', async () => {
    const rows = WINDOW_MAX + 100;
    await startedWith(rows);
    world.fate = 'refuse';
    const tried: string[] = [];
    for (let i = 0; i < 200; i++) {
      tried.push(...world.sent.map(({ body }) => body));
      await world.answer(TAKEN);
      await world.pass(10_000);
    }
    assert.deepEqual([tried.length, new Set(tried).size], [rows, rows]);
    world.fate = 'commit';
    world.sender.writerReady();
    const { id } = await world.end(A);
    assert.deepEqual(bodiesSent(), [`"${id}"`]);
    // What was refused is let be until the next start.
    await world.restart();
    assert.ok(world.sent.length > 1);
  });
});

describe('answers that are older than what happened meanwhile', () => {
  test('a page that still has a delivered webhook does not bring it back', async () => {
    await begun();
    world.areReadsHeld = true;
    world.sender.writerReady();
    await world.quiet();
    await world.answer(TAKEN);
    await world.answerReads();
    assert.deepEqual(counted(), [0, 0, 1]);
  });

  test('the effect of a creation does not bring back what was read and delivered before it', async () => {
    const row = world.store(A);
    await world.restart();
    await world.answer(TAKEN);
    world.sender.effects.webhook({ kind: 'webhook', row });
    await world.quiet();
    assert.deepEqual(counted(), [0, 0, 1]);
  });

  test('a redelivery of what was delivered meanwhile finds nothing', async () => {
    await world.restart();
    const { id } = world.store(A, PARKED);
    world.areReadsHeld = true;
    for (const request of [1, 2]) world.sender.redeliver(id, request);
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

  test('one that is under way, or waits, can be discarded, and does not come back', async () => {
    const first = await begun();
    world.sender.discard(first.id, 1);
    await world.quiet();
    assert.equal(world.sent[0]?.signal.aborted, true);
    await world.answer(TAKEN);
    const second = await world.end(A);
    await world.answer(busy());
    world.sender.discard(second.id, 2);
    await world.quiet();
    await world.pass(60_000);
    assert.deepEqual([world.outbox.size, world.sent.length, replies()], [0, 0, { 1: 204, 2: 204 }]);
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

type Failure = Extract<AttemptOutcome, { delivered: false }>;

const failure = (errorClass: DeliveryErrorClass, status?: number): Failure => {
  return { delivered: false, errorClass, status, excerpt: '' };
};
const answer = (status: number) => failure('http_status', status);

test('the signature is the HMAC-SHA256 over timestamp, dot and body in hexadecimal digits', () => {
  // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
  const seen = webhookSignature('secret', 1_700_000_000, '{"a":1}');
  assert.equal(seen, 'sha256=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686');
});

test('408, 429, 5xx and errors on the way are tried again, everything else is final', () => {
  const ofAddress = ['dns', 'connect', 'tls', 'timeout', 'response_too_large', 'other'] as const;
  const settled = ['internal_policy', 'redirect_rejected', 'serialization'] as const;
  const retried = [408, 429, 500, 502, 503, 504, 599].map(answer);
  const final = [400, 401, 403, 404, 405, 409, 410, 413, 422, 431, 451, 499].map(answer);
  for (const outcome of [...retried, ...ofAddress.map((one) => failure(one))]) {
    assert.notEqual(nextWaitMs(1, outcome), null, JSON.stringify(outcome));
  }
  for (const outcome of [...final, ...settled.map((one) => failure(one))]) {
    assert.equal(nextWaitMs(1, outcome), null, JSON.stringify(outcome));
  }
  assert.equal(nextWaitMs(1, failure('signature_configuration')), null);
});

const BODY = '{"event_type":"instance.completed","data":{"ä":"\\u0000"}}';
const SECRET = 'a secret';
const NOW_MS = 1_700_000_000_999;

/** Stands for the public internet; other servers listen on other addresses of loopback. */
const PUBLIC_HOST = '127.0.0.2';
const isAllowed = (address: string) => address === PUBLIC_HOST || isPublicAddress(address);

type Arrival = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { readonly body: string };

/** Answers with the statuses in turn, the last one again and again, and keeps what arrived. */
async function listenReceiver(t: TestContext, respond?: RequestListener, host = PUBLIC_HOST) {
  const arrivals: Arrival[] = [];
  const onRequest: RequestListener = async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { method, url, headers } = request;
    arrivals.push({ method, url, headers, body });
    if (respond === undefined) response.end('thanks');
    else respond(request, response);
  };
  return { ...(await listen(t, onRequest, host)), arrivals };
}

/** Answers with the status that the path names. */
const asAsked =
  (text = ''): RequestListener =>
  (request, response) => {
    response.writeHead(Number(request.url?.slice(1))).end(text);
  };

function openSender(t: TestContext, options: Partial<HttpOptions> = {}, secret?: string) {
  const http = openHttp({ isAllowed, ...options });
  t.after(() => http.close());
  const sender = createWebhookSender({ http, secret, now: () => NOW_MS });
  return (url: string, signal = new AbortController().signal) =>
    sender.send({ url, body: BODY }, signal);
}

function failureOf(outcome: AttemptOutcome): [errorClass: string, status: number | undefined] {
  assert.ok(!outcome.delivered);
  return [outcome.errorClass, outcome.status];
}

test('an attempt that comes after the pool was closed, or is withdrawn, is given up', async (t) => {
  const http = openHttp({ isAllowed });
  await http.close();
  const sender = createWebhookSender({ http, secret: undefined, now: () => NOW_MS });
  const request = { url: `http://${PUBLIC_HOST}:1/`, body: BODY };
  const controller = new AbortController();
  const late = await sender.send(request, controller.signal);
  assert.deepEqual(failureOf(late), ['aborted', undefined]);
  const receiver = await listenReceiver(t, () => controller.abort());
  const withdrawn = await openSender(t)(receiver.origin, controller.signal);
  assert.deepEqual(failureOf(withdrawn), ['aborted', undefined]);
});

test('a POST of the very body arrives, signed over its time, and any status below 400 is success', async (t) => {
  const receiver = await listenReceiver(t, asAsked());
  const send = openSender(t, {}, SECRET);
  for (const status of [200, 201, 202, 204, 299, 300, 304, 399]) {
    assert.deepEqual(await send(`${receiver.origin}/${status}`), { delivered: true, status });
  }
  const [{ method, body, headers }] = receiver.arrivals as [Arrival];
  assert.deepEqual([method, body], ['POST', BODY]);
  assert.equal(headers['content-type'], 'application/json');
  assert.equal(headers['x-engine-timestamp'], '1700000000');
  assert.equal(headers['x-engine-signature'], webhookSignature(SECRET, 1_700_000_000, BODY));
  await openSender(t)(`${receiver.origin}/200`);
  const unsigned = Object.keys(receiver.arrivals.at(-1)!.headers);
  assert.ok(!unsigned.some((name) => name.startsWith('x-engine')), 'not without a secret');
});

test('a status from 400 on is a failure, with the beginning of the answer', async (t) => {
  const receiver = await listenReceiver(t, asAsked('  we are closed\n'));
  const send = openSender(t);
  for (const status of [400, 404, 408, 429, 500, 503]) {
    const outcome = await send(`${receiver.origin}/${status}`);
    const excerpt = `status ${status}: we are closed`;
    assert.deepEqual(outcome, { delivered: false, errorClass: 'http_status', status, excerpt });
  }
});

test('an excerpt has at most 512 characters that the database can store, of an endless answer too', async (t) => {
  const chunk = `${'x'.repeat(498)}\0😀`.padEnd(64 * 1024, 'y');
  const receiver = await listenReceiver(t, (_request, response) => {
    response.writeHead(500);
    const goOn = () => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', goOn);
    goOn();
  });
  const outcome = await openSender(t)(receiver.origin);
  assert.ok(!outcome.delivered);
  // 511: the 512th would be half of a character.
  assert.equal(outcome.excerpt, `status 500: ${'x'.repeat(498)}\ufffd`);
});

test('a success counts at once, however long its answer goes on', async (t) => {
  const receiver = await listenReceiver(t, (_request, response) => {
    response.writeHead(200).write('there is more to come');
  });
  const timers = manualTimers();
  const outcome = await openSender(t, { setTimer: timers.setTimer })(receiver.origin);
  assert.deepEqual(outcome, { delivered: true, status: 200 });
  assert.deepEqual(timers.pendingMs(), [10_000], 'the rest is read within the same time');
});

test('no answer within ten seconds is a time-out', async (t) => {
  const timers = manualTimers();
  const receiver = await listenReceiver(t, () => {
    assert.deepEqual(timers.pendingMs(), [10_000]);
    timers.fireAll();
  });
  const send = openSender(t, { setTimer: timers.setTimer });
  assert.deepEqual(failureOf(await send(receiver.origin)), ['timeout', undefined]);
});

test('a refused or cut connection, a name that does not exist and bad TLS have classes of their own', async (t) => {
  const cutting = await listenReceiver(t, (request) => cut(request.socket));
  const closed = await listen(t, () => undefined, PUBLIC_HOST);
  closed.server.close();
  const tls = createTlsServer({});
  const port = await portOf(tls, 0, PUBLIC_HOST);
  t.after(() => tls.close());
  const unknown = async () => {
    throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
  };
  const send = openSender(t, { resolve: unknown });
  const classes: Record<string, string> = {
    [cutting.origin]: 'connect',
    [closed.origin]: 'connect',
    'http://nowhere.example/': 'dns',
    [`https://${PUBLIC_HOST}:${port}/`]: 'tls',
  };
  for (const [url, expected] of Object.entries(classes)) {
    assert.deepEqual(failureOf(await send(url)), [expected, undefined], url);
  }
  const refused = await send(closed.origin);
  const excerpt = refused.delivered || refused.excerpt;
  assert.equal(excerpt, 'transport error ECONNREFUSED', 'codes, and never addresses');
});

test('redirects repeat the POST with its signature, but a 303 asks for a GET', async (t) => {
  const target = await listenReceiver(t);
  const receiver = await listenReceiver(t, (request, response) => {
    response.writeHead(Number(request.url?.slice(1)), { location: `${target.origin}/moved` }).end();
  });
  const send = openSender(t, {}, SECRET);
  for (const status of [301, 302, 303, 307, 308]) {
    assert.deepEqual(await send(`${receiver.origin}/${status}`), { delivered: true, status: 200 });
    const arrival = target.arrivals.at(-1);
    assert.equal(arrival?.method, status === 303 ? 'GET' : 'POST', String(status));
    assert.equal(arrival?.body, status === 303 ? '' : BODY);
    assert.equal(arrival?.headers['content-type'], status === 303 ? undefined : 'application/json');
    assert.match(String(arrival?.headers['x-engine-signature']), /^sha256=[0-9a-f]{64}$/);
  }
});

test('internal addresses are refused, at the first hop and at every other, and see no connection', async (t) => {
  const internal = await listenReceiver(t, undefined, '127.0.0.3');
  const resolve = async (hostname: string) => [
    { address: hostname === 'inside.example' ? '127.0.0.3' : PUBLIC_HOST, family: 4 },
  ];
  const named = `http://inside.example:${internal.port}/`;
  const receiver = await listenReceiver(t, (request, response) => {
    response.writeHead(307, { location: request.url === '/name' ? named : internal.origin }).end();
  });
  const send = openSender(t, { resolve });
  const classes: readonly (readonly [url: string, errorClass: string])[] = [
    [internal.origin, 'internal_policy'],
    [named, 'internal_policy'],
    ['http://localhost/', 'internal_policy'],
    ['http://[::1]/', 'internal_policy'],
    ['http://169.254.169.254/latest/meta-data', 'internal_policy'],
    [`${receiver.origin}/literal`, 'redirect_rejected'],
    [`${receiver.origin}/name`, 'redirect_rejected'],
  ];
  for (const [url, expected] of classes) {
    assert.deepEqual(failureOf(await send(url)), [expected, undefined], url);
  }
  assert.equal(internal.connects(), 0);
  assert.equal(receiver.arrivals.length, 2);
  const all = await openSender(t, { isAllowed: () => true })(internal.origin);
  assert.deepEqual(all, { delivered: true, status: 200 });
});

const NOW = Date.UTC(2026, 10, 22, 12);
const TRIGGER_SECRET = 'correct horse';
const TRIGGER_BODY = Buffer.from('{"amount":12}');
const NONCE = 'n'.repeat(16);
const at = (ms: number) => String(Math.floor((NOW + ms) / 1_000));

const signed = (body: Buffer, nonce = NONCE, secret = TRIGGER_SECRET) =>
  signatureOf(secret, at(0), nonce, body);

function problemOf(
  changes: Partial<Record<'timestamp' | 'nonce' | 'signature', string | undefined>> = {},
) {
  const given = { timestamp: at(0), nonce: NONCE, ...changes };
  const { timestamp = '', nonce = '' } = given;
  const signature =
    changes.signature ?? signatureOf(TRIGGER_SECRET, timestamp, nonce, TRIGGER_BODY);
  return signatureProblem({ ...given, signature }, TRIGGER_BODY, TRIGGER_SECRET, NOW);
}

test('a signature is the HMAC of time, nonce and body, in base64url', () => {
  const mac = createHmac('sha256', TRIGGER_SECRET)
    .update(`1.${NONCE}.{"amount":12}`)
    .digest('base64url');
  assert.equal(signatureOf(TRIGGER_SECRET, '1', NONCE, TRIGGER_BODY), `v1=${mac}`);
  assert.equal(problemOf(), undefined);
});

for (const [what, changes, isGood] of [
  ['300 s old', { timestamp: at(-300_000) }, true],
  ['301 s old', { timestamp: at(-301_000) }, false],
  ['60 s ahead', { timestamp: at(60_000) }, true],
  ['61 s ahead', { timestamp: at(61_000) }, false],
  ['with a time in words', { timestamp: 'now' }, false],
  ['with a time below zero', { timestamp: '-1' }, false],
  ['with a nonce of 15 characters', { nonce: 'n'.repeat(15) }, false],
  ['with a nonce of 128 characters', { nonce: 'n'.repeat(128) }, true],
  ['with a nonce of 129 characters', { nonce: 'n'.repeat(129) }, false],
  ['with a blank in its nonce', { nonce: `${'n'.repeat(16)} n` }, false],
  ['without a signature', { signature: '' }, false],
  ['signed without the version', { signature: signed(TRIGGER_BODY).slice(3) }, false],
  ['signed with another secret', { signature: signed(TRIGGER_BODY, NONCE, 'x') }, false],
  ['signed for another body', { signature: signed(Buffer.alloc(1)) }, false],
  ['signed for another nonce', { signature: signed(TRIGGER_BODY, `${NONCE}x`) }, false],
  ['without a time', { timestamp: undefined }, false],
  ['without a nonce', { nonce: undefined }, false],
] as const) {
  test(`a webhook ${what} is ${isGood ? 'taken' : 'refused'}`, () => {
    assert.equal(problemOf(changes) === undefined, isGood, problemOf(changes));
  });
}
