/** The http_request handler against real servers on loopback: results, limits, and what it sends. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import type { JsonValue } from '../../src/base/json.js';
import {
  answerOf,
  cut,
  failureOf,
  listen,
  manualTimers,
  openHandler,
} from '../helpers/http-handler.js';
import { portOf } from '../helpers/loopback.js';
import { Signal } from '../helpers/raw-client.js';

const MEBIBYTE = 1024 * 1024;

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A server that answers 200 with what it saw, as JSON. */
const listenEcho = (t: TestContext, host?: string) =>
  listen(t, async (request, reply) => reply.end(JSON.stringify(await seen(request))), host);

async function seen(request: IncomingMessage): Promise<Seen> {
  const { method, url, headers } = request;
  return { method, url, headers, body: Buffer.concat(await request.toArray()).toString() };
}

async function echoed(t: TestContext, params: { [name: string]: JsonValue }, traceparent?: string) {
  const { origin } = await listenEcho(t);
  const context = traceparent === undefined ? {} : { traceparent };
  const outcome = await openHandler(t).run({ url: `${origin}/path?q=1`, ...params }, context);
  assert.ok(outcome.kind === 'success', JSON.stringify(outcome));
  const output = outcome.output as { status: number; body: string };
  assert.equal(output.status, 200);
  return JSON.parse(output.body) as Seen;
}

test('a plain request is a GET without body that carries the idempotency key and the trace', async (t) => {
  const request = await echoed(t, {});
  assert.deepEqual([request.method, request.url], ['GET', '/path?q=1']);
  assert.equal(request.headers['idempotency-key'], 'key-1');
  assert.equal(request.headers['content-type'], undefined);
  assert.deepEqual([request.headers.traceparent, request.body], [undefined, '']);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  assert.equal((await echoed(t, {}, traceparent)).headers.traceparent, traceparent);
});

test('an object body is sent as json, and a text body as it is', async (t) => {
  const json = await echoed(t, { method: 'POST', body: { a: [1, null] } });
  assert.equal(json.body, '{"a":[1,null]}');
  assert.equal(json.headers['content-type'], 'application/json');
  const text = await echoed(t, {
    method: 'put',
    body: 'plain ü',
    headers: { 'Content-Type': 'text/plain' },
  });
  assert.deepEqual([text.method, text.body], ['PUT', 'plain ü']);
  assert.equal(text.headers['content-type'], 'text/plain');
});

test('an empty body and a null body are no body, and have no content type', async (t) => {
  for (const body of ['', null]) {
    const request = await echoed(t, { method: 'POST', body });
    assert.deepEqual([request.body, request.headers['content-type']], ['', undefined]);
  }
});

test('headers of the connection, unfit names and values that are not text are dropped', async (t) => {
  const { headers } = await echoed(t, {
    headers: {
      Host: 'other.example',
      'Content-Length': '999',
      'Transfer-Encoding': 'chunked',
      Connection: 'upgrade',
      Upgrade: 'websocket',
      Expect: '100-continue',
      'bad\r\nname': 'x',
      '': 'x',
      number: 5,
      'X-Kept': 'yes',
      'Idempotency-Key': 'mine',
    },
  });
  assert.match(headers.host ?? '', /^127\.0\.0\.1:/);
  assert.deepEqual([headers['x-kept'], headers['idempotency-key']], ['yes', 'mine']);
  for (const name of ['transfer-encoding', 'upgrade', 'expect', 'number', 'content-length']) {
    assert.equal(headers[name], undefined, name);
  }
});

test('every method of the list is sent, and HEAD has no body', async (t) => {
  const methods: (string | undefined)[] = [];
  const { origin } = await listen(t, (request, response) => {
    methods.push(request.method);
    response.end('text');
  });
  const handler = openHandler(t);
  const wanted = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'];
  for (const method of wanted) {
    const body = method === 'HEAD' ? '' : 'text';
    assert.deepEqual(answerOf(await handler.run({ url: origin, method })), { status: 200, body });
  }
  assert.deepEqual(methods, wanted);
});

