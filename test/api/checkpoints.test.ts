/** Checkpoints of an instance: saved, listed, found and pruned, in any state and over restarts. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Checkpoint } from '../../schema/edits.js';
import { eventually, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();

const UNKNOWN = '01950000-0000-7000-8000-00000000abcd';
/** The limit of a checkpoint. */
const BYTES_MAX = 262_144;

const waiting = (tenant: Tenant) => tenant.runUntil('waiting', [step('a', newHandler())]);

const post = (tenant: Tenant, id: string, checkpoint_data: unknown) =>
  tenant.post<{ id: string; error: string }>(`/instances/${id}/checkpoints`, { checkpoint_data });

const save = async (tenant: Tenant, id: string, data: unknown) =>
  expectStatus(await post(tenant, id, data), 201).id;

const list = async (tenant: Tenant, id: string) =>
  expectStatus(await tenant.get<Checkpoint[]>(`/instances/${id}/checkpoints`), 200);

const latest = (tenant: Tenant, id: string) =>
  tenant.get<Checkpoint>(`/instances/${id}/checkpoints/latest`);

const prune = async (tenant: Tenant, id: string, keep: number) => {
  const reply = await tenant.post<{ count: number }>(`/instances/${id}/checkpoints/prune`, {
    keep,
  });
  return expectStatus(reply, 200).count;
};

const dataOf = async (tenant: Tenant, id: string) =>
  (await list(tenant, id)).map((checkpoint) => checkpoint.checkpoint_data);

describe('Checkpoints round-trip; latest is the newest; none yet is 404; prune keeps N; prune 0 clears', () => {
  test('they round-trip, whatever JSON they are', async () => {
    const tenant = api.tenant();
    const id = await waiting(tenant);
    const values = [{ page: 7, of: [1, 'zwei', null] }, 'text', 0, false, null, [], '"\\\u2028'];
    const ids: string[] = [];
    for (const value of values) ids.push(await save(tenant, id, value));
    const checkpoints = await list(tenant, id);
    assert.deepEqual(
      checkpoints.map((checkpoint) => [checkpoint.id, checkpoint.checkpoint_data]),
      values.map((value, index) => [ids[index], value]).reverse(),
    );
    for (const checkpoint of checkpoints) {
      assert.equal(checkpoint.instance_id, id);
      assert.ok(Math.abs(Date.parse(checkpoint.created_at) - Date.now()) < 60_000);
    }
  });

  test('a dry run of a pruning counts, and deletes none', async () => {
    const tenant = api.tenant();
    const id = await waiting(tenant);
    for (const value of [1, 2, 3]) await save(tenant, id, value);
    const body = { keep: 1, dry_run: true };
    const reply = await tenant.post(`/instances/${id}/checkpoints/prune`, body);
    assert.deepEqual([reply.status, reply.body], [200, { count: 2, dry_run: true }]);
    assert.deepEqual(await dataOf(tenant, id), [3, 2, 1]);
    assert.equal(await prune(tenant, id, 1), 2);
  });

  test('latest is the newest, and 404 while there is none', async () => {
    const tenant = api.tenant();
    const id = await waiting(tenant);
    assert.deepEqual(await list(tenant, id), []);
    assert.equal((await latest(tenant, id)).status, 404);
    await save(tenant, id, { page: 1 });
    const newest = await save(tenant, id, { page: 2 });
    const { status, body } = await latest(tenant, id);
    assert.deepEqual([status, body.id, body.checkpoint_data], [200, newest, { page: 2 }]);
  });

  test('prune keeps the newest N and says how many went; prune 0 clears', async () => {
    const tenant = api.tenant();
    const id = await waiting(tenant);
    const other = await waiting(tenant);
    await save(tenant, other, 'kept');
    for (let page = 1; page <= 5; page++) await save(tenant, id, page);
    assert.equal(await prune(tenant, id, 7), 0);
    assert.equal(await prune(tenant, id, 3), 2);
    assert.deepEqual(await dataOf(tenant, id), [5, 4, 3]);
    assert.equal(await prune(tenant, id, 0), 3);
    assert.deepEqual(await dataOf(tenant, id), []);
    assert.equal((await latest(tenant, id)).status, 404);
    assert.equal(await prune(tenant, id, 0), 0);
    assert.deepEqual(await dataOf(tenant, other), ['kept']);
  });
});

