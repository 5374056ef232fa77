/**
 * Where http_request may be led: redirects, names that change their address, and the ways to reach
 * the network behind the engine. Sinks count the connections that must not happen; `outbound.test.ts` and
 * `unit/connections` have every spelling of an address.
 */

import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { type TestContext, test } from 'node:test';
import { isPublicAddress, type Resolver } from '../../src/handlers/address-guard.js';
import { column } from '../helpers/columns.js';
import { answerOf, failureOf, listen, openHandler } from '../helpers/http-handler.js';

/** Stands for the public internet; the sinks listen on other addresses of loopback. */
const PUBLIC_HOST = '127.0.0.2';
const isAllowed = (address: string) => address === PUBLIC_HOST || isPublicAddress(address);

interface Arrival {
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers 200, and keeps what arrived. */
async function listenSink(t: TestContext, host?: string) {
  const arrivals: Arrival[] = [];
  const server = await listen(
    t,
    async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      arrivals.push({ method: request.method, headers: request.headers, body });
      response.end('sink');
    },
    host,
  );
  return { ...server, arrivals };
}

/** Answers with the status and the location that `target` gives for the path. */
function listenRedirect(t: TestContext, target: (path: string) => [number, string], host?: string) {
  return listen(
    t,
    (request, response) => {
      const [status, location] = target(request.url ?? '');
      response.writeHead(status, { location }).end('moved');
    },
    host,
  );
}

test('ten redirects in a row are followed, and an eleventh fails permanently', async (t) => {
  const { origin } = await listen(t, (request, response) => {
    const left = Number(request.url?.slice(1));
    if (left === 0) response.end('arrived');
    else response.writeHead(302, { location: `/${left - 1}` }).end();
  });
  const handler = openHandler(t);
  const outcome = await handler.run({ url: `${origin}/10` });
  assert.deepEqual(answerOf(outcome), { status: 200, body: 'arrived' });
  const failure = failureOf(await handler.run({ url: `${origin}/11` }));
  assert.equal(failure.retryable, false);
  assert.deepEqual(failure.details, { code: 'TOO_MANY_REDIRECTS' });
});

test('301, 302 and 303 turn a POST into a GET without body, 307 and 308 repeat it', async (t) => {
  const sink = await listenSink(t);
  const { origin } = await listenRedirect(t, (path) => [Number(path.slice(1)), sink.origin]);
  const handler = openHandler(t);
  for (const status of [301, 302, 303, 307, 308]) {
    await handler.run({ url: `${origin}/${status}`, method: 'POST', body: { a: 1 } });
    const arrival = sink.arrivals.at(-1);
    const isRepeated = status >= 307;
    assert.equal(arrival?.method, isRepeated ? 'POST' : 'GET', String(status));
    assert.equal(arrival?.body, isRepeated ? '{"a":1}' : '');
    assert.equal(arrival?.headers['content-type'], isRepeated ? 'application/json' : undefined);
  }
});

test('301 repeats a PUT, 303 turns it into a GET, and HEAD stays HEAD', async (t) => {
  const sink = await listenSink(t);
  const { origin } = await listenRedirect(t, (path) => [Number(path.slice(1)), sink.origin]);
  const handler = openHandler(t);
  await handler.run({ url: `${origin}/301`, method: 'PUT', body: 'x' });
  await handler.run({ url: `${origin}/303`, method: 'PUT', body: 'x' });
  await handler.run({ url: `${origin}/303`, method: 'HEAD' });
  assert.deepEqual(column(sink.arrivals, 'method'), ['PUT', 'GET', 'HEAD']);
});

test('headers that may hold a secret do not follow a redirect to another origin', async (t) => {
  const sink = await listenSink(t);
  const { origin } = await listenRedirect(t, () => [307, sink.origin]);
  const headers = {
    Authorization: 'Bearer secret',
    Cookie: 'a=b',
    'Proxy-Authorization': 'Basic x',
    'X-Api-Key': 'secret',
    Accept: 'text/plain',
  };
  await openHandler(t).run({ url: origin, headers });
  const arrived = sink.arrivals[0]?.headers ?? {};
  for (const name of ['authorization', 'cookie', 'proxy-authorization', 'x-api-key']) {
    assert.equal(arrived[name], undefined, name);
  }
  assert.deepEqual([arrived.accept, arrived['idempotency-key']], ['text/plain', 'key-1']);
});

