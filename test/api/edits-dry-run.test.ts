/** Dry runs from their creation on, and the keys under which they are known. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Json, newHandler, step, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { resumeFrom } from '../helpers/edits.js';

const tenant = useTenant();

const DRY = { dry_run: true };

describe('a dry run', () => {
  test('is marked in context.runtime and performs nothing outside', async () => {
    const handler = newHandler();
    const id = await tenant.runUntil('completed', [step('a', handler)], {}, DRY);
    assert.equal((await tenant.instance(id)).context.runtime.dry_run, true);
    assert.deepEqual(await tenant.tasks(handler), []);
  });

  test('is marked before it starts', async () => {
    const far = { ...DRY, next_fire_at: '2100-01-01T00:00:00Z' };
    const id = await tenant.run([step('a', newHandler())], far);
    assert.deepEqual((await tenant.instance(id)).context.runtime, { dry_run: true });
  });

  test('stays one through a retry and a resume', async () => {
    const id = await tenant.runUntil(
      'failed',
      [step('a', 'fail'), step('b', newHandler())],
      {},
      DRY,
    );
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'failed');
    await resumeFrom(tenant, id, 'b');
    const { context } = await tenant.until(id, 'completed');
    assert.equal(context.runtime.dry_run, true);
  });

  test('is no real run when dry_run is false, null or absent', async () => {
    for (const more of [{ dry_run: false }, { dry_run: null }, {}]) {
      const id = await tenant.run([step('a', newHandler())], more);
      const { context } = await tenant.until(id, 'waiting');
      assert.equal(context.runtime.dry_run, undefined);
    }
  });

  test('can be an item of a batch', async () => {
    const handler = newHandler();
    const sequence = await tenant.sequence([step('a', handler)]);
    const metadata = { batch: 'dry' };
    const items = [tenant.creation(sequence, { ...DRY, metadata }), tenant.creation(sequence)];
    expectStatus(await tenant.post('/instances/batch', { instances: items }), 201);
    const reply = await tenant.get<{ id: string }[]>('/instances?metadata.batch=dry');
    const [dry] = expectStatus(reply, 200);
    assert.ok(dry);
    await tenant.until(dry.id, 'completed');
    assert.notEqual((await tenant.task(handler)).instance_id, dry.id);
  });
});

describe('idempotency keys of dry runs', () => {
  interface Created {
    readonly id: string;
    readonly deduplicated: boolean;
  }
  const create = async (sequence: string, more: Json) =>
    expectStatus(await tenant.post<Created>('/instances', tenant.creation(sequence, more)), 201);

  test('are not those of real runs, and each kind has its own', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const key = { idempotency_key: 'order-1' };
    const dry = await create(sequence, { ...key, ...DRY });
    const real = await create(sequence, key);
    assert.notEqual(dry.id, real.id);
    assert.deepEqual([dry.deduplicated, real.deduplicated], [false, false]);
    assert.deepEqual(await create(sequence, { ...key, ...DRY }), { ...dry, deduplicated: true });
    assert.deepEqual(await create(sequence, key), { ...real, deduplicated: true });
    assert.equal((await tenant.instance(dry.id)).idempotency_key, 'dryrun:order-1');
    assert.equal((await tenant.instance(real.id)).idempotency_key, 'order-1');
  });

  test('dedupe within a batch in the same way', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    const key = { idempotency_key: 'order-2' };
    const items = [key, { ...key, ...DRY }, { ...key, ...DRY }, key];
    const instances = items.map((more) => tenant.creation(sequence, more));
    const reply = await tenant.post('/instances/batch', { instances });
    assert.deepEqual(expectStatus(reply, 201), { count: 4, created: 2 });
  });

  test('a real run is never taken for done because of a dry one: 409', async () => {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    await create(sequence, { idempotency_key: 'order-3', ...DRY });
    const real = tenant.creation(sequence, { idempotency_key: 'dryrun:order-3' });
    assert.equal((await tenant.post('/instances', real)).status, 409);
  });
});