test('counts of prunes are exact among saves that are under way', async () => {
  const tenant = api.tenant();
  const id = await waiting(tenant);
  const saves = Array.from({ length: 30 }, (_, index) => save(tenant, id, index));
  const prunes = Array.from({ length: 5 }, () => prune(tenant, id, 1));
  const more = Array.from({ length: 30 }, (_, index) => save(tenant, id, index));
  await Promise.all([...saves, ...more]);
  const pruned = (await Promise.all(prunes)).reduce((sum, count) => sum + count, 0);
  assert.equal((await list(tenant, id)).length + pruned, 60);
  assert.equal((await prune(tenant, id, 0)) + pruned, 60);
});

test('every state takes them, and saving one changes nothing else', async () => {
  const tenant = api.tenant();
  const paused = await waiting(tenant);
  await tenant.signal(paused, 'pause');
  const cancelled = await waiting(tenant);
  await tenant.signal(cancelled, 'cancel');
  const ids = [
    await tenant.run([step('a', 'noop')], { next_fire_at: '2100-01-01T00:00:00Z' }),
    await waiting(tenant),
    paused,
    cancelled,
    await tenant.runUntil('completed', [step('a', 'noop')]),
    await tenant.runUntil('failed', [step('a', 'fail')]),
  ];
  for (const id of ids) {
    const before = await tenant.instance(id);
    await save(tenant, id, { state: before.state });
    assert.deepEqual(await dataOf(tenant, id), [{ state: before.state }]);
    assert.deepEqual(await tenant.instance(id), before);
    assert.equal(await prune(tenant, id, 0), 1);
  }
});

test('the newest 100 are listed', async () => {
  const tenant = api.tenant();
  const id = await waiting(tenant);
  await Promise.all(Array.from({ length: 120 }, (_, index) => save(tenant, id, index)));
  const checkpoints = await list(tenant, id);
  assert.equal(checkpoints.length, 100);
  const ids = checkpoints.map((checkpoint) => checkpoint.id);
  assert.deepEqual(ids, [...ids].sort().reverse());
  assert.equal(await prune(tenant, id, 0), 120);
});

test('what is too large is 413, what is wrong 400, and nothing is kept', async () => {
  const tenant = api.tenant();
  const id = await waiting(tenant);
  const fits = 'x'.repeat(BYTES_MAX - 2);
  assert.equal((await post(tenant, id, `${fits}x`)).status, 413);
  // Bytes count, not characters.
  assert.equal((await post(tenant, id, 'ä'.repeat(BYTES_MAX / 2))).status, 413);
  const path = `/instances/${id}/checkpoints`;
  assert.equal((await tenant.post(path, {})).status, 400);
  assert.equal((await tenant.post(path, '{')).status, 400);
  for (const keep of [undefined, null, -1, 1.5, 'all', 2 ** 31]) {
    assert.equal((await tenant.post(`${path}/prune`, { keep })).status, 400, String(keep));
  }
  assert.deepEqual(await list(tenant, id), []);
  await save(tenant, id, fits);
  assert.deepEqual(await dataOf(tenant, id), [fits]);
});

test('those of an unknown instance, or of another tenant’s, are 404', async () => {
  const tenant = api.tenant();
  const other = api.tenant();
  const theirs = await waiting(other);
  await save(other, theirs, 'theirs');
  for (const id of [UNKNOWN, theirs]) {
    const path = `/instances/${id}/checkpoints`;
    assert.equal((await post(tenant, id, 1)).status, 404);
    assert.equal((await tenant.get(path)).status, 404);
    assert.equal((await latest(tenant, id)).status, 404);
    assert.equal((await tenant.post(`${path}/prune`, { keep: 0 })).status, 404);
  }
  assert.deepEqual(await dataOf(other, theirs), ['theirs']);
});

test('they go with their sequence', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const id = await tenant.create(sequence);
  await tenant.until(id, 'completed');
  await Promise.all([1, 2, 3].map((page) => save(tenant, id, page)));
  await save(tenant, id, 4);
  assert.equal((await latest(tenant, id)).body.checkpoint_data, 4);
  assert.equal(await prune(tenant, id, 2), 2);
  assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 204);
  await eventually(async () =>
    assert.equal((await tenant.get(`/instances/${id}/checkpoints`)).status, 404),
  );
  assert.equal((await post(tenant, id, 5)).status, 404);
});
