/** Streams and waiting polls end with the key that they were opened with. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeyRegistry } from '../../src/http/key-registry.js';
import { endWith } from '../../src/http/lasting-exchange.js';
import type { HttpExchange, HttpReply } from '../../src/http/server.js';

const NOW = Date.UTC(2030, 0, 1);
const REFUSAL: HttpReply = { status: 401, body: '{}' };

/** An exchange that notes what is done to it, bound to the key `k`, which expires in a second. */
async function newWorld() {
  let now = NOW;
  const registry = new KeyRegistry({ now: () => now, keysMax: 10, refusal: () => undefined });
  await registry.load(async () => []);
  registry.reserve('k');
  registry.add({
    id: 'k',
    name: 'k',
    tenant_id: 'a',
    capabilities: '["operator"]',
    secret_hash: 'digest',
    expires_at: '2030-01-01T00:00:01.000Z',
    last_used_at: null,
  });
  const key = registry.use('digest');
  assert.ok(key !== undefined);
  const seen: string[] = [];
  const leaving: (() => void)[] = [];
  const plain: HttpExchange = {
    aborted: false,
    onAbort: (listener) => void leaving.push(listener),
    reply: ({ status }) => void seen.push(`reply ${status}`),
    stream: () => ({
      write: (chunk) => seen.push(`write ${chunk}`) > 0,
      onDrain: () => undefined,
      end: () => void seen.push('end'),
    }),
  };
  const exchange = endWith(plain, (end) => registry.whenGone(key, () => end(REFUSAL)));
  exchange.onAbort(() => seen.push('aborted'));
  return {
    registry,
    key,
    plain,
    seen,
    exchange,
    leave: () => {
      for (const listener of leaving) listener();
    },
    pass: (ms: number) => {
      now += ms;
    },
  };
}

const HEAD = { status: 200, contentType: 'text/event-stream' };

test('an answer passes, and the end of the key is nothing to it afterwards', async () => {
  const { registry, seen, exchange } = await newWorld();
  exchange.reply({ status: 200, body: '{}' });
  registry.remove('k');
  assert.deepEqual(seen, ['reply 200']);
});

test('what is not answered yet is refused when the key is revoked, once and for good', async () => {
  const { registry, seen, exchange } = await newWorld();
  registry.remove('k');
  assert.deepEqual(seen, ['reply 401', 'aborted']);
  assert.equal(exchange.aborted, true);
  exchange.reply({ status: 200, body: '{}' });
  assert.equal(exchange.stream(HEAD).write('x'), false);
  let isTold = false;
  exchange.onAbort(() => {
    isTold = true;
  });
  assert.ok(isTold, 'who comes late is told at once');
  assert.deepEqual(seen, ['reply 401', 'aborted']);
});

test('a stream ends when the key is revoked, and swallows what its producer still writes', async () => {
  const { registry, seen, exchange } = await newWorld();
  const body = exchange.stream(HEAD);
  assert.equal(body.write('a'), true);
  registry.remove('k');
  assert.equal(body.write('b'), false);
  body.end();
  assert.deepEqual(seen, ['write a', 'end', 'aborted']);
});

test('a stream ends when its key is found to have expired', async () => {
  const { registry, seen, exchange, pass } = await newWorld();
  exchange.stream(HEAD);
  pass(999);
  registry.dropExpired();
  assert.deepEqual(seen, []);
  pass(1);
  registry.dropExpired();
  assert.deepEqual(seen, ['end', 'aborted']);
});

test('a stream that has ended, or whose client went away, holds nothing', async () => {
  for (const how of ['ended', 'left'] as const) {
    const { key, exchange, leave } = await newWorld();
    const body = exchange.stream(HEAD);
    assert.equal(key.bound?.size, 1);
    if (how === 'ended') body.end();
    else leave();
    assert.equal(key.bound?.size, 0, how);
  }
});

test('a key that is gone already ends the exchange at once', async () => {
  const { registry, key, plain, seen } = await newWorld();
  registry.remove('k');
  seen.length = 0;
  assert.equal(endWith(plain, (end) => registry.whenGone(key, () => end(REFUSAL))).aborted, true);
  assert.deepEqual(seen, ['reply 401']);
});
