/**
 * What becomes of the answers to `http_request`, and when private
 * addresses are refused: the server is started once for each default.
 */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Api, type Json, startApi, step } from '../../helpers/api.js';

/** Method and body of the last request. */
let seen: { method: string; type: string | undefined; body: string } | undefined;
/** Answers with the status that the path names; `/cut` breaks the connection. */
const outside = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { method = '', headers } = request;
  seen = { method, type: headers['content-type'], body: Buffer.concat(chunks).toString() };
  if (request.url === '/cut') response.destroy();
  else response.writeHead(Number(request.url?.slice(1))).end('said');
});
const url = (path: string) => `http://127.0.0.1:${(outside.address() as AddressInfo).port}/${path}`;

let api: Api;

before(async () => {
  await new Promise<void>((resolve) => {
    outside.listen(0, '127.0.0.1', resolve);
  });
  api = await startApi({ env: { ENGINE_SHARDS: '2' } });
});
after(async () => {
  await api.stop();
  outside.closeAllConnections();
  outside.close();
});

/** The output of a request, or the `__error__` row of one that failed. */
async function ask(state: string, params: Json): Promise<Json | undefined> {
  const tenant = api.tenant();
  const id = await tenant.runUntil(state, [step('a', 'http_request', { params })]);
  return (await tenant.outputsOf(id)).a;
}

describe('`http_request` results: 2xx and 3xx succeed with `{status, body}`; 4xx fail permanently, 5xx and transport errors retryably, the details carry status and body. An object body is sent as JSON. Private addresses are refused unless `ENGINE_ALLOW_INTERNAL_URLS`, whose default is true under `--insecure-auth` and false otherwise', () => {
  test('private addresses are refused by default with keys', async () => {
    assert.equal((await ask('failed', { url: url('200') }))?.retryable, false);
    assert.equal(seen, undefined);
  });

  describe('under --insecure-auth, without the setting', () => {
    before(() => api.restart('SIGTERM', { apiKey: null, env: { ENGINE_SHARDS: '2' } }));

    for (const status of [200, 201, 299, 304, 399]) {
      test(`${status} succeeds`, async () => {
        // A 304 has no body.
        const body = status === 304 ? '' : 'said';
        assert.deepEqual(await ask('completed', { url: url(String(status)) }), { status, body });
      });
    }

    for (const [status, retryable] of [
      [400, false],
      [404, false],
      [408, false],
      [429, false],
      [499, false],
      [500, true],
      [503, true],
    ] as const) {
      test(`${status} fails ${retryable ? 'retryably' : 'permanently'}`, async () => {
        const row = await ask('failed', { url: url(String(status)) });
        assert.deepEqual([row?.retryable, row?.details], [retryable, { status, body: 'said' }]);
      });
    }

    test('transport errors fail retryably', async () => {
      assert.equal((await ask('failed', { url: url('cut') }))?.retryable, true);
      assert.equal((await ask('failed', { url: 'http://127.0.0.1:1/' }))?.retryable, true);
    });

    test('an object body is sent as JSON', async () => {
      const body = { n: [1, null], text: 'é' };
      await ask('completed', { url: url('200'), method: 'POST', body });
      const sent = { method: 'POST', type: 'application/json', body: JSON.stringify(body) };
      assert.deepEqual(seen, sent);
    });
  });
});
