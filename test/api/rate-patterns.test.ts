/** Keys of rate limits from templates, and patterns as the limit of every matching key. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { RateLimit } from '../../schema/rate.js';
import { eventually, type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const api = useSharedApi();

/** Lasts longer than every test, so that what is limited stays so. */
const HOUR = { max_count: 1, window_seconds: 3_600 };
const CALL = [step('call', 'noop', { rate_limit_key: 'bank:{{ data.customer }}' })];

const path = (key: string) => `/rate-limits/${encodeURIComponent(key)}`;

async function put(tenant: Tenant, key: string, limit: Json = HOUR): Promise<RateLimit> {
  return expectStatus(await tenant.put<RateLimit>(path(key), limit), 200);
}

async function remove(tenant: Tenant, key: string): Promise<void> {
  expectStatus(await tenant.delete(path(key)), 204);
}

const limitOf = async (tenant: Tenant, key: string) =>
  expectStatus(await tenant.get<RateLimit>(path(key)), 200);

/** Resolves with how it is after its step was limited, or could run. */
async function callFor(tenant: Tenant, sequence: string, customer: unknown): Promise<string> {
  const id = await tenant.create(sequence, { context: { data: { customer } } });
  await eventually(async () => {
    const { state, next_fire_at } = await tenant.instance(id);
    const isLimited = state === 'scheduled' && Date.parse(next_fire_at ?? '') > Date.now();
    assert.ok(isLimited || state === 'completed' || state === 'failed', state);
  });
  return id;
}

const stateOf = async (tenant: Tenant, id: string) => (await tenant.instance(id)).state;

test('each key that matches a pattern has a window of its own, and an explanation names the pattern', async () => {
  const tenant = api.tenant();
  await put(tenant, 'bank:*');
  const sequence = await tenant.sequence(CALL);
  for (const customer of ['a', 'b', 7]) {
    assert.equal(await stateOf(tenant, await callFor(tenant, sequence, customer)), 'completed');
  }
  const limited = await callFor(tenant, sequence, 'a');
  assert.equal(await stateOf(tenant, limited), 'scheduled');
  const reply = await tenant.get<InstanceExplanation>(`/instances/${limited}/explain`);
  const { waiting_for, summary } = expectStatus(reply, 200);
  assert.deepEqual(waiting_for[0]?.key, 'bank:a');
  assert.deepEqual(waiting_for[0]?.limit, { ...HOUR, pattern: 'bank:*' });
  assert.match(summary, /rate limit bank:a \(1 in 3600 s, by the pattern bank:\*\)/);
  assert.equal(await stateOf(tenant, await callFor(tenant, sequence, 'c')), 'completed');
  const foreign = api.tenant();
  const elsewhere = await foreign.sequence(CALL);
  for (let i = 0; i < 3; i++) {
    assert.equal(await stateOf(foreign, await callFor(foreign, elsewhere, 'a')), 'completed');
  }
});

test("a key's own limit comes first, then the pattern with the longest literal text; a deletion leaves the next best", async () => {
  const tenant = api.tenant();
  await put(tenant, '*', { max_count: 1, window_seconds: 60 });
  await put(tenant, 'bank:*', { max_count: 2, window_seconds: 60 });
  await put(tenant, 'bank:*:eu', { max_count: 3, window_seconds: 60 });
  await put(tenant, 'bank:a:eu', { max_count: 4, window_seconds: 60 });
  const seen = async (key: string) => {
    const { max_count, pattern, key: shown } = await limitOf(tenant, key);
    assert.equal(shown, key);
    return [max_count, pattern];
  };
  assert.deepEqual(await seen('bank:a:eu'), [4, undefined]);
  assert.deepEqual(await seen('bank:b:eu'), [3, 'bank:*:eu']);
  assert.deepEqual(await seen('bank:b'), [2, 'bank:*']);
  assert.deepEqual(await seen('bank:*'), [2, undefined]);
  assert.deepEqual(await seen('mail'), [1, '*']);
  await remove(tenant, 'bank:a:eu');
  await remove(tenant, 'bank:*');
  assert.deepEqual(await seen('bank:a:eu'), [3, 'bank:*:eu']);
  assert.deepEqual(await seen('bank:b'), [1, '*']);
  const list = expectStatus(await tenant.get<RateLimit[]>('/rate-limits'), 200);
  assert.deepEqual(column(list, 'key'), ['*', 'bank:*:eu']);
  await remove(tenant, '*');
  expectStatus(await tenant.get(path('mail')), 404);
  expectStatus(await tenant.delete(path('*')), 404);
});

