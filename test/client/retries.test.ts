/** Which requests are sent again, when, and how often; and what the caller is told in the end. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, type ClientOptions, EngineError } from '../../client/src/index.js';
import { freePort } from '../helpers/engine.js';
import { HOSTILE } from '../helpers/hostile.js';
import type { Answer } from '../helpers/scripted-server.js';
import { answer, hangUp, refusal, scripted, silence } from '../helpers/scripted-server.js';

const INSTANCE = answer(200, { id: 'i-1' });
const CREATED = answer(201, { id: 'i-1', deduplicated: false });
const UNKNOWN = refusal(503, 'ENG_DATABASE_DOWN', 'the outcome is unknown; ask again', '0');
const BUSY = refusal(429, 'ENG_TENANT_LIMIT', 'too many requests: rows', '0');

async function world(answers: readonly Answer[], options: Partial<ClientOptions> = {}) {
  const server = await scripted(...answers);
  const client = new Client({ url: server.url, apiKey: 'k', tenant: 'acme', ...options });
  return { server, client };
}

async function refused(call: PromiseLike<unknown>): Promise<EngineError> {
  const error = await Promise.resolve(call).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof EngineError, String(error));
  return error;
}

test('a call goes to the tenant that it names, else to that of the client', async () => {
  const { server, client } = await world([INSTANCE, INSTANCE]);
  await client.instances.get('i-1');
  await client.instances.get('i-1', { tenant: 'globex' });
  const tenants = server.asked.map(({ headers }) => headers['x-tenant-id']);
  assert.deepEqual(tenants, ['acme', 'globex']);
});

test('a creation that is sent again has the key of its first try', async () => {
  const { server, client } = await world([hangUp, UNKNOWN, CREATED]);
  await client.instances.create({ sequence: 'order' });
  const keys = server.asked.map(({ body }) => JSON.parse(body).idempotency_key);
  assert.equal(keys.length, 3);
  assert.match(keys[0], /./);
  assert.deepEqual(keys, [keys[0], keys[0], keys[0]]);
});

test('every instance of a batch gets a key of its own', async () => {
  const { server, client } = await world([hangUp, answer(201, { count: 2 })]);
  await client.instances.createBatch({ instances: [{ sequence: 'a' }, { sequence: 'b' }] });
  const sent = server.asked.map(({ body }) => JSON.parse(body).instances);
  assert.deepEqual(sent[0], sent[1]);
  assert.notEqual(sent[0][0].idempotency_key, sent[0][1].idempotency_key);
});

test('the key of the caller is taken in place of a new one', async () => {
  const { server, client } = await world([CREATED]);
  await client.instances.create({ sequence: 'order' }, { idempotencyKey: 'A-1' });
  await client.instances.create({ sequence: 'order', idempotency_key: 'A-2' });
  const seen = server.asked.map(({ body }) => JSON.parse(body).idempotency_key);
  assert.deepEqual(seen, ['A-1', 'A-2']);
});

test('an instance that a cohort key leads gets no key that would lead it elsewhere', async () => {
  const { server, client } = await world([hangUp]);
  const body = { sequence: 'order', metadata: { cohort_key: 'customer-7' } };
  assert.equal((await refused(client.instances.create(body))).code, 'CLIENT_NETWORK');
  assert.equal(server.asked.length, 1);
  assert.equal('idempotency_key' in JSON.parse(server.asked[0]?.body ?? ''), false);
});

test('a refusal that time does not mend comes at once, with all that it says', async () => {
  const { server, client } = await world([
    refusal(400, 'ENG_VALIDATION', 'invalid argument: priority must be one of low, normal'),
  ]);
  const error = await refused(client.instances.create({ sequence: 'order' }));
  const { status, code, field, requestId } = error;
  assert.deepEqual(
    { status, code, field, requestId },
    { status: 400, code: 'ENG_VALIDATION', field: 'priority', requestId: 'r-1' },
  );
  assert.equal(server.asked.length, 1);
});

test('it is tried as often as said, and the last refusal is told', async () => {
  const { server, client } = await world([BUSY], { retries: 2 });
  const error = await refused(client.instances.get('i-1'));
  assert.deepEqual([error.status, error.retryAfterMs], [429, 0]);
  assert.equal(server.asked.length, 3);
  await refused(client.instances.get('i-1', { retries: 0 }));
  assert.equal(server.asked.length, 4);
});

test('nobody waits for a server that asks for more than a minute', async () => {
  const { server, client } = await world([refusal(429, 'ENG_TENANT_LIMIT', 'too many', '3600')]);
  assert.equal((await refused(client.instances.get('i-1'))).retryAfterMs, 3_600_000);
  assert.equal(server.asked.length, 1);
});

test('a try that takes too long is given up, and all tries together as well', async () => {
  let tries = 0;
  const counted = (url: string, init: RequestInit) => {
    tries += 1;
    return fetch(url, init);
  };
  const { client } = await world([silence], { timeoutMs: 20, retries: 1, fetch: counted });
  assert.equal((await refused(client.instances.get('i-1'))).code, 'CLIENT_TIMEOUT');
  assert.equal(tries, 2);
  const inAll = client.instances.get('i-1', { timeoutMs: 60_000, totalTimeoutMs: 20, retries: 9 });
  assert.equal((await refused(inAll)).code, 'CLIENT_TIMEOUT');
  assert.equal(tries, 3);
});

test('a poll is given the time that it waits for', async () => {
  const late: Answer = (response, asked) => setTimeout(() => answer(200, [])(response, asked), 100);
  const { client } = await world([late], { timeoutMs: 20, retries: 0 });
  const poll = { handler_name: 'h', worker_id: 'w', wait_ms: 60_000 };
  assert.deepEqual(await client.workers.poll(poll), []);
});

test('the signal of the caller ends a try and a wait, with its own reason', async () => {
  for (const first of [silence, refusal(503, 'ENG_STARTING', 'starting', '30')]) {
    const { client } = await world([first]);
    const [reason, ending] = [new Error('enough'), new AbortController()];
    setTimeout(() => ending.abort(reason), 50);
    const call = client.instances.get('i-1', { signal: ending.signal });
    await assert.rejects(Promise.resolve(call), reason);
  }
});

test('where nobody listens, that is said, and even a signal is sent again', async () => {
  const { server, client } = await world([INSTANCE]);
  let calls = 0;
  const counted = new Client({
    url: `http://127.0.0.1:${await freePort()}`,
    retries: 1,
    fetch: (url, init) => {
      calls += 1;
      return fetch(url, init);
    },
  });
  const error = await refused(counted.instances.signal('i-1', { signal_type: 'pause' }));
  assert.deepEqual([error.code, error.status], ['CLIENT_UNREACHABLE', 0]);
  assert.match(error.message, /could not connect/);
  assert.equal(calls, 2);
  await client.instances.get('i-1');
  assert.equal(server.asked.length, 1);
});

test('an address where something else answers is told from an engine', async () => {
  const page: Answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<h1>Welcome</h1>');
  };
  const moved: Answer = (response) => {
    response.writeHead(301, { location: 'https://example.com/' });
    response.end();
  };
  for (const [first, words] of [
    [page, /answered, but is not an engine: 200 with text\/html/],
    [moved, /answered, but is not an engine: 301, to https:\/\/example\.com\//],
  ] as const) {
    const { client } = await world([first]);
    const error = await refused(client.instances.get('i-1'));
    assert.equal(error.code, 'CLIENT_NO_ENGINE');
    assert.match(error.message, words);
  }
});

test('the prefix may stand in the address or not, and a path keeps what its parts hold', async () => {
  const { server } = await world([INSTANCE]);
  for (const url of [
    server.url,
    `${server.url}/`,
    `${server.url}/api/v1`,
    `${server.url}/api/v1/`,
  ]) {
    await new Client({ url }).rateLimits.put('a/b c', { max_count: 1, window_seconds: 1 });
  }
  const paths = new Set(server.asked.map(({ path }) => path));
  assert.deepEqual([...paths], ['/api/v1/rate-limits/a%2Fb%20c']);
  assert.throws(() => new Client({ url: 'localhost:8080' }), TypeError);
  const client = new Client({ url: server.url });
  await assert.rejects(client.instances.get(''), TypeError);
  await assert.rejects(async () => await client.instances.outputs(''), TypeError);
});

test('filters go as the server reads them', async () => {
  const { server, client } = await world([answer(200, [])]);
  await client.instances.list({
    state: ['failed', 'cancelled'],
    metadata: { order: 'A-1' },
    namespace: undefined,
  });
  const asked = new URL(server.asked[0]?.path ?? '', server.url);
  assert.deepEqual(
    [...asked.searchParams],
    [
      ['state', 'failed,cancelled'],
      ['metadata.order', 'A-1'],
    ],
  );
});

test('a time or a count that is no number is refused, and nothing is sent', async () => {
  const { server, client } = await world([INSTANCE]);
  for (const name of ['timeoutMs', 'totalTimeoutMs', 'retries']) {
    const odd = { [name]: Number.NaN };
    const words = new RegExp(`^TypeError: ${name} must be a number of at least 0, not NaN`);
    assert.throws(() => new Client({ url: server.url, ...odd }), words);
    await assert.rejects(client.instances.get('i-1', odd), words);
  }
  await assert.rejects(
    client.instances.run('order', {}, { timeout: '5' as never }),
    /timeout must/,
  );
  assert.equal(server.asked.length, 0);
});

test('what is sent again after which answer is as the table of both languages says', async () => {
  const answers = HOSTILE.answers.map(({ status, code, message = 'no', again }) => {
    const known = code && { 'x-error-code': code, 'x-request-id': 'r-1' };
    const first = answer(status, { error: message }, { 'retry-after': '0', ...known });
    return { first, code: code || `HTTP_${status}`, again };
  });
  const cutOff = { first: hangUp, code: 'CLIENT_NETWORK', again: 'repeatable' };
  for (const { first, code, again } of [...answers, cutOff]) {
    for (const isRepeatable of [true, false]) {
      const { server, client } = await world([first, INSTANCE]);
      const { instances } = client;
      const call = isRepeatable
        ? instances.get('i-1')
        : instances.signal('i-1', { signal_type: 'custom:paid' });
      const isAgain = again === 'always' || (again === 'repeatable' && isRepeatable);
      if (isAgain) await call;
      else assert.equal((await refused(call)).code, code);
      assert.equal(server.asked.length, isAgain ? 2 : 1, `${code} ${isRepeatable}`);
    }
  }
});

test('a tenant is sent as it is, or refused where a server would take it for another one', async () => {
  const { server, client } = await world([INSTANCE, INSTANCE]);
  for (const { tenant, is_sent } of HOSTILE.tenants) {
    if (!is_sent) {
      const words = /the tenant ".*" cannot be sent: it must begin and end with printable ASCII/;
      assert.throws(() => new Client({ url: server.url, tenant }), words);
      await assert.rejects(client.instances.get('i-1', { tenant }), words);
      continue;
    }
    await client.instances.get('i-1', { tenant });
    const sent = String(server.asked.at(-1)?.headers['x-tenant-id']);
    assert.equal(Buffer.from(sent, 'latin1').toString(), tenant);
  }
  assert.throws(() => new Client({ url: server.url, apiKey: 'sk_\n' }), /apiKey must be printable/);
});

test('a request is not sent with the rest of a time that a wait has used up', async () => {
  const busy: Answer = (response, asked) => {
    UNKNOWN(response, asked);
    // The process is busy for longer than all attempts may take.
    setTimeout(() => {
      const until = performance.now() + 600;
      while (performance.now() < until);
    }, 20);
  };
  const { server, client } = await world([busy, INSTANCE]);
  const error = await refused(client.instances.get('i-1', { totalTimeoutMs: 500 }));
  assert.deepEqual([error.code, server.asked.length], ['ENG_DATABASE_DOWN', 1]);
});

test('a run that is over while the server is silent names the instance, and not the request', async () => {
  const starts_at = new Date(0).toISOString();
  const collected = { id: 'i-1', deduplicated: false, collected: true, starts_at };
  const pending = await world([answer(202, collected), silence]);
  const late = await refused(pending.client.instances.run('order', {}, { timeout: 400 }));
  const message = `instance i-1 did not end in time; it starts at ${starts_at}`;
  assert.deepEqual([late.code, late.message], ['CLIENT_TIMEOUT', message]);
  const known = await world([answer(201, { id: 'i-1', deduplicated: true }), silence]);
  const other = await refused(known.client.instances.run('order', {}, { timeout: 100 }));
  const outlook = 'instance i-1 did not end in time; it continues';
  assert.deepEqual([other.code, other.message], ['CLIENT_TIMEOUT', outlook]);
});

test('a creation whose time is over is not repeated', async () => {
  const { server, client } = await world([silence]);
  const error = await refused(client.instances.run('order', {}, { timeout: 1_200 }));
  assert.deepEqual([error.code, server.asked.length], ['CLIENT_TIMEOUT', 1]);
});