test('parameters that make no request fail permanently', async (t) => {
  const { origin, connects } = await listenEcho(t);
  const handler = openHandler(t);
  const wrong: JsonValue[] = [
    null,
    'text',
    {},
    { url: '' },
    { url: 5 },
    { url: 'nonsense' },
    { url: origin, method: 'TRACE' },
    { url: origin, method: 'CONNECT' },
    { url: origin, method: 5 },
    { url: origin, timeout_ms: 0 },
    { url: origin, timeout_ms: -1 },
    { url: origin, timeout_ms: 1.5 },
    { url: origin, timeout_ms: '10' },
    { url: origin, timeout_ms: 1e12 },
    { url: origin, headers: [] },
    { url: origin, headers: { authorization: 'Bearer x\r\nX-Injected: 1' } },
    { url: origin, headers: { 'x-emoji': '😀' } },
  ];
  for (const params of wrong) {
    assert.equal(failureOf(await handler.run(params)).retryable, false, JSON.stringify(params));
  }
  assert.equal(connects(), 0);
});

test('a refused connection and an answer that is cut off fail retryably', async (t) => {
  const { origin, server } = await listen(t, (request, response) => {
    if (request.url === '/cut') return cut(request.socket);
    response.writeHead(200, { 'content-length': 100 });
    response.write('half', () => cut(request.socket));
  });
  const handler = openHandler(t);
  for (const path of ['/cut', '/half']) {
    assert.equal(failureOf(await handler.run({ url: origin + path })).retryable, true);
  }
  server.close();
  await once(server, 'close');
  const refused = failureOf(await handler.run({ url: origin }));
  assert.equal(refused.retryable, true);
  assert.deepEqual(refused.details, { code: 'ECONNREFUSED' });
});

test('an answer counts as it is after any number of unsolicited 100 Continue, however they arrive', async (t) => {
  const CONTINUE = 'HTTP/1.1 100 Continue\r\nx-a: 1\r\n\r\n';
  // The body shows that only what stands before a response is dropped.
  const body = 'HTTP/1.1 100 Continue\r\n\r\n';
  const response = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`;
  const whole = `${CONTINUE}HTTP/1.0 100 Go on\r\n\r\n${response}`;
  const pieces = [
    [whole + body],
    [whole, body],
    [CONTINUE, CONTINUE + response, body],
    whole + body,
  ];
  let connects = 0;
  const server = createServer((socket) => {
    connects += 1;
    socket.setNoDelay().on('data', async () => {
      for (const piece of pieces.shift() ?? []) {
        socket.write(piece);
        await setImmediate();
      }
    });
  });
  const port = await portOf(server);
  t.after(() => server.close());
  const handler = openHandler(t);
  while (pieces.length > 0) {
    const answer = answerOf(await handler.run({ url: `http://127.0.0.1:${port}` }));
    assert.equal(answer.body, body);
  }
  assert.ok(connects < 4, 'connections are kept');
});

test('a server that does not answer in time, or stops in the middle, fails retryably', async (t) => {
  const timers = manualTimers();
  const { origin } = await listen(t, (request, response) => {
    if (request.url === '/half') response.write('half', () => timers.fireAll());
    else timers.fireAll();
  });
  const handler = openHandler(t, { setTimer: timers.setTimer });
  for (const path of ['/none', '/half']) {
    const failure = failureOf(await handler.run({ url: origin + path, timeout_ms: 1_234 }));
    assert.equal(failure.retryable, true);
    assert.equal(failure.message, 'http_request: no answer within 1234 ms');
    assert.deepEqual(failure.details, { code: 'TIMEOUT' });
  }
});

test('the time limit is 10 s unless told otherwise, and its timer is cleared', async (t) => {
  const timers = manualTimers();
  const limits: number[][] = [];
  const { origin } = await listen(t, (_request, response) => {
    limits.push(timers.pendingMs());
    response.end();
  });
  const handler = openHandler(t, { setTimer: timers.setTimer });
  await handler.run({ url: origin });
  await handler.run({ url: origin, timeout_ms: 86_400_000 });
  assert.deepEqual(limits, [[10_000], [86_400_000]]);
  assert.deepEqual(timers.pendingMs(), []);
});

test('a caller that aborts gets its outcome at once, before and during a request', async (t) => {
  const controller = new AbortController();
  const { origin, connects } = await listen(t, () => controller.abort());
  const handler = openHandler(t);
  for (const expectedConnects of [1, 1]) {
    const failure = failureOf(await handler.run({ url: origin }, { signal: controller.signal }));
    assert.deepEqual(failure.details, { code: 'ABORTED' });
    assert.equal(failure.retryable, true);
    assert.equal(connects(), expectedConnects);
  }
});

