/** What a person has at hand finds instances and sequences (docs/search.md). */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import type { SearchHit } from '../../schema/search.js';
import type { SequenceValidated } from '../../schema/sequence.js';
import {
  eventually,
  type Json,
  LONG_MS,
  step,
  type Tenant,
  testsOf,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();
const test = testsOf(api);

const NOOP = [step('a', 'noop')];
const WAITING = [step('a', 'work')];

async function hits(tenant: Tenant, q: string, more = ''): Promise<SearchHit[]> {
  const path = `/search?q=${encodeURIComponent(q)}${more}`;
  return expectStatus(await tenant.get<SearchHit[]>(path), 200);
}

const ids = async (tenant: Tenant, q: string, more?: string) =>
  (await hits(tenant, q, more)).filter(({ kind }) => kind === 'instance').map(({ id }) => id);

async function mistake(tenant: Tenant, path: string): Promise<string> {
  return expectStatus(await tenant.get<{ error: string }>(path), 400).error;
}

describe('an instance is found', () => {
  test('by its id, by the first eight characters of it, and by nothing shorter', async (tenant) => {
    const sequence = await tenant.sequence(NOOP, { name: 'refund' });
    const idempotency_key = randomUUID();
    const id = await tenant.create(sequence, { idempotency_key });
    const [hit] = await hits(tenant, ` ${id.toUpperCase()} `);
    const { created_at, ...rest } = hit as SearchHit;
    assert.ok(Date.parse(created_at) > 0);
    assert.deepEqual(rest, {
      kind: 'instance',
      id,
      tenant_id: tenant.name,
      namespace: 'test',
      sequence: 'refund',
      version: 1,
      state: (await tenant.instance(id)).state,
      matched_by: 'id',
      matched: id,
    });
    for (const length of [8, 12, 20])
      assert.deepEqual(await ids(tenant, id.slice(0, length)), [id]);
    assert.deepEqual(await ids(tenant, id.slice(0, 7)), []);
    assert.deepEqual(await ids(api.tenant(), id), []);
  });

  test('by its idempotency key, whether the run was real or dry', async (tenant) => {
    const sequence = await tenant.sequence(NOOP);
    const idempotency_key = `Order/${randomUUID()}`;
    const made = [
      await tenant.create(sequence, { idempotency_key }),
      await tenant.create(sequence, { idempotency_key, dry_run: true }),
    ];
    const found = await hits(tenant, idempotency_key);
    assert.deepEqual(new Set(found.map(({ id }) => id)), new Set(made));
    assert.deepEqual(
      found.map(({ matched_by, matched }) => [matched_by, matched]),
      made.map(() => ['idempotency_key', idempotency_key]),
    );
    assert.deepEqual(await ids(tenant, idempotency_key.toLowerCase()), []);
  });

  test('by any text or number in its metadata if it is recent, however it was created, and by its start', async (tenant) => {
    const metadata = (n: number): Json => ({
      order: `ORD-${n}`,
      customer: { email: `Ann${n}@Example.com`, ids: [9000 + n] },
      _internal: `hidden-${n}`,
      paid: true,
    });
    const sequence = await tenant.sequence(WAITING);
    const at = (n: number, more: Json = {}) =>
      tenant.creation(sequence, { metadata: metadata(n), ...more });
    const batch = [at(3), at(4, { idempotency_key: 'four' })];
    const next_fire_at = new Date(Date.now() + LONG_MS).toISOString();
    expectStatus(await tenant.post('/instances', at(1)), 201);
    expectStatus(await tenant.post('/instances', at(2, { next_fire_at })), 201);
    expectStatus(await tenant.post('/instances/batch', { instances: batch }), 201);
    expectStatus(await tenant.post('/instances/batch', { instances: batch.slice(1) }), 201);
    const pure = await tenant.sequence([step('a', 'transform', {})]);
    await tenant.create(pure, { metadata: metadata(5) });
    for (const n of [1, 2, 3, 4, 5]) {
      for (const q of [`ord-${n}`, `ann${n}@`, `900${n}`]) {
        const [hit, ...others] = await hits(tenant, q);
        assert.equal(hit?.matched_by, 'value', q);
        assert.deepEqual(others, [], q);
      }
      assert.deepEqual(await ids(tenant, `hidden-${n}`), []);
    }
    assert.equal((await ids(tenant, 'ORD-')).length, 5);
    assert.deepEqual(await ids(tenant, 'rd-1'), []);
    assert.deepEqual(await ids(tenant, 'true'), []);
    assert.equal((await hits(tenant, 'ord-', '&limit=2')).length, 2);
    assert.deepEqual(await ids(tenant, 'ord-', '&namespace=other'), []);
    assert.deepEqual(await ids(api.tenant(), 'ord-1'), []);
  });

  test('the whole value before values that only begin with it, then the newest first', async (tenant) => {
    const sequence = await tenant.sequence(NOOP);
    const create = (order: string) => tenant.create(sequence, { metadata: { order } });
    const [long, first, second] = [await create('A-12'), await create('A-1'), await create('A-1')];
    assert.deepEqual(await ids(tenant, 'a-1'), [second, first, long]);
  });

  test('by the members of its metadata that the sequence declares, whatever its age', async (tenant) => {
    const sequence = await tenant.sequence(NOOP, { searchable: ['metadata.order', 'order'] });
    const metadata = { order: 'META-1', other: 'OTHER-1' };
    const id = await tenant.create(sequence, { metadata });
    await api.sql.query('update instances set metadata = $1 where id = $2', ['{}', id]);
    assert.deepEqual(await ids(tenant, 'meta-'), [id]);
    assert.deepEqual(await ids(tenant, 'other-'), []);
  });

  test('by the members of its data that the sequence declares, as they change', async (tenant) => {
    const sequence = await tenant.sequence(WAITING, { searchable: ['order_id', 'customer.email'] });
    const data = { order_id: 17_001, customer: { email: 'eve@example.com', name: 'Eve' } };
    const context = { data: { ...data, note: 'unsearchable' } };
    const made = [
      await tenant.create(sequence, { context }),
      await tenant.create(sequence, { context, next_fire_at: '2100-01-01T00:00:00Z' }),
    ];
    for (const q of ['17001', 'EVE@example']) {
      assert.deepEqual(new Set(await ids(tenant, q)), new Set(made));
    }
    assert.deepEqual(await ids(tenant, 'unsearchable'), []);
    const [id = ''] = made;
    await tenant.signal(id, 'update_context', { order_id: 'B-2', customer: null });
    await eventually(async () => assert.deepEqual(await ids(tenant, 'b-2'), [id]));
    assert.deepEqual(await ids(tenant, '17001'), made.slice(1));
    assert.deepEqual(await ids(tenant, 'eve@'), made.slice(1));
  });

  test('by the searchable members of the version to which it is migrated', async (tenant) => {
    const name = `s-${randomUUID()}`;
    const blocks = [step('a', 'work')];
    const one = await tenant.sequence(blocks, { name, searchable: ['a'] });
    const two = await tenant.sequence(blocks, { name, version: 2, searchable: ['b'] });
    const context = { data: { a: 'alpha', b: 'beta' } };
    const id = await tenant.create(one, { context });
    await tenant.until(id, 'waiting');
    const body = { instance_id: id, target_sequence_id: two };
    expectStatus(await tenant.post('/sequences/migrate-instance', body), 200);
    assert.deepEqual(await ids(tenant, 'beta'), [id]);
    assert.deepEqual(await ids(tenant, 'alpha'), []);
  });

  test('no more once it was deleted, of which nothing is left', async (tenant) => {
    const sequence = await tenant.sequence(NOOP);
    const id = await tenant.create(sequence, { metadata: { order: 'gone-1' } });
    await tenant.until(id, 'completed');
    expectStatus(await tenant.delete(`/sequences/${sequence}`), 204);
    assert.deepEqual(await ids(tenant, 'gone-1'), []);
  });
});

test('values that cannot be found by a person do not hinder a creation', async (tenant) => {
  const metadata = {
    long: 'x'.repeat(5_000),
    control: 'a\u0001b',
    many: Array.from({ length: 500 }, (_, n) => `many-${n}`),
    blank: '  ',
  };
  const id = await tenant.create(await tenant.sequence(NOOP), { metadata });
  assert.deepEqual((await tenant.instance(id)).metadata, metadata);
  assert.deepEqual(await ids(tenant, 'xxxxx'), []);
  assert.deepEqual(await ids(tenant, 'many-0'), [id]);
  assert.deepEqual(await ids(tenant, 'many-499'), []);
});

test('a sequence is found by a part of its name, once, with its newest version', async (tenant) => {
  await tenant.sequence(NOOP, { name: 'Refund-order' });
  const newest = await tenant.sequence(NOOP, { name: 'Refund-order', version: 2 });
  await tenant.sequence(NOOP, { name: 'other' });
  const found = await hits(tenant, 'fund-ORD');
  assert.deepEqual(
    found.map(({ kind, id, version, state, matched_by }) => [kind, id, version, state, matched_by]),
    [['sequence', newest, 2, undefined, 'name']],
  );
});

test('a wrong request is 400 and names the member', async (tenant) => {
  assert.match(await mistake(tenant, '/search'), /q/);
  assert.match(await mistake(tenant, '/search?q=%20'), /q/);
  assert.match(await mistake(tenant, '/search?q=a&limit=51'), /limit/);
  assert.match(await mistake(tenant, '/search?q=a&state=failed'), /state/);
  const refused = await tenant.post<{ error: string }>('/sequences', {
    ...tenant.definition(NOOP),
    searchable: ['a..b'],
  });
  assert.match(expectStatus(refused, 400).error, /searchable\[0\]/);
  const checked = await tenant.post<SequenceValidated>('/sequences/validate', {
    ...tenant.definition(NOOP),
    searchable: ['order', 'data.order'],
  });
  const [warning] = expectStatus(checked, 200).warnings;
  assert.deepEqual([warning?.path, warning?.suggestion], ['searchable[1]', 'order']);
});
