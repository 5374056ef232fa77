/** One attempt at real servers on loopback: what arrives, and what the answers count as. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders, RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type AttemptOutcome, webhookSignature } from '../../src/core/webhook.js';
import { isPublicAddress } from '../../src/handlers/address-guard.js';
import { type HttpOptions, openHttp } from '../../src/handlers/http-transport.js';
import { createWebhookSender } from '../../src/handlers/webhook-sender.js';
import { cut, listen, manualTimers } from '../helpers/http-handler.js';

const BODY = '{"event_type":"instance.completed","data":{"ä":"\\u0000"}}';
const SECRET = 'a secret';
const NOW_MS = 1_700_000_000_999;

/** Stands for the public internet; other servers listen on other addresses of loopback. */
const PUBLIC_HOST = '127.0.0.2';
const isAllowed = (address: string) => address === PUBLIC_HOST || isPublicAddress(address);

interface Arrival {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers with the statuses in turn, the last one again and again, and keeps what arrived. */
async function listenReceiver(t: TestContext, respond?: RequestListener, host = PUBLIC_HOST) {
  const arrivals: Arrival[] = [];
  const server = await listen(
    t,
    async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      const { method, url, headers } = request;
      arrivals.push({ method, url, headers, body });
      if (respond === undefined) response.end('thanks');
      else respond(request, response);
    },
    host,
  );
  return { ...server, arrivals };
}

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

test('an attempt that comes after the pool was closed, and was never used, is given up', async () => {
  const http = openHttp({ isAllowed });
  await http.close();
  const sender = createWebhookSender({ http, secret: undefined, now: () => NOW_MS });
  const request = { url: `http://${PUBLIC_HOST}:1/`, body: BODY };
  const outcome = await sender.send(request, new AbortController().signal);
  assert.deepEqual(failureOf(outcome), ['aborted', undefined]);
});

test('a POST of the very body arrives, signed over its time, and any status below 400 is success', async (t) => {
  const receiver = await listenReceiver(t, (request, response) => {
    response.writeHead(Number(request.url?.slice(1))).end();
  });
  const send = openSender(t, {}, SECRET);
  for (const status of [200, 201, 202, 204, 299, 300, 304, 399]) {
    assert.deepEqual(await send(`${receiver.origin}/${status}`), { delivered: true, status });
  }
  const [first] = receiver.arrivals;
  assert.equal(first?.method, 'POST');
  assert.equal(first?.body, BODY);
  assert.equal(first?.headers['content-type'], 'application/json');
  assert.equal(first?.headers['x-engine-timestamp'], '1700000000');
  const signature = webhookSignature(SECRET, 1_700_000_000, BODY);
  assert.equal(first?.headers['x-engine-signature'], signature);
});

test('without a secret nothing is signed', async (t) => {
  const receiver = await listenReceiver(t);
  await openSender(t)(receiver.origin);
  const names = Object.keys(receiver.arrivals[0]?.headers ?? {});
  const wrong = names.filter((name) => name.startsWith('x-engine'));
  assert.deepEqual(wrong, []);
});

test('a status from 400 on is a failure, with the beginning of the answer', async (t) => {
  const receiver = await listenReceiver(t, (request, response) => {
    response.writeHead(Number(request.url?.slice(1))).end('  we are closed\n');
  });
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

test('an attempt that is withdrawn settles as aborted', async (t) => {
  const controller = new AbortController();
  const receiver = await listenReceiver(t, () => controller.abort());
  const outcome = await openSender(t)(receiver.origin, controller.signal);
  assert.deepEqual(failureOf(outcome), ['aborted', undefined]);
});

test('a refused or cut connection, a name that does not exist and bad TLS have classes of their own', async (t) => {
  const cutting = await listenReceiver(t, (request) => cut(request.socket));
  const closed = await listen(t, () => undefined, PUBLIC_HOST);
  closed.server.close();
  const tls = createTlsServer({});
  tls.listen(0, PUBLIC_HOST);
  await once(tls, 'listening');
  t.after(() => tls.close());
  const unknown = async () => {
    throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
  };
  const send = openSender(t, { resolve: unknown });
  const { port } = tls.address() as AddressInfo;
  const classes: Record<string, string> = {
    [cutting.origin]: 'connect',
    [closed.origin]: 'connect',
    'http://nowhere.example/': 'dns',
    [`https://${PUBLIC_HOST}:${port}/`]: 'tls',
  };
  for (const [url, expected] of Object.entries(classes)) {
    assert.deepEqual(failureOf(await send(url)), [expected, undefined], url);
  }
});

test('errors name codes, never addresses', async (t) => {
  const closed = await listen(t, () => undefined, PUBLIC_HOST);
  closed.server.close();
  const outcome = await openSender(t)(closed.origin);
  assert.ok(!outcome.delivered);
  assert.equal(outcome.excerpt, 'transport error ECONNREFUSED');
});

test('redirects repeat the POST with its signature, but a 303 asks for a GET', async (t) => {
  const target = await listenReceiver(t);
  const receiver = await listenReceiver(t, (request, response) => {
    const status = Number(request.url?.slice(1));
    response.writeHead(status, { location: `${target.origin}/moved` }).end();
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

test('ten redirects are followed, an eleventh is refused', async (t) => {
  const receiver = await listenReceiver(t, (request, response) => {
    const left = Number(request.url?.slice(1));
    if (left === 0) response.end();
    else response.writeHead(307, { location: `/${left - 1}` }).end();
  });
  const send = openSender(t);
  assert.deepEqual(await send(`${receiver.origin}/10`), { delivered: true, status: 200 });
  const outcome = await send(`${receiver.origin}/11`);
  assert.deepEqual(failureOf(outcome), ['redirect_rejected', undefined]);
});

test('internal addresses are refused, at the first hop and at every other, and see no connection', async (t) => {
  const internal = await listenReceiver(t, undefined, '127.0.0.3');
  const resolve = async (hostname: string) => [
    { address: hostname === 'inside.example' ? '127.0.0.3' : PUBLIC_HOST, family: 4 },
  ];
  const named = `http://inside.example:${internal.port}/`;
  const receiver = await listenReceiver(t, (request, response) => {
    const location = request.url === '/name' ? named : internal.origin;
    response.writeHead(307, { location }).end();
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
  assert.deepEqual(await openSender(t, { isAllowed: () => true })(internal.origin), {
    delivered: true,
    status: 200,
  });
});
