/** What a worker says when something about it looks wrong, and that it does not try without end in vain. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { EngineError, Worker } from '../../client/src/index.js';
import { eventually, step, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { type Between, runWorker, testWorker } from '../helpers/workers.js';

const api = useSharedApi();

const handler = 'work';

function world() {
  const tenant = api.tenant();
  return { tenant, place: { url: api.url, tenant: tenant.name } };
}

async function keyOf(tenant: string, capabilities: readonly string[]): Promise<string> {
  const body = { tenant_id: tenant, name: 'worker', capabilities };
  return expectStatus(await api.root.post<{ secret: string }>('/api-keys', body), 201).secret;
}

/** What the start rejects with. */
async function refusalOf(worker: { start(): Promise<void>; run(): Promise<void> }) {
  const error = await worker.start().then(
    () => assert.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof EngineError);
  await assert.rejects(worker.run(), error);
  return error;
}

test('a wrong key, one without the capability, and one of another tenant are refused at the start', async (t) => {
  const { tenant, place } = world();
  const options = { handlers: { [handler]: () => ({}) } };
  const wrong = testWorker(t, { ...place, apiKey: 'sk_wrong' }, options);
  const unknown = await refusalOf(wrong.worker);
  assert.equal(unknown.status, 401);
  assert.match(unknown.message, /the server rejected the key/);
  assert.equal(wrong.exchanges.length, 1);
  const auditor = await keyOf(tenant.name, ['auditor']);
  const denied = await refusalOf(testWorker(t, { ...place, apiKey: auditor }, options).worker);
  assert.equal(denied.status, 403);
  assert.match(denied.message, /capability "worker"/);
  const other = {
    ...place,
    tenant: api.tenant().name,
    apiKey: await keyOf(tenant.name, ['worker']),
  };
  assert.equal((await refusalOf(testWorker(t, other, options).worker)).status, 403);
});

test('an address that is no engine is refused at the start', async (t) => {
  const { place } = world();
  const { worker } = testWorker(
    t,
    { ...place, between: () => new Response('<h1>Welcome</h1>', { status: 404 }) },
    { handlers: { [handler]: () => ({}) } },
  );
  assert.match((await refusalOf(worker)).message, /check the url/);
});

test('a worker waits for a server that is not there yet, and says so once', async (t) => {
  const { tenant, place } = world();
  let refused = 0;
  const between: Between = async (_, forward) => {
    refused += 1;
    if (refused <= 3) throw new TypeError('fetch failed');
    return forward();
  };
  const { worker, warnings } = testWorker(
    t,
    { ...place, between },
    { handlers: { [handler]: () => ({}) } },
  );
  await worker.start();
  await tenant.runUntil('completed', [step('a', handler)]);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /no response, retrying/);
});

test('a key that is revoked while the worker runs is a warning, and no storm of requests', async (t) => {
  const { place } = world();
  let isRevoked = false;
  const between: Between = async (_, forward) => {
    if (!isRevoked) return forward();
    const headers = { 'x-request-id': 'r1', 'x-error-code': 'ENG_UNAUTHENTICATED' };
    return new Response('{"error":"unauthenticated"}', { status: 401, headers });
  };
  const { exchanges, warnings } = await runWorker(
    t,
    { ...place, between },
    { handlers: { [handler]: () => ({}) }, pollWaitMs: 10 },
  );
  isRevoked = true;
  await eventually(() => assert.match(warnings.join('\n'), /the server rejected the key/));
  const before = exchanges.length;
  await wait(600);
  assert.ok(exchanges.length - before <= 4, `${exchanges.length - before} requests`);
  assert.equal(warnings.length, 1);
});

test('handlers and queues that nobody names are told once, with those that tasks wait for', async (t) => {
  const { tenant, place } = world();
  const [meant, planned, known] = ['charge', 'refund', 'ship'];
  await tenant.run([step('a', meant)]);
  await tenant.sequence([step('a', planned)]);
  const shipped = await tenant.run([step('a', known, { queue_name: 'north' })]);
  const { warnings } = await runWorker(t, place, {
    handlers: { chrage: () => ({}), log: () => ({}), [planned]: () => ({}), [known]: () => ({}) },
    queues: ['north', 'south'],
    complainAfterMs: 1_000,
  });
  await tenant.until(shipped, 'completed');
  await eventually(() => assert.equal(warnings.length, 3, warnings.join('\n')));
  const [named, builtin, queue] = warnings;
  assert.match(
    named ?? '',
    /no sequence or task .* "chrage"; tasks are waiting for "charge" \(1\)/,
  );
  assert.match(builtin ?? '', /"log" is a built-in handler/);
  assert.match(queue ?? '', /no sequence or task .* queue "south"/);
});

test('a key that cannot know which names there are gives no warning of them', async (t) => {
  const { tenant, place } = world();
  await tenant.sequence([step('a', 'refund', { queue_name: 'north' })]);
  const apiKey = await keyOf(tenant.name, ['worker']);
  const { warnings } = await runWorker(
    t,
    { ...place, apiKey },
    { handlers: { refund: () => ({}), log: () => ({}) }, queues: ['north'], complainAfterMs: 1 },
  );
  await eventually(() => assert.equal(warnings.length, 1));
  assert.match(warnings.join(), /"log" is a built-in handler/);
});

test('options that cannot be right are refused before anything is sent', async () => {
  const client = {} as ConstructorParameters<typeof Worker>[0];
  const run = () => ({});
  const made = (options: object) => () => new Worker(client, options as never);
  assert.throws(made({ handlers: {} }), /a worker needs at least one handler/);
  assert.throws(made({ handlers: { a: {} } }), /handler a has no run function/);
  assert.throws(made({ handlers: { a: run }, concurrency: 0 }), /concurrency/);
  assert.throws(made({ handlers: { a: run }, queues: [] }), /queues is empty/);
  assert.throws(made({ handlers: { a: run }, heartbeatMs: 50_000 }), /heartbeatMs/);
  const names = ['leaseMs', 'heartbeatMs', 'pollWaitMs', 'stopTimeoutMs', 'complainAfterMs'];
  for (const name of names) {
    for (const odd of ['5', Number.NaN, -1, new Date(), null]) {
      const refusal = new RegExp(`${name} must be a number of at least 0`);
      assert.throws(made({ handlers: { a: run }, [name]: odd }), refusal);
    }
  }
  assert.throws(
    made({ handlers: { a: { run, params: { type: 'object' } } } }),
    /params of the handler a cannot validate a value/,
  );
  const many = Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`h${n}`, run]));
  assert.throws(made({ handlers: many, queues: ['a', 'b'] }), /more than 100 combinations/);
});