test('an answer of 10 MiB is taken whole, and a larger one fails permanently', async (t) => {
  const { origin } = await listen(t, (request, response) => {
    if (request.url === '/whole') return response.end(Buffer.alloc(10 * MEBIBYTE, 97));
    if (request.url === '/declared') return response.end(Buffer.alloc(10 * MEBIBYTE + 1));
    // Without a length, and without an end.
    const more = () => {
      while (response.write(Buffer.alloc(MEBIBYTE)));
    };
    response.on('drain', more);
    return more();
  });
  const handler = openHandler(t);
  const run = (path: string) => handler.run({ url: origin + path, timeout_ms: 120_000 });
  assert.equal(answerOf(await run('/whole')).body.length, 10 * MEBIBYTE);
  for (const path of ['/declared', '/endless']) {
    const failure = failureOf(await run(path));
    assert.equal(failure.retryable, false);
    assert.deepEqual(failure.details, { status: 200, code: 'RESPONSE_TOO_LARGE' });
  }
});

const UTF16 = Buffer.from('\ufeffä€\0😀', 'utf16le');
const JSON_TEXT = '{"a":"ä"}';
const LATIN = Buffer.from(JSON_TEXT, 'latin1');
const PLAIN = 'text/plain';
const REPLACED = 'U+FFFD stands for bytes that are no character';

/** What is sent: content type, content-encoding, bytes; what comes of it. */
const READ: readonly (readonly [string, string, Buffer, string])[] = [
  [PLAIN, '', Buffer.from('61 00 ff 62 ed a0 80 c3'.replaceAll(' ', ''), 'hex'), 'a��b����'],
  [PLAIN, '', Buffer.from('\ufeff€'), '€'],
  [PLAIN, '', UTF16, 'ä€�😀'],
  [`${PLAIN}; charset=utf-8`, '', Buffer.from(UTF16).swap16(), 'ä€�😀'],
  [`${PLAIN}; charset="utf-16le"`, '', UTF16.subarray(2), 'ä€�😀'],
  [`${PLAIN};CHARSET=Windows-1252`, '', Buffer.from([0x80, 0xe4]), '€ä'],
  [`${PLAIN}; charset=shift_jis`, '', Buffer.from('8abf8e9a', 'hex'), '漢字'],
  ['application/json; charset=iso-8859-1', '', LATIN, JSON_TEXT],
  [PLAIN, 'gzip', gzipSync('ä'), 'ä'],
  [PLAIN, 'X-GZip', Buffer.concat([gzipSync('a'), gzipSync('b')]), 'ab'],
  [PLAIN, 'deflate', deflateSync('ä'), 'ä'],
  [PLAIN, 'deflate', deflateRawSync('ä'), 'ä'],
  [PLAIN, 'br', brotliCompressSync('ä'), 'ä'],
  [`${PLAIN}; charset=utf-16`, 'gzip, identity, br', brotliCompressSync(gzipSync(UTF16)), 'ä€�😀'],
  [PLAIN, 'gzip', Buffer.alloc(0), ''],
  [`${PLAIN}; charset=x`, 'zstd', Buffer.alloc(0), ''],
  [`${PLAIN}; charset=utf-7`, '', LATIN, 'the charset "utf-7" is unknown'],
  [PLAIN, 'gzip, zstd', LATIN, 'the content-encoding "zstd" is unknown'],
  [PLAIN, 'gzip,gzip,gzip,gzip,br', LATIN, 'it is packed more than 4 times'],
  [PLAIN, 'gzip', LATIN, 'its bytes are not gzip'],
  [PLAIN, 'gzip', gzipSync('text').subarray(0, 15), 'its bytes are not gzip'],
  [PLAIN, 'br', gzipSync('text'), 'its bytes are not br'],
];

test('an answer is read by its charset and what it is packed in, and says it when it cannot be', async (t) => {
  const { origin } = await listen(t, async (request, response) => {
    const [type, coding, bytes] = READ[Number(request.url?.slice(1))]!;
    response.writeHead(200, { 'content-type': type, 'content-encoding': coding });
    // In two packets, with a character between them.
    response.write(bytes.subarray(0, 1));
    await setImmediate();
    response.end(bytes.subarray(1));
  });
  const handler = openHandler(t);
  for (const [i, [, coding, , told]] of READ.entries()) {
    const outcome = await handler.run({ url: `${origin}/${i}` });
    const { body, body_problem, json } = Object(outcome).output;
    if (/unknown$|^it/.test(told)) assert.deepEqual([body, body_problem], [null, told], coding);
    else assert.deepEqual([body, body_problem], [told, told.includes('�') ? REPLACED : undefined]);
    assert.deepEqual(json, told === JSON_TEXT ? { a: 'ä' } : undefined);
  }
});

