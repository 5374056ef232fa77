/** What is done to an instance while a handler of the process is at one of its steps. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import {
  eventually,
  type Json,
  type SharedApi,
  sharedApi,
  step,
  type Tenant,
} from '../helpers/api.js';
import { fork, inject, MIGRATE, migrate, resumeFrom } from '../helpers/edits.js';

let api: SharedApi;
let tenant: Tenant;

/** Requests that have arrived, by path, in order; a test answers them. */
const held = new Map<string, ServerResponse[]>();
const server = createServer((request, response) => {
  const path = request.url ?? '';
  held.set(path, [...(held.get(path) ?? []), response]);
});

before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  api = await sharedApi();
  tenant = api.tenant();
});
after(async () => {
  await api.stop();
  server.closeAllConnections();
  server.close();
});

function call(id: string, path: string): Json {
  const { port } = server.address() as AddressInfo;
  return step(id, 'http_request', { params: { url: `http://127.0.0.1:${port}${path}` } });
}

/** The n-th request to the path, counted from 1. */
const request = (path: string, n = 1) =>
  eventually(() => {
    const response = held.get(path)?.[n - 1];
    assert.ok(response, `no request ${n} to ${path}`);
    return response;
  });

test('blocks are injected, and the answer continues into them', async () => {
  const id = await tenant.run([call('a', '/inject')]);
  const response = await request('/inject');
  await inject(tenant, id, [step('x', 'noop')]);
  response.end('late');
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['a', 'x']);
});

test('a resume aborts it and begins anew; what the first call gave is ignored', async () => {
  const id = await tenant.run([call('a', '/resume')]);
  const first = await request('/resume');
  await tenant.signal(id, 'pause');
  await resumeFrom(tenant, id, 'a');
  const second = await request('/resume', 2);
  first.end('first');
  second.end('second');
  await tenant.until(id, 'completed');
  const outputs = await tenant.outputs(id);
  assert.deepEqual(
    outputs.map((row) => [row.block_id, row.output.body]),
    [['a', 'second']],
  );
});

test('a resume behind it leaves its outcome out', async () => {
  const id = await tenant.run([call('a', '/behind'), step('b', 'noop')]);
  const response = await request('/behind');
  await tenant.signal(id, 'pause');
  await resumeFrom(tenant, id, 'b');
  response.end('late');
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['b']);
});

test('a migration is refused, also in a pause, until the answer is there', async () => {
  const name = `s-${randomUUID()}`;
  const from = await tenant.sequence([call('a', '/migrate')], { name, version: 1 });
  const blocks = [step('n', 'noop'), call('a', '/migrate'), step('b', 'noop')];
  const to = await tenant.sequence(blocks, { name, version: 2 });
  const id = await tenant.create(from);
  const response = await request('/migrate');
  const body = { instance_id: id, target_sequence_id: to };
  assert.equal((await tenant.post(MIGRATE, body)).status, 409);
  await tenant.signal(id, 'pause');
  const refused = await tenant.post<{ error: string }>(MIGRATE, body);
  assert.equal(refused.status, 409);
  assert.match(refused.body.error, /block a .* is running/);
  response.end('now');
  await eventually(async () => assert.deepEqual(await tenant.rowsOf(id), ['a']));
  await migrate(tenant, id, to);
  await tenant.signal(id, 'resume');
  await tenant.until(id, 'completed');
  assert.deepEqual(await tenant.rowsOf(id), ['a', 'b']);
});

test('a fork calls by itself, and the source never notices', async () => {
  const id = await tenant.run([call('a', '/fork')]);
  const first = await request('/fork');
  const { id: child } = await fork(tenant, id, 'a', { dry_run: false });
  (await request('/fork', 2)).end('child');
  await tenant.until(child, 'completed');
  assert.equal((await tenant.instance(id)).state, 'running');
  first.end('source');
  await tenant.until(id, 'completed');
  assert.equal((await tenant.outputsOf(id)).a?.body, 'source');
  assert.equal((await tenant.outputsOf(child)).a?.body, 'child');
});
