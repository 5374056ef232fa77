/** Polls leave room for other requests among those in flight, and for other tenants among themselves. */

import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { ShardClient } from '../../actors/shard/client.js';
import { realClock } from '../../src/clock.js';
import { EngineError } from '../../src/errors.js';
import { LIMITS } from '../../src/limits.js';

const { pollsInFlightMax, pollsInFlightPerTenantMax } = LIMITS;
const PORT = { on: () => PORT, postMessage: () => undefined, close: () => undefined };

let client: ShardClient;

beforeEach(() => {
  client = new ShardClient({ shards: 1, clock: realClock, setImmediate: () => undefined });
  client.attach(0, PORT as never);
});

afterEach(() => client.stop());

const poll = (tenant: string) => client.send(0, 'workers.poll', tenant, '', '{}', () => undefined);

function refusalOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof EngineError);
    assert.ok(error.retryAfterMs !== undefined);
    return `${error.status} ${error.message}`;
  }
  return 'none';
}

test('one tenant has a part of the polls, and is told so; others poll on', () => {
  for (let n = 0; n < pollsInFlightPerTenantMax; n++) poll('a');
  assert.match(
    refusalOf(() => poll('a')),
    /^429 .*11250 polls of this tenant are in flight/,
  );
  poll('b');
  assert.equal(client.pollsInFlight, pollsInFlightPerTenantMax + 1);
});

test('however many polls are in flight, other requests find room', () => {
  for (let n = 0; n < pollsInFlightMax; n++) poll(`t${n % 2}`);
  assert.match(
    refusalOf(() => poll('c')),
    /^503 .*15000 polls are in flight/,
  );
  const read = () => client.send(0, 'workers.complete', 'c', '', '{}', () => undefined);
  assert.equal(refusalOf(read), 'none');
});

test('a poll that has its answer leaves its place', () => {
  for (let n = 0; n < pollsInFlightPerTenantMax; n++) poll('a');
  client.detach(0);
  assert.equal(client.pollsInFlight, 0);
  client.attach(0, PORT as never);
  poll('a');
  assert.equal(client.pollsInFlight, 1);
});
