/** Probes, unknown routes and methods, request ids, bare paths, HEAD and CORS of the real server. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { useSharedApi } from '../helpers/api.js';

const api = useSharedApi();
const tenant = api.tenant();

describe('probes', () => {
  for (const prefix of ['', '/api/v1']) {
    for (const path of ['/health/live', '/health/ready']) {
      test(`GET ${prefix}${path} is 200 {"status":"ok"} without key and tenant`, async () => {
        const reply = await api.root.with({ prefix, apiKey: null, tenant: null }).get(path);
        assert.equal(reply.status, 200);
        assert.deepEqual(reply.body, { status: 'ok' });
        assert.equal(reply.headers.deprecation, undefined);
      });
    }
  }

  test('GET /info tells the version of the package, without key and tenant', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    const reply = await api.root
      .with({ apiKey: null, tenant: null })
      .get<{ version: string; storage_schema_version: number }>('/info');
    assert.equal(reply.status, 200);
    assert.equal(reply.body.version, version);
    assert.ok(reply.body.storage_schema_version >= 1);
  });
});

describe('routes', () => {
  test('an unknown route is 404 with the body of every error', async () => {
    const reply = await tenant.get<{ error: string }>('/nothing/here');
    assert.equal(reply.status, 404);
    assert.match(reply.body.error, /^not found: /);
  });

  test('a wrong method is 405 and names the right ones', async () => {
    const reply = await tenant.put('/instances', {});
    assert.equal(reply.status, 405);
    assert.deepEqual(String(reply.headers.allow).split(', ').sort(), ['GET', 'HEAD', 'POST']);
  });

  test('a path that is not percent-encoded UTF-8 is 400', async () => {
    assert.equal((await tenant.get('/instances/%ff')).status, 400);
  });

  test('a path with U+0000, which no text of the database can hold, is 400', async () => {
    assert.equal((await tenant.delete('/api-keys/%00')).status, 400);
    assert.equal((await tenant.put('/rate-limits/a%00', {})).status, 400);
  });

  test('an id that is no UUID is 400 and says so, in every route with an id', async () => {
    const routes: [string, string, unknown?][] = [
      ['GET', '/sequences/x'],
      ['DELETE', '/sequences/x'],
      ['POST', '/sequences/x/deprecate'],
      ['GET', '/instances/x'],
      ['GET', '/instances/x/tree'],
      ['GET', '/instances/x/outputs'],
      ['GET', '/instances/x/children'],
      ['GET', '/instances/x/audit'],
      ['GET', '/instances/x/timeline'],
      ['POST', '/instances/x/retry'],
      ['PATCH', '/instances/x/state', { state: 'paused' }],
      ['PATCH', '/instances/x/context', { context: { data: {} } }],
      ['POST', '/instances/x/signals', { signal_type: 'pause' }],
      ['POST', '/workers/tasks/x/complete', { worker_id: 'w', output: {} }],
      ['POST', '/workers/tasks/x/fail', { worker_id: 'w', message: 'm' }],
      ['POST', '/workers/tasks/x/heartbeat', { worker_id: 'w' }],
      ['GET', '/workers/tasks/x/attempts'],
    ];
    for (const [method, path, body] of routes) {
      const reply = await tenant.request<{ error: string }>(method, path, { body });
      assert.equal(reply.status, 400, `${method} ${path}`);
      assert.match(reply.body.error, /id must be a UUID/);
    }
  });

  test('an id that nobody has is 404, in every route with an id', async () => {
    const id = randomUUID();
    const routes: [string, string, unknown?][] = [
      ['GET', `/sequences/${id}`],
      ['DELETE', `/sequences/${id}`],
      ['POST', `/sequences/${id}/deprecate`],
      ['GET', `/instances/${id}`],
      ['GET', `/instances/${id}/tree`],
      ['GET', `/instances/${id}/outputs`],
      ['GET', `/instances/${id}/children`],
      ['GET', `/instances/${id}/audit`],
      ['GET', `/instances/${id}/timeline`],
      ['POST', `/instances/${id}/retry`],
      ['PATCH', `/instances/${id}/state`, { state: 'paused' }],
      ['PATCH', `/instances/${id}/context`, { context: { data: {} } }],
      ['POST', `/instances/${id}/signals`, { signal_type: 'pause' }],
      ['POST', `/workers/tasks/${id}/complete`, { worker_id: 'w', output: {} }],
      ['POST', `/workers/tasks/${id}/complete`, { worker_id: 'w', output: {}, claim_epoch: 1 }],
      ['POST', `/workers/tasks/${id}/fail`, { worker_id: 'w', message: 'm' }],
      ['POST', `/workers/tasks/${id}/heartbeat`, { worker_id: 'w' }],
      ['GET', `/workers/tasks/${id}/attempts`],
    ];
    for (const [method, path, body] of routes) {
      const reply = await tenant.request<{ error: string }>(method, path, { body });
      assert.equal(reply.status, 404, `${method} ${path}`);
      assert.match(reply.body.error, /^not found: .*/);
      assert.ok(reply.body.error.includes(id), reply.body.error);
    }
  });

  test('ids in upper case find the same row', async () => {
    const id = await tenant.run([{ type: 'step', id: 'a', handler: 'noop' }]);
    assert.equal((await tenant.instance(id.toUpperCase())).id, id);
  });

  test('HEAD answers like GET without a body', async () => {
    const reply = await tenant.request('HEAD', '/instances');
    assert.equal(reply.status, 200);
    assert.equal(reply.text, '');
    assert.equal((await tenant.request('HEAD', `/instances/${randomUUID()}`)).status, 404);
  });

  test('a bare path is the same route and says that it is deprecated', async () => {
    const bare = tenant.with({ prefix: '' });
    for (const [path, status] of [
      ['/instances?limit=1', 200],
      [`/instances/${randomUUID()}`, 404],
    ] as const) {
      const reply = await bare.get(path);
      assert.equal(reply.status, status);
      assert.equal(reply.headers.deprecation, '@1767225600');
      assert.equal(reply.headers.sunset, 'Sat, 01 Jan 2028 00:00:00 GMT');
      assert.ok(
        String(reply.headers.link).includes(`</api/v1${path}>; rel="successor-version"`),
        String(reply.headers.link),
      );
    }
    const refused = await bare.with({ apiKey: null, prefix: '' }).get('/instances');
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.deprecation, '@1767225600');
    const prefixed = await tenant.get('/instances');
    for (const name of ['deprecation', 'sunset', 'link']) {
      assert.equal(prefixed.headers[name], undefined);
    }
  });
});

