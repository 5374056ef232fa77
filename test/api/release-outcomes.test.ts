/** The rows by which gates are judged: one for each ended instance that a release routed. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { fork, migrate, resumeFrom } from '../helpers/edits.js';
import { canary, keyOn, move, pair, versions } from '../helpers/routed.js';

const api = useSharedApi();

/** By instance, its state and sequence as the release's rows have them. */
async function outcomes(release: string): Promise<Record<string, string>> {
  const { rows } = await api.sql.query<{ instance_id: string; state: string; sequence_id: string }>(
    'select o.instance_id, o.state, o.sequence_id from release_outcomes o ' +
      'join instances i on i.id = o.instance_id and i.created_at = o.created_at ' +
      'where o.release_id = $1',
    [release],
  );
  return Object.fromEntries(
    rows.map((row) => [row.instance_id, `${row.state} ${row.sequence_id}`]),
  );
}

interface World {
  readonly tenant: Tenant;
  /** Of the step of both versions. */
  readonly handler: string;
  readonly v1: string;
  readonly v2: string;
  readonly release: string;
  /** Creates an instance on that side; resolves with its id. */
  onBaseline(): Promise<string>;
  onCandidate(): Promise<string>;
}

/** A canary of one half, between versions whose only step is done by a worker. */
async function canaryWorld(): Promise<World> {
  const tenant = api.tenant();
  const handler = newHandler();
  const blocks = [step('a', handler)];
  const [v1 = '', v2 = ''] = await versions(tenant, { blocks }, { blocks });
  const release = await canary(tenant, v1, v2, 50);
  const create = (variant: 'baseline' | 'candidate') =>
    tenant.create(v1, { idempotency_key: keyOn(release, variant, 50) });
  return {
    tenant,
    handler,
    v1,
    v2,
    release,
    onBaseline: () => create('baseline'),
    onCandidate: () => create('candidate'),
  };
}

test('an instance that was routed leaves a row when it has ended, and none before', async () => {
  const { tenant, handler, v1, v2, release, onBaseline, onCandidate } = await canaryWorld();
  const completed = await onBaseline();
  await tenant.complete(await tenant.task(handler));
  await tenant.until(completed, 'completed');
  const failed = await onCandidate();
  await tenant.fail(await tenant.task(handler), 'no');
  await tenant.until(failed, 'failed');
  const cancelled = await onCandidate();
  await tenant.signal(cancelled, 'cancel');
  await tenant.until(cancelled, 'cancelled');
  await onBaseline();
  assert.deepEqual(await outcomes(release), {
    [completed]: `completed ${v1}`,
    [failed]: `failed ${v2}`,
    [cancelled]: `cancelled ${v2}`,
  });
});

test('an instance that ends in the unit of its birth leaves its row with it', async () => {
  const tenant = api.tenant();
  const [v1, v2] = await versions(tenant, {}, { blocks: [step('a', 'fail')] });
  assert.ok(v1 && v2);
  const release = await canary(tenant, v1, v2, 100);
  const body = { instances: [1, 2].map(() => tenant.creation(v1)) };
  const single = await tenant.create(v1);
  expectStatus(await tenant.post('/instances/batch', body), 201);
  await eventually(async () => {
    const found = await outcomes(release);
    assert.equal(found[single], `failed ${v2}`);
    assert.deepEqual(Object.values(found), Array(3).fill(`failed ${v2}`));
  });
});

test('a failed instance that lives again has no row until it ends anew', async () => {
  const { tenant, handler, v2, release, onCandidate } = await canaryWorld();
  const revivals: Record<string, (id: string) => Promise<unknown>> = {
    retry: async (id) => expectStatus(await tenant.post(`/instances/${id}/retry`), 200),
    patch: (id) => tenant.move(id, 'scheduled'),
    many: async () => {
      const body = { action: 'retry', filter: { tenant_id: tenant.name, states: ['failed'] } };
      expectStatus(await tenant.post('/instances/batch-action', body), 200);
    },
    'resume-from': (id) => resumeFrom(tenant, id, 'a'),
  };
  for (const [name, revive] of Object.entries(revivals)) {
    const id = await onCandidate();
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    assert.equal((await outcomes(release))[id], `failed ${v2}`, name);
    await revive(id);
    const task = await tenant.task(handler);
    assert.equal((await outcomes(release))[id], undefined, name);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.equal((await outcomes(release))[id], `completed ${v2}`, name);
  }
});

test('completed and cancelled instances that are resumed count by their last end', async () => {
  const { tenant, handler, v1, release, onBaseline } = await canaryWorld();
  const id = await onBaseline();
  await tenant.complete(await tenant.task(handler));
  await tenant.until(id, 'completed');
  await resumeFrom(tenant, id, 'a');
  await tenant.task(handler);
  assert.deepEqual(await outcomes(release), {});
  await tenant.signal(id, 'cancel');
  await tenant.until(id, 'cancelled');
  assert.deepEqual(await outcomes(release), { [id]: `cancelled ${v1}` });
  await resumeFrom(tenant, id, 'a');
  await tenant.fail(await tenant.task(handler), 'no');
  await tenant.until(id, 'failed');
  assert.deepEqual(await outcomes(release), { [id]: `failed ${v1}` });
});

test('an instance that was migrated counts for the version that it ended with', async () => {
  const { tenant, handler, v2, release, onBaseline } = await canaryWorld();
  const id = await onBaseline();
  await migrate(tenant, id, v2);
  await tenant.complete(await tenant.task(handler));
  await tenant.until(id, 'completed');
  assert.deepEqual(await outcomes(release), { [id]: `completed ${v2}` });
});

test('who was not routed leaves no row: dry runs, forks, pins, forged stamps, other times', async () => {
  const tenant = api.tenant();
  const [v1, v2] = await pair(tenant);
  const early = await tenant.create(v1);
  const release = await canary(tenant, v1, v2, 100);
  const routed = await tenant.create(v1);
  const { id: forked } = await fork(tenant, routed, 'a', { dry_run: false });
  const metadata = { release: { release_id: release, variant: 'candidate' } };
  const others = [
    early,
    forked,
    (await fork(tenant, routed, 'a')).id,
    await tenant.create(v1, { dry_run: true }),
    await tenant.create(v2),
    await tenant.create(v2, { metadata }),
  ];
  await move(tenant, release, 'pause');
  others.push(await tenant.create(v1, { metadata }));
  for (const id of others) await tenant.until(id, 'completed');
  assert.deepEqual(await outcomes(release), { [routed]: `completed ${v2}` });
});

test('rows go with their instances', async () => {
  const { tenant, handler, v1, v2, release, onBaseline, onCandidate } = await canaryWorld();
  for (const create of [onBaseline, onCandidate]) {
    const id = await create();
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  }
  await move(tenant, release, 'rollback');
  assert.equal(Object.keys(await outcomes(release)).length, 2);
  expectStatus(await tenant.delete(`/sequences/${v2}`), 204);
  await eventually(async () =>
    assert.deepEqual(Object.values(await outcomes(release)), [`completed ${v1}`]),
  );
});