test('headers follow a redirect within one origin', async (t) => {
  let arrived: IncomingHttpHeaders = {};
  const { origin } = await listen(t, (request, response) => {
    arrived = request.headers;
    if (request.url === '/from') response.writeHead(302, { location: '/to' });
    response.end();
  });
  await openHandler(t).run({ url: `${origin}/from`, headers: { Authorization: 'Bearer x' } });
  assert.equal(arrived.authorization, 'Bearer x');
});

test('headers stay dropped when a chain leads back to its first origin', async (t) => {
  const arrived: IncomingHttpHeaders[] = [];
  const back = await listenRedirect(t, (path) => [302, path.slice(1)]);
  const first = await listen(t, (request, response) => {
    arrived.push(request.headers);
    const home = `http://${request.headers.host}/end`;
    if (request.url === '/start') response.writeHead(302, { location: `${back.origin}/${home}` });
    response.end();
  });
  await openHandler(t).run({
    url: `${first.origin}/start`,
    headers: { Authorization: 'Bearer x' },
  });
  assert.deepEqual(column(arrived, 'authorization'), ['Bearer x', undefined]);
});

test('a redirect to an internal address fails permanently, and nothing connects to it', async (t) => {
  const sink = await listenSink(t);
  const targets = [
    sink.origin,
    `http://localhost:${sink.port}/`,
    `//2130706433:${sink.port}/`,
    `http://[::ffff:127.0.0.1]:${sink.port}/`,
    `http://internal.test:${sink.port}/`,
    `http://user:pass@${PUBLIC_HOST}:${sink.port}/`,
    'file:///etc/passwd',
    'gopher://127.0.0.1/',
    'http://[broken/',
  ];
  const resolve: Resolver = async () => [{ address: '127.0.0.1', family: 4 }];
  const { origin } = await listenRedirect(
    t,
    (path) => [302, targets[Number(path.slice(1))] ?? ''],
    PUBLIC_HOST,
  );
  const handler = openHandler(t, { isAllowed, resolve });
  for (const index of targets.keys()) {
    const failure = failureOf(await handler.run({ url: `${origin}/${index}` }));
    assert.equal(failure.retryable, false, targets[index]);
    assert.match(String(failure.details?.code), /^BLOCKED_/, targets[index]);
  }
  assert.equal(sink.connects(), 0);
});

test('a name that turns internal after it was judged is refused at the socket', async (t) => {
  const { port } = await listen(
    t,
    (_request, response) => response.writeHead(200, { connection: 'close' }).end('public'),
    PUBLIC_HOST,
  );
  const sink = await listen(t, (_request, response) => response.end('secret'), '127.0.0.1', port);
  const answers = [PUBLIC_HOST, '127.0.0.1', '127.0.0.1'];
  const asked: string[] = [];
  const resolve: Resolver = async (hostname) => {
    asked.push(hostname);
    return [{ address: answers.shift() ?? '', family: 4 }];
  };
  const handler = openHandler(t, { isAllowed, resolve });
  const url = `http://rebind.test:${port}/`;
  assert.equal((await handler.run({ url })).kind, 'success');
  const failure = failureOf(await handler.run({ url }));
  assert.equal(failure.retryable, false);
  assert.deepEqual(failure.details, { code: 'BLOCKED_ADDRESS' });
  assert.deepEqual(asked, ['rebind.test', 'rebind.test'], 'one lookup for each connection');
  assert.equal(sink.connects(), 0);
});

test('a name that does not exist fails permanently, a name server that is away retryably', async (t) => {
  let code = 'ENOTFOUND';
  const resolve: Resolver = async () => {
    throw Object.assign(new Error('lookup'), { code });
  };
  const handler = openHandler(t, { resolve });
  const absent = failureOf(await handler.run({ url: 'http://absent.test/' }));
  assert.equal(absent.retryable, false);
  assert.deepEqual(absent.details, { code: 'UNRESOLVABLE_HOST' });
  code = 'EAI_AGAIN';
  const away = failureOf(await handler.run({ url: 'http://absent.test/' }));
  assert.equal(away.retryable, true);
  assert.deepEqual(away.details, { code: 'EAI_AGAIN' });
});