test('a changed or deleted pattern applies at once to keys that are in use, on every shard', async () => {
  const tenant = api.tenant();
  const { updated_at } = await put(tenant, 'bank:*');
  const sequence = await tenant.sequence(CALL);
  const customers = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const callAll = () => Promise.all(customers.map((one) => callFor(tenant, sequence, one)));
  const statesOf = (ids: string[]) => Promise.all(ids.map((id) => stateOf(tenant, id)));
  assert.deepEqual(new Set(await statesOf(await callAll())), new Set(['completed']));
  const limited = await callAll();
  assert.deepEqual(new Set(await statesOf(limited)), new Set(['scheduled']));
  const stale = { ...HOUR, max_count: 2, if_unchanged_since: '2020-01-01T00:00:00.000Z' };
  expectStatus(await tenant.put(path('bank:*'), stale), 409);
  await put(tenant, 'bank:*', { ...HOUR, max_count: 2, if_unchanged_since: updated_at });
  for (const id of limited) await tenant.until(id, 'completed');
  const more = await callAll();
  assert.deepEqual(new Set(await statesOf(more)), new Set(['scheduled']));
  await put(tenant, 'bank:a', { max_count: 10, window_seconds: 3_600 });
  await tenant.until(more[0]!, 'completed');
  await remove(tenant, 'bank:*');
  for (const id of more) await tenant.until(id, 'completed');
  assert.deepEqual(new Set(await statesOf(await callAll())), new Set(['completed']));
});

test('the template is rendered at each attempt, with the items of loops; one that is null or blank fails the step', async () => {
  const tenant = api.tenant();
  await put(tenant, 'bank:*');
  const body = [step('call', 'noop', { rate_limit_key: 'bank:{{ data.item }}' })];
  const each = { type: 'for_each', id: 'each', collection: 'list', item_var: 'item', body };
  const id = await tenant.runUntil('completed', [each], { list: [1, 2, 3, 4, 5] });
  const calls = (await tenant.outputs(id)).filter(({ block_id }) => block_id === 'call');
  assert.equal(calls.length, 5);
  const missing = await callFor(tenant, await tenant.sequence(CALL), null);
  const { failure: why } = await tenant.instance(missing);
  assert.deepEqual([why?.code, why?.block_id], ['invalid_params', 'call']);
  const said = 'rate_limit_key must not come to null, and {{ data.customer }} does';
  assert.equal(why?.message, said);
  const whole = [step('call', 'noop', { rate_limit_key: '{{ data.customer }}' })];
  for (const [customer, message] of [
    ['', /must not come to a blank text/],
    [{ a: 1 }, /must come to a text or a number/],
    ['x'.repeat(513), /at most 512 characters/],
  ] as const) {
    const id = await callFor(tenant, await tenant.sequence(whole), customer);
    const { failure } = await tenant.instance(id);
    assert.equal(failure?.code, 'invalid_params');
    assert.match(failure?.message ?? '', message);
  }
});

test('a tenant has at most a hundred patterns', async () => {
  const tenant = api.tenant();
  for (let i = 0; i < 100; i++) await put(tenant, `k${i}:*`);
  const reply = await tenant.put<{ error: string }>(path('one-more:*'), HOUR);
  assert.match(expectStatus(reply, 409).error, /at most 100 patterns/);
  await put(tenant, 'k7:*', { max_count: 3, window_seconds: 1 });
  await put(tenant, 'plain');
});
