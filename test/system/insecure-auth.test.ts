/**
 * What follows from `--insecure-auth` and its absence: which addresses `http_request` reaches by default
 * and what becomes of its answers, whose keys are looked at, and what browsers are kept from sending.
 */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import { type Api, type Json, startApi, step } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { Client } from '../helpers/raw-client.js';

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

describe('`http_request` results: 2xx and 3xx succeed with `{status, headers, body, json}`; 4xx fail permanently, 408, 425, 429, 5xx and transport errors retryably, the details carry status and body. An object body is sent as JSON. Private addresses are refused unless `ENGINE_ALLOW_INTERNAL_URLS`, whose default is true under `--insecure-auth` and false otherwise', () => {
  describe('http_request to 127.0.0.1, 10/8, 192.168/16, 169.254.169.254 fails permanently and lands in the DLQ', () => {
    const hosts = ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '2130706433', '0x7f.1'];
    const others = ['10.0.0.1', '10.255.1.2', '192.168.7.7', '169.254.169.254'];
    for (const host of [...hosts, ...others]) {
      test(`${host}, whatever the policy, and nothing is connected`, async () => {
        const tenant = api.tenant();
        const params = { url: url('200').replace('127.0.0.1', host) };
        // A retryable failure would leave the instance scheduled.
        const retry = { max_attempts: 5, initial_backoff: 60_000 };
        const id = await tenant.runUntil('failed', [step('a', 'http_request', { params, retry })]);
        assert.equal((await tenant.outputsOf(id)).a?.retryable, false);
        assert.deepEqual(await tenant.deadLetters(), [id]);
        assert.equal(seen, undefined);
      });
    }
  });

  describe('under --insecure-auth, without the setting', () => {
    before(() => api.restart('SIGTERM', { apiKey: null, env: { ENGINE_SHARDS: '2' } }));

    for (const status of [200, 201, 299, 304, 399]) {
      test(`${status} succeeds`, async () => {
        // A 304 has no body.
        const body = status === 304 ? '' : 'said';
        const output = await ask('completed', { url: url(String(status)) });
        assert.deepEqual([output?.status, output?.body], [status, body]);
      });
    }

    for (const [status, retryable] of [
      [400, false],
      [404, false],
      [408, true],
      [425, true],
      [429, true],
      [499, false],
      [500, true],
      [503, true],
    ] as const) {
      test(`${status} fails ${retryable ? 'retryably' : 'permanently'}`, async () => {
        const row = await ask('failed', { url: url(String(status)) });
        const details = row?.details as Json;
        assert.deepEqual(
          [row?.retryable, details.status, details.body],
          [retryable, status, 'said'],
        );
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

    test('no key is looked at, not even a revoked one, and everybody may make keys', async () => {
      const tenant = api.tenant();
      const body = { tenant_id: tenant.name, capabilities: ['worker'] };
      const key = expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
      expectStatus(await api.root.delete(`/api-keys/${key.id}`), 204);
      for (const apiKey of [null, 'nonsense', key.secret]) {
        const client = api.root.with({ apiKey, tenant: 'another' });
        assert.equal((await client.get('/instances')).status, 200);
        assert.equal((await client.get(`/api-keys?tenant_id=${tenant.name}`)).status, 200);
        assert.equal((await client.with({ tenant: null }).get('/instances')).status, 400);
      }
      const headers = { authorization: 'Bearer nonsense' };
      assert.equal((await tenant.request('GET', '/instances', { headers })).status, 200);
    });

    describe('what a page makes the browser of the developer send', () => {
      const own = () => new URL(api.url).host;
      const declared = { 'content-type': 'application/json' };
      const refusals: [title: string, headers: () => Record<string, string>, status: number][] = [
        ['a foreign page', () => ({ origin: 'https://evil.example', ...declared }), 403],
        ['a page without an origin of its own', () => ({ origin: 'null', ...declared }), 403],
        [
          'a name that was made to mean this machine',
          () => ({ host: 'evil.example', ...declared }),
          403,
        ],
        ['text', () => ({ 'content-type': 'text/plain' }), 400],
        ['a form', () => ({ 'content-type': 'application/x-www-form-urlencoded' }), 400],
        ['a body of no declared kind', () => ({}), 400],
      ];
      for (const [title, headers, status] of refusals) {
        test(`${title} is refused with ${status}, and nothing is stored`, async () => {
          const tenant = api.tenant();
          const definition = JSON.stringify(tenant.definition([step('a', 'noop')]));
          const reply = await send(tenant.name, { host: own(), ...headers() }, definition);
          assert.equal(reply.status, status);
          assert.equal(typeof JSON.parse(reply.body).error, 'string');
          assert.equal(reply.headers['access-control-allow-origin'], undefined);
          assert.deepEqual(expectStatus(await tenant.get('/sequences'), 200), []);
        });
      }

      for (const origin of ['http://localhost:5173', 'http://127.0.0.1', 'http://[::1]:80']) {
        test(`a page of ${origin} is served`, async () => {
          const tenant = api.tenant();
          const definition = JSON.stringify(tenant.definition([step('a', 'noop')]));
          const reply = await send(tenant.name, { host: own(), origin, ...declared }, definition);
          assert.equal(reply.status, 201);
        });
      }
    });

    /** A browser sets headers that no client library lets one set. */
    async function send(tenant: string, headers: Record<string, string>, body: string) {
      const client = await Client.open(Number(new URL(api.url).port));
      const lines = Object.entries({ ...headers, 'x-tenant-id': tenant });
      client.send(
        [
          'POST /api/v1/sequences HTTP/1.1',
          ...lines.map(([name, value]) => `${name}: ${value}`),
          `content-length: ${Buffer.byteLength(body)}`,
          '',
          body,
        ].join('\r\n'),
      );
      const reply = await client.reply();
      client.close();
      return reply;
    }
  });
});