describe('bodies', () => {
  test('a body that is no JSON is 400', async () => {
    for (const raw of ['', '{', '[1,]', "{'a':1}", '{"a":1}x', 'nul', '\ufeff{}']) {
      const reply = await tenant.request('POST', '/instances', { raw });
      assert.equal(reply.status, 400, JSON.stringify(raw));
    }
  });

  test('JSON that is no object is 400', async () => {
    for (const raw of ['null', '1', '"x"', '[]', 'true']) {
      assert.equal((await tenant.request('POST', '/instances', { raw })).status, 400, raw);
    }
  });

  test('bytes that are no UTF-8 are 400', async () => {
    const raw = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    assert.equal((await tenant.request('POST', '/instances', { raw })).status, 400);
  });

  test('the content type does not matter', async () => {
    const id = await tenant.sequence([{ type: 'step', id: 'a', handler: 'noop' }]);
    for (const type of ['text/plain', 'application/json; charset=utf-8', 'x']) {
      const reply = await tenant.request('POST', '/instances', {
        body: tenant.creation(id),
        headers: { 'content-type': type },
      });
      assert.equal(reply.status, 201);
    }
  });

  test('unknown fields and parameters of what makes or reads a single thing are ignored', async () => {
    const sequence = await tenant.sequence([
      { type: 'step', id: 'a', handler: 'noop', colour: 'red' },
    ]);
    const id = await tenant.create(sequence, { colour: 'red', state: 'completed', id: 'x' });
    assert.notEqual(id, 'x');
    assert.equal((await tenant.get(`/instances/${id}?colour=red&sort=x`)).status, 200);
  });
});

describe('headers', () => {
  test('a request id is echoed, cleaned and cut', async () => {
    const echo = async (id: string) =>
      (await tenant.request('GET', '/instances', { headers: { 'x-request-id': id } })).headers[
        'x-request-id'
      ];
    assert.equal(await echo('abc-DEF_123'), 'abc-DEF_123');
    assert.equal(await echo('a b<c>.d'), 'abcd');
    assert.equal(await echo('x'.repeat(200)), 'x'.repeat(128));
    assert.match(String(await echo('...')), /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  });

  test('CORS: a listed origin is answered, another one is not', async () => {
    const ask = (origin: string) =>
      tenant.request('OPTIONS', '/instances', {
        headers: { origin, 'access-control-request-method': 'POST' },
      });
    const reply = await ask('https://console.example');
    assert.equal(reply.headers['access-control-allow-origin'], 'https://console.example');
    assert.match(String(reply.headers['access-control-allow-methods']), /PATCH/);
    assert.match(String(reply.headers['access-control-allow-headers']), /x-tenant-id/i);
    const other = await ask('https://evil.example');
    assert.equal(other.headers['access-control-allow-origin'], undefined);
    const refused = await tenant.request('GET', `/instances/${randomUUID()}`, {
      headers: { origin: 'https://console.example' },
    });
    assert.equal(refused.status, 404);
    assert.equal(refused.headers['access-control-allow-origin'], 'https://console.example');
  });

  test('headers beyond 16 KiB are 431', async () => {
    const reply = await tenant.request('GET', '/instances', {
      headers: { 'x-long': 'x'.repeat(17 * 1024) },
    });
    assert.equal(reply.status, 431);
  });
});
