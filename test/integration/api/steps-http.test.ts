/** http_request as a step: what is sent, and what comes back. `insecure-auth.test.ts` has the rest. */

import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Json, type SharedApi, sharedApi, step, type Tenant } from '../../helpers/api.js';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

let api: SharedApi;
let tenant: Tenant;
let server: Server;
let base: string;
const seen: Seen[] = [];
/** Statuses for the next requests to `/flaky`; 200 when it is empty. */
let flaky: number[] = [];

before(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
      if (url === '/flaky') response.writeHead(flaky.shift() ?? 200).end('made it');
      else if (url === '/nul') response.end('a\u0000b\ud800');
      else response.end(`answer to ${method}`);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  api = await sharedApi();
  tenant = api.tenant();
});
after(async () => {
  await api.stop();
  server.closeAllConnections();
  server.close();
});

async function ask(params: Json, state = 'completed', more: Json = {}): Promise<Json> {
  const id = await tenant.run([step('a', 'http_request', { params, ...more })]);
  await tenant.until(id, state);
  const [row] = await tenant.outputs(id);
  assert.ok(row);
  return row.output;
}

describe('requests', () => {
  test('GET by default; the output has status and body', async () => {
    assert.deepEqual(await ask({ url: `${base}/x?y=1` }), { status: 200, body: 'answer to GET' });
    assert.deepEqual([seen.at(-1)?.method, seen.at(-1)?.url], ['GET', '/x?y=1']);
  });

  test('text and objects are sent as bodies, headers as given', async () => {
    for (const [body, sent] of [
      ['{"raw":1}', '{"raw":1}'],
      [{ n: [1] }, '{"n":[1]}'],
    ] as const) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        await ask({ url: base, method, body, headers: { 'x-own': 'v', host: 'evil' } });
        const last = seen.at(-1);
        assert.deepEqual([last?.method, last?.body], [method, sent]);
        assert.equal(last?.headers['content-type'], 'application/json');
        assert.equal(last?.headers['x-own'], 'v');
        assert.notEqual(last?.headers.host, 'evil');
      }
    }
  });

  test('templates fill url and body', async () => {
    const id = await tenant.run(
      [
        step('a', 'http_request', {
          params: { url: `${base}/{{ data.path }}`, method: 'POST', body: { n: '{{ data.n }}' } },
        }),
        step('b', 'transform', { params: { status: '{{ outputs.a.status }}' } }),
      ],
      { context: { data: { path: 'p', n: 4 } } },
    );
    await tenant.until(id, 'completed');
    assert.deepEqual([seen.at(-1)?.url, seen.at(-1)?.body], ['/p', '{"n":4}']);
    assert.deepEqual((await tenant.outputs(id))[1]?.output, { status: 200 });
  });
});

describe('answers', () => {
  test('5xx are tried again by the policy, with one idempotency token a try', async () => {
    flaky = [500, 503];
    const from = seen.length;
    const output = await ask({ url: `${base}/flaky`, method: 'POST' }, 'completed', {
      retry: { max_attempts: 3, initial_backoff: 1, max_backoff: 1 },
    });
    assert.deepEqual(output, { status: 200, body: 'made it' });
    const tries = seen.slice(from);
    assert.equal(tries.length, 3);
    assert.equal(new Set(tries.map((item) => item.headers['idempotency-key'])).size, 3);
  });

  test('a body that cannot be stored does not stop the instance for ever', async () => {
    const output = await ask({ url: `${base}/nul` });
    assert.equal(output.status, 200);
  });

  test('wrong parameters fail permanently', async () => {
    for (const params of [
      {},
      { url: 5 },
      { url: 'not a url' },
      { url: 'ftp://127.0.0.1/' },
      { url: 'file:///etc/passwd' },
      { url: base, method: 'BREW' },
      { url: base, timeout_ms: -1 },
    ]) {
      const error = await ask(params, 'failed');
      assert.equal(error.retryable, false, JSON.stringify(params));
    }
  });
});