test('what is packed small and is large fails as too large, and what is cut off retryably', async (t) => {
  const bomb = gzipSync(Buffer.alloc(11 * MEBIBYTE));
  const { origin } = await listen(t, (request, response) => {
    const [, coding = '', ending] = (request.url ?? '').split('/');
    const bytes = coding === 'br' ? brotliCompressSync(bomb) : bomb;
    response.writeHead(200, { 'content-encoding': coding === 'br' ? 'gzip, br' : 'gzip' });
    if (ending === 'cut') response.write(bytes.subarray(0, 500), () => cut(request.socket));
    // One that stalls behind it keeps nothing open.
    else response.write(bytes);
  });
  const handler = openHandler(t);
  for (const coding of ['gzip', 'br']) {
    const failure = failureOf(await handler.run({ url: `${origin}/${coding}` }));
    assert.deepEqual(failure.details, { status: 200, code: 'RESPONSE_TOO_LARGE' });
  }
  assert.equal(failureOf(await handler.run({ url: `${origin}/gzip/cut` })).retryable, true);
});

test('requests to one server, one after the other, share connections', async (t) => {
  const { origin, connects } = await listenEcho(t);
  const handler = openHandler(t);
  for (let sent = 0; sent < 20; sent += 1) await handler.run({ url: origin });
  // A connection is free again only shortly after its answer, so that the next request may need one more.
  assert.ok(connects() <= 2, `${connects()} connections`);
});

test('a slow server holds at most 32 requests, and its neighbour is served meanwhile', async (t) => {
  const held: ServerResponse[] = [];
  const full = new Signal();
  const slow = await listen(t, (_request, response) => {
    held.push(response);
    if (held.length === 32) full.raise();
    if (held.length > 32) response.end();
  });
  const neighbour = await listenEcho(t);
  const handler = openHandler(t);
  const requests = Array.from({ length: 50 }, () => handler.run({ url: slow.origin }));
  await full.raised;
  assert.equal((await handler.run({ url: neighbour.origin })).kind, 'success');
  assert.equal(held.length, 32);
  for (const response of held) response.end();
  assert.ok((await Promise.all(requests)).every(({ kind }) => kind === 'success'));
});

test('a request that waits for its turn can be aborted', async (t) => {
  const timers = manualTimers();
  let arrived = 0;
  const full = new Signal();
  const slow = await listen(t, () => {
    arrived += 1;
    if (arrived === 32) full.raise();
  });
  const handler = openHandler(t, { setTimer: timers.setTimer });
  const requests = Array.from({ length: 32 }, () => handler.run({ url: slow.origin }));
  const controller = new AbortController();
  const waiting = handler.run({ url: slow.origin }, { signal: controller.signal });
  await full.raised;
  assert.equal(timers.pendingMs().length, 32, 'no clock runs for a request that waits');
  controller.abort();
  assert.deepEqual(failureOf(await waiting).details, { code: 'ABORTED' });
  timers.fireAll();
  await Promise.all(requests);
});

test('closing ends what is in flight and refuses what comes later, retryably', async (t) => {
  const arrival = new Signal();
  const { origin } = await listen(t, (_request, response) =>
    response.write('half', () => arrival.raise()),
  );
  const handler = openHandler(t);
  const inFlight = handler.run({ url: origin });
  await arrival.raised;
  await handler.deps.close();
  await handler.deps.close();
  assert.equal(failureOf(await inFlight).retryable, true);
  const late = failureOf(await handler.run({ url: origin }));
  assert.equal(late.retryable, true);
  assert.deepEqual(late.details, { code: 'STOPPING' });
});

test('a pool that was closed before its first request is never opened', async (t) => {
  const { origin, connects } = await listen(t, (_request, response) => response.end());
  const handler = openHandler(t);
  await handler.deps.close();
  const late = failureOf(await handler.run({ url: origin }));
  assert.equal(late.retryable, true);
  assert.deepEqual(late.details, { code: 'STOPPING' });
  assert.equal(await handler.deps.dispatcher(), undefined);
  assert.equal(connects(), 0);
});
