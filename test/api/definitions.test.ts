/** Sequences and the creation of instances, over HTTP. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { SequenceDefinition } from '../../schema/sequence.js';
import { type Json, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const FAR = '2100-01-01T00:00:00.000Z';

const api = useSharedApi();

const blocks = [step('a', 'noop')];

const byName = async (tenant: Tenant, route: 'by-name' | 'versions', name: string) =>
  tenant.get<unknown>(`/sequences/${route}?tenant_id=${tenant.name}&namespace=test&name=${name}`);

const countOf = async (tenant: Tenant) =>
  expectStatus(await tenant.get<unknown[]>('/instances?limit=1000'), 200).length;

test('Duplicate sequence id is 409', async () => {
  const tenant = api.tenant();
  const id = await tenant.sequence(blocks);
  const reply = await tenant.post('/sequences', tenant.definition(blocks, { id }));
  assert.equal(reply.status, 409);
  const other = api.tenant();
  assert.equal((await other.post('/sequences', other.definition(blocks, { id }))).status, 409);
});

describe('Deprecated version disappears from by-name and versions, stays readable by id; deprecating twice is fine; deprecating an unknown id is 404', () => {
  describe('deprecate: hidden from by-name and versions list, still readable by id with deprecated true, idempotent, unknown id → 404', () => {
    let tenant: Tenant;
    let first: string;
    let second: string;

    before(async () => {
      tenant = api.tenant();
      first = await tenant.sequence(blocks, { name: 'order', version: 1 });
      second = await tenant.sequence(blocks, { name: 'order', version: 2 });
      for (const time of ['once', 'twice']) {
        const reply = await tenant.post(`/sequences/${second}/deprecate`);
        assert.deepEqual([reply.status, reply.text], [204, ''], time);
      }
    });

    test('by-name gives the newest that is left, unless a version is named, or 404', async () => {
      const found = expectStatus(await byName(tenant, 'by-name', 'order'), 200);
      assert.equal((found as SequenceDefinition).id, first);
      const named = expectStatus(await byName(tenant, 'by-name', 'order&version=2'), 200);
      assert.equal((named as SequenceDefinition).id, second);
      assert.equal((await byName(tenant, 'by-name', 'order&version=3')).status, 404);
      const other = api.tenant();
      await other.post(`/sequences/${await other.sequence(blocks, { name: 'order' })}/deprecate`);
      assert.equal((await byName(other, 'by-name', 'order')).status, 404);
      assert.deepEqual((await byName(other, 'versions', 'order')).body, []);
    });

    test('versions are without it', async () => {
      const versions = expectStatus(await byName(tenant, 'versions', 'order'), 200);
      assert.deepEqual(
        (versions as SequenceDefinition[]).map(({ id }) => id),
        [first],
      );
    });

    test('by id it is read as deprecated, and instances of it can be created', async () => {
      const { status, body } = await tenant.get<SequenceDefinition>(`/sequences/${second}`);
      assert.deepEqual([status, body.deprecated], [200, true]);
      await tenant.until(await tenant.create(second), 'completed');
    });

    test('an unknown id is 404, and so is a foreign one', async () => {
      assert.equal((await tenant.post(`/sequences/${randomUUID()}/deprecate`)).status, 404);
      assert.equal((await api.tenant().post(`/sequences/${first}/deprecate`)).status, 404);
    });
  });
});

describe('Delete with live instances is 409; delete of a finished or unused sequence succeeds; unknown 404', () => {
  const live: Record<string, (tenant: Tenant, sequence: string) => Promise<string>> = {
    scheduled: (tenant, sequence) => tenant.create(sequence, { next_fire_at: FAR }),
    waiting: async (tenant, sequence) =>
      (await tenant.until(await tenant.create(sequence), 'waiting')).id,
    paused: async (tenant, sequence) => {
      const id = await tenant.create(sequence);
      await tenant.signal(id, 'pause');
      return id;
    },
  };
  for (const [state, make] of Object.entries(live)) {
    test(`delete with a ${state} instance is 409`, async () => {
      const tenant = api.tenant();
      const sequence = await tenant.sequence([step('a', newHandler())]);
      const id = await make(tenant, sequence);
      assert.equal((await tenant.instance(id)).state, state);
      assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 409);
      assert.equal((await tenant.get(`/sequences/${sequence}`)).status, 200);
    });
  }

  test('delete of a finished sequence succeeds, with its failed instances if that is asked for', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([step('a', 'fail')]);
    await tenant.until(await tenant.create(sequence), 'failed');
    const cancelled = await tenant.create(sequence, { next_fire_at: FAR });
    await tenant.signal(cancelled, 'cancel');
    assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 409);
    assert.equal((await tenant.delete(`/sequences/${sequence}?cascade=true`)).status, 204);
    assert.equal((await tenant.get(`/sequences/${sequence}`)).status, 404);
    assert.equal((await tenant.get(`/instances/${cancelled}`)).status, 404);
  });

  test('delete of an unused one does', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence(blocks);
    assert.equal((await tenant.delete(`/sequences/${sequence}`)).status, 204);
    assert.equal((await tenant.get(`/sequences/${sequence}`)).status, 404);
  });

  test('unknown is 404', async () => {
    const tenant = api.tenant();
    assert.equal((await tenant.delete(`/sequences/${randomUUID()}`)).status, 404);
  });
});

test('versions of an unknown name is an empty array', async () => {
  const reply = await byName(api.tenant(), 'versions', 'nobody');
  assert.deepEqual([reply.status, reply.body], [200, []]);
});

describe('Same idempotency key twice gives one instance and the same id, also after it failed and was retried; different or absent keys give distinct instances', () => {
  const create = async (tenant: Tenant, sequence: string, key?: string) => {
    const body = tenant.creation(sequence, key === undefined ? {} : { idempotency_key: key });
    const reply = await tenant.post<{ id: string; deduplicated: boolean }>('/instances', body);
    return expectStatus(reply, 201);
  };

  test('the same key twice gives one instance and the same id', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence(blocks);
    const { id, deduplicated } = await create(tenant, sequence, 'k');
    assert.equal(deduplicated, false);
    assert.deepEqual(await create(tenant, sequence, 'k'), { id, deduplicated: true });
    assert.equal(await countOf(tenant), 1);
  });

  test('at the same time, too', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence(blocks);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => create(tenant, sequence, 'k')),
    );
    assert.equal(new Set(replies.map(({ id }) => id)).size, 1);
    assert.equal(replies.filter(({ deduplicated }) => !deduplicated).length, 1);
    assert.equal(await countOf(tenant), 1);
  });

  test('also after it failed and was retried', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([step('a', 'assert', { params: { condition: 'ok' } })]);
    const { id } = await create(tenant, sequence, 'k');
    await tenant.until(id, 'failed');
    assert.deepEqual(await create(tenant, sequence, 'k'), { id, deduplicated: true });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    assert.deepEqual(await create(tenant, sequence, 'k'), { id, deduplicated: true });
    await tenant.until(id, 'failed');
    await tenant.signal(id, 'update_context', { ok: true });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual(await create(tenant, sequence, 'k'), { id, deduplicated: true });
    assert.equal(await countOf(tenant), 1);
  });

  test('different or absent keys give distinct instances', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence(blocks);
    const keys = ['k', 'l', 'K', 'k ', undefined, undefined, '', ''];
    const replies = [];
    for (const key of keys) replies.push(await create(tenant, sequence, key));
    assert.equal(new Set(replies.map(({ id }) => id)).size, keys.length);
    assert.ok(replies.every(({ deduplicated }) => !deduplicated));
  });
});

test('Default priority reads back as `Normal`; metadata and timezone round-trip; default timezone `UTC`', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence(blocks);
  const plain = await tenant.instance(await tenant.create(sequence));
  assert.deepEqual([plain.priority, plain.timezone], ['Normal', 'UTC']);
  const metadata = { team: 'é🙂', nested: { list: [1, null, 2.5, ''] } };
  const more = { metadata, timezone: 'America/New_York' };
  const told = await tenant.instance(await tenant.create(sequence, more));
  assert.deepEqual(told.metadata, metadata);
  assert.equal(told.timezone, 'America/New_York');
});

describe('Empty batch returns count 0; unknown sequence in a batch is 404 and writes nothing; 10000 items accepted, 10001 rejected with 400', () => {
  const post = (tenant: Tenant, instances: Json[]) =>
    tenant.post<{ count: number; error: string }>('/instances/batch', { instances });

  test('empty batch returns count 0', async () => {
    assert.equal(expectStatus(await post(api.tenant(), []), 201).count, 0);
  });

  test('unknown sequence in a batch is 404 and writes nothing', async () => {
    const tenant = api.tenant();
    const known = tenant.creation(await tenant.sequence(blocks));
    const foreign = tenant.creation(await api.tenant().sequence(blocks));
    for (const unknown of [tenant.creation(randomUUID()), foreign]) {
      const reply = await post(tenant, [known, known, unknown]);
      assert.equal(reply.status, 404);
      assert.match(reply.body.error, /instances\[2\]/);
    }
    assert.equal(await countOf(tenant), 0);
  });

  test('10000 items are accepted', async () => {
    const tenant = api.tenant();
    const item = tenant.creation(await tenant.sequence(blocks), { next_fire_at: FAR });
    assert.equal(expectStatus(await post(tenant, Array(10_000).fill(item)), 201).count, 10_000);
    const last = await tenant.get<unknown[]>('/instances?offset=9999&limit=10');
    assert.equal(last.body.length, 1);
  });

  test('10001 are rejected with 400', async () => {
    const tenant = api.tenant();
    const item = tenant.creation(await tenant.sequence(blocks), { next_fire_at: FAR });
    const reply = await post(tenant, Array(10_001).fill(item));
    assert.equal(reply.status, 400);
    assert.match(reply.body.error, /instances/);
    assert.equal(await countOf(tenant), 0);
  });
});

describe('Context above 256 KiB is 413 on single and batch create, nothing stored', () => {
  const LIMIT = 256 * 1024;
  /** A context whose text has as many bytes as this. */
  const contextOf = (bytes: number) => {
    const frame = JSON.stringify({ data: { text: '' }, config: {} }).length;
    return { data: { text: 'x'.repeat(bytes - frame) }, config: {} };
  };
  const large = { context: contextOf(LIMIT + 1) };

  test('on single create', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence(blocks);
    const reply = await tenant.post('/instances', tenant.creation(sequence, large));
    assert.equal(reply.status, 413);
    assert.equal(await countOf(tenant), 0);
    await tenant.create(sequence, { context: contextOf(LIMIT) });
  });

  test('on batch create', async () => {
    const tenant = api.tenant();
    const sequence = await tenant.sequence(blocks);
    const instances = [tenant.creation(sequence), tenant.creation(sequence, large)];
    assert.equal((await tenant.post('/instances/batch', { instances })).status, 413);
    assert.equal(await countOf(tenant), 0);
  });
});

test('An instance created with a future next_fire_at stays scheduled until then', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence(blocks);
  const next_fire_at = new Date(Date.now() + 700).toISOString();
  const id = await tenant.create(sequence, { next_fire_at });
  // One that is created later and is due earlier, so that timers are seen to be served.
  const earlier = new Date(Date.parse(next_fire_at) - 400).toISOString();
  const witness = await tenant.create(sequence, { next_fire_at: earlier });
  await tenant.until(witness, 'completed');
  const done = await tenant.until(id, 'completed');
  assert.ok((done.context.runtime.started_at ?? '') >= next_fire_at);
  const far = await tenant.create(sequence, { next_fire_at: FAR });
  const { state, next_fire_at: due } = await tenant.instance(far);
  assert.deepEqual([state, due], ['scheduled', FAR]);
  assert.deepEqual(await tenant.outputs(far), []);
});
