/** Where creations go while releases route them. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { ScheduleCreated } from '../../schema/cron.js';
import type { TaskInstance } from '../../schema/instance.js';
import {
  eventually,
  type Json,
  newHandler,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { fork } from '../helpers/edits.js';
import {
  canary,
  expectedVariant,
  keyOn,
  move,
  pair,
  promoted,
  stampOf,
  versions,
} from '../helpers/routed.js';

const api = useSharedApi();

/** Creates one instance and reads it. */
async function created(tenant: Tenant, sequence: string, more: Json = {}): Promise<TaskInstance> {
  return tenant.instance(await tenant.create(sequence, more));
}

/** What the columns say that no caller writes, in the same form as `stampOf`. */
async function attribution(id: string): Promise<string> {
  const { rows } = await api.sql.query<{
    release_id: string | null;
    release_variant: string | null;
  }>('select release_id, release_variant from instances where id = $1', [id]);
  const [row] = rows;
  assert.ok(row);
  return row.release_id === null ? 'none' : `${row.release_variant} of ${row.release_id}`;
}

/** Sequence, stamp and columns of an instance agree with this. */
async function assertRouted(instance: TaskInstance, sequence: string, stamp: string) {
  const { id } = instance;
  const seen = [instance.sequence_id, stampOf(instance), await attribution(id)];
  assert.deepEqual(seen, [sequence, stamp, stamp]);
}

/** The instances of these sequences, whose keys have this prefix or that have none. */
async function instancesOf(tenant: Tenant, ...sequences: string[]): Promise<TaskInstance[]> {
  const lists = await Promise.all(
    sequences.map((sequence) =>
      tenant.get<TaskInstance[]>(`/instances?limit=1000&sequence_id=${sequence}`),
    ),
  );
  return lists.flatMap((list) => expectStatus(list, 200));
}

const NEEDS = { type: 'object', required: ['customer'] };

describe('a canary', () => {
  test('routing variant equals the FNV assignment for idempotency_key and for metadata.cohort_key; idempotency_key wins over cohort_key', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 40);
    const keys = ['ключ-1', 'a', ...Array.from({ length: 18 }, () => randomUUID())];
    await Promise.all(
      keys.flatMap(async (key, at) => {
        const variant = expectedVariant(release, key, 40);
        const target = variant === 'candidate' ? v2 : v1;
        const other = keys[(at + 1) % keys.length];
        for (const more of [
          { idempotency_key: key, metadata: { cohort_key: other } },
          { metadata: { cohort_key: key } },
          { idempotency_key: key, dry_run: true },
        ]) {
          const instance = await created(tenant, v1, more);
          await assertRouted(instance, target, `${variant} of ${release}`);
        }
      }),
    );
  });

  test('candidate-routed instance has candidate sequence_id and stamp; baseline-routed has baseline id and stamp', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await versions(
      tenant,
      { blocks: [step('one', 'noop')] },
      {
        blocks: [step('two', 'noop')],
      },
    );
    assert.ok(v1 && v2);
    const release = await canary(tenant, v1, v2, 50);
    for (const [variant, sequence, block] of [
      ['candidate', v2, 'two'],
      ['baseline', v1, 'one'],
    ] as const) {
      const idempotency_key = keyOn(release, variant, 50);
      const id = await tenant.create(v1, { idempotency_key, metadata: { own: 1 } });
      const instance = await tenant.until(id, 'completed');
      await assertRouted(instance, sequence, `${variant} of ${release}`);
      assert.deepEqual(instance.metadata, { own: 1, release: { release_id: release, variant } });
      assert.deepEqual(await tenant.rowsOf(id), [block]);
    }
  });

  test('splits creations without a key one by one', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 50);
    const metadata = { cohort_key: 5 };
    const all = await Promise.all(
      Array.from({ length: 40 }, () => created(tenant, v1, { metadata })),
    );
    const stamps = new Set(all.map(stampOf));
    assert.deepEqual(stamps, new Set([`baseline of ${release}`, `candidate of ${release}`]));
  });

  test('answers a repeated key with the instance that there is, wherever it would go now', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await versions(tenant, { input_schema: NEEDS }, {});
    assert.ok(v1 && v2);
    const keys = Array.from({ length: 6 }, () => randomUUID());
    const create = async (idempotency_key: string) => {
      const body = tenant.creation(v1, { idempotency_key });
      const reply = await tenant.post<{ id: string; deduplicated: boolean }>('/instances', body);
      return expectStatus(reply, 201);
    };
    const release = await canary(tenant, v1, v2, 100);
    const first = await Promise.all(keys.map(create));
    await move(tenant, release, 'rollback');
    // The baseline would refuse what the candidate took.
    const again = await Promise.all(keys.map(create));
    assert.deepEqual(
      again,
      first.map(({ id }) => ({ id, deduplicated: true })),
    );
    const fresh = await tenant.post('/instances', tenant.creation(v1, { idempotency_key: 'new' }));
    expectStatus(fresh, 422);
    const body = {
      instances: keys.map((idempotency_key) => tenant.creation(v1, { idempotency_key })),
    };
    const batch = await tenant.post('/instances/batch', body);
    assert.deepEqual(expectStatus(batch, 201), { count: keys.length, created: 0 });
    body.instances.push(tenant.creation(v1, { idempotency_key: 'new' }));
    expectStatus(await tenant.post('/instances/batch', body), 422);
    assert.equal((await instancesOf(tenant, v1, v2)).length, keys.length);
  });

  test('judges the data by the version that the instance gets', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await versions(tenant, {}, { input_schema: NEEDS });
    assert.ok(v1 && v2);
    const release = await canary(tenant, v1, v2, 50);
    const idempotency_key = keyOn(release, 'candidate', 50);
    const refused = tenant.creation(v1, { idempotency_key });
    expectStatus(await tenant.post('/instances', refused), 422);
    expectStatus(await tenant.post('/instances/batch', { instances: [refused] }), 422);
    expectStatus(
      await tenant.post(
        '/instances',
        tenant.creation(v1, { metadata: { cohort_key: idempotency_key } }),
      ),
      422,
    );
    await created(tenant, v1, { idempotency_key: keyOn(release, 'baseline', 50) });
    const taken = await created(tenant, v1, {
      idempotency_key,
      context: { data: { customer: 1 } },
    });
    assert.equal(taken.sequence_id, v2);
  });

  test('is none of other tenants, who hear nothing of its candidate', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    await canary(tenant, v1, v2, 100);
    const stranger = api.tenant();
    for (const more of [{}, { idempotency_key: 'k' }]) {
      const reply = await stranger.post<Json>('/instances', stranger.creation(v1, more));
      expectStatus(reply, 404);
      assert.match(reply.text, new RegExp(v1));
      assert.doesNotMatch(reply.text, new RegExp(v2));
    }
  });

  test('leaves instances alone that run', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const blocks = [step('a', handler)];
    const [v1, v2] = await versions(tenant, { blocks }, { blocks });
    assert.ok(v1 && v2);
    const before = await tenant.create(v1);
    const release = await canary(tenant, v1, v2, 100);
    const during = await tenant.create(v1);
    await move(tenant, release, 'rollback');
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.fail(await tenant.task(handler), 'no');
    for (const id of [before, during]) {
      expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    }
    await assertRouted(await tenant.instance(before), v1, 'none');
    await assertRouted(await tenant.instance(during), v2, `candidate of ${release}`);
  });

  test('routes each item of a batch like a creation of its own', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const [other] = await pair(tenant);
    assert.ok(other);
    const release = await canary(tenant, v1, v2, 30);
    const keys = Array.from({ length: 30 }, () => randomUUID());
    const instances = [
      ...keys.map((idempotency_key) => tenant.creation(v1, { idempotency_key })),
      ...keys.map((cohort_key) => tenant.creation(v1, { metadata: { cohort_key } })),
      tenant.creation(v2),
      tenant.creation(other, { metadata: { release: { release_id: release, variant: 'x' } } }),
    ];
    const reply = await tenant.post('/instances/batch', { instances });
    assert.deepEqual(expectStatus(reply, 201), { count: 62, created: 62 });
    const all = await instancesOf(tenant, v1, v2);
    for (const key of keys) {
      const variant = expectedVariant(release, key, 30);
      const own = all.filter(
        ({ idempotency_key, metadata }) => idempotency_key === key || metadata.cohort_key === key,
      );
      assert.equal(own.length, 2);
      for (const instance of own) {
        const sequence = variant === 'candidate' ? v2 : v1;
        await assertRouted(instance, sequence, `${variant} of ${release}`);
      }
    }
    const pinned = all.filter((instance) => stampOf(instance) === 'none');
    assert.deepEqual(
      pinned.map(({ sequence_id }) => sequence_id),
      [v2],
    );
    const [forged] = await instancesOf(tenant, other);
    assert.ok(forged);
    await assertRouted(forged, other, 'none');
  });

  test('routes what schedules create, by the cohort key of the schedule', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 50);
    const place = { tenant_id: tenant.name, namespace: 'test', sequence_id: v1 };
    const cohort_key = keyOn(release, 'candidate', 50);
    const forged = { release_id: release, variant: 'forged' };
    for (const metadata of [
      { cohort_key, release: forged },
      { which: 'baseline', cohort_key: keyOn(release, 'baseline', 50) },
    ]) {
      const body = { ...place, cron_expr: '* * * * * ? *', metadata };
      expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201);
    }
    await eventually(async () => {
      assert.ok((await instancesOf(tenant, v1)).length > 1);
      assert.ok((await instancesOf(tenant, v2)).length > 1);
    });
    for (const instance of await instancesOf(tenant, v1, v2)) {
      const variant = instance.metadata.which ?? 'candidate';
      const sequence = variant === 'candidate' ? v2 : v1;
      await assertRouted(instance, sequence, `${variant} of ${release}`);
    }
  });

  test('has schedules fire into the data that the candidate demands', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await versions(tenant, {}, { input_schema: NEEDS });
    assert.ok(v1 && v2);
    await canary(tenant, v1, v2, 100);
    const body = {
      tenant_id: tenant.name,
      namespace: 'test',
      sequence_id: v1,
      cron_expr: '* * * * * ? *',
    };
    const { id } = expectStatus(await tenant.post<ScheduleCreated>('/cron', body), 201);
    await eventually(async () => {
      const { last_error } = expectStatus(await tenant.get<Json>(`/cron/${id}`), 200);
      assert.match(String(last_error), /context\.data/);
    });
    assert.deepEqual(await instancesOf(tenant, v1, v2), []);
  });

  test('leaves no mark on forks', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 100);
    const source = await created(tenant, v1);
    await assertRouted(source, v2, `candidate of ${release}`);
    const { id } = await fork(tenant, source.id, 'a', { dry_run: false });
    await assertRouted(await tenant.instance(id), v2, 'none');
  });
});

describe('other states', () => {
  test('promoted at 1 % canary → all new creations on baseline id go to candidate', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const release = await promoted(tenant, v1, v2);
    for (const more of [{}, { idempotency_key: 'a' }, { metadata: { cohort_key: 'b' } }]) {
      const instance = await created(tenant, v1, more);
      await assertRouted(instance, v2, `candidate of ${release}`);
    }
  });

  test('paused or rolled back → baseline, no stamp; direct candidate id → no stamp', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 100);
    await assertRouted(await created(tenant, v1), v2, `candidate of ${release}`);
    await assertRouted(await created(tenant, v2), v2, 'none');
    await move(tenant, release, 'pause');
    await assertRouted(await created(tenant, v1), v1, 'none');
    await move(tenant, release, 'canary', { percent: 100 });
    await assertRouted(await created(tenant, v1), v2, `candidate of ${release}`);
    await move(tenant, release, 'rollback');
    await assertRouted(await created(tenant, v1), v1, 'none');
    await assertRouted(await created(tenant, v2), v2, 'none');
  });

  test('a stamp that the caller writes is dropped', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    const release = await canary(tenant, v1, v2, 100);
    const forged = { own: 1, release: { release_id: release, variant: 'candidate' } };
    const pinned = await created(tenant, v2, { metadata: forged });
    assert.deepEqual(pinned.metadata, { own: 1 });
    await assertRouted(pinned, v2, 'none');
    const routed = await created(tenant, v1, { metadata: { release: 'mine' } });
    await assertRouted(routed, v2, `candidate of ${release}`);
  });

  test('promotions are followed to the last version, and a canary splits behind them', async () => {
    const tenant = api.tenant();
    const [v1, v2, v3, v4] = await versions(tenant, {}, {}, {}, {});
    assert.ok(v1 && v2 && v3 && v4);
    await promoted(tenant, v1, v2);
    const second = await promoted(tenant, v2, v3);
    await assertRouted(await created(tenant, v1), v3, `candidate of ${second}`);
    await assertRouted(await created(tenant, v2), v3, `candidate of ${second}`);
    const third = await canary(tenant, v3, v4, 50);
    for (const [variant, sequence] of [
      ['candidate', v4],
      ['baseline', v3],
    ] as const) {
      const metadata = { cohort_key: keyOn(third, variant, 50) };
      const instance = await created(tenant, v1, { metadata });
      await assertRouted(instance, sequence, `${variant} of ${third}`);
    }
  });

  test('a promotion back to an earlier version wins over the older one', async () => {
    const tenant = api.tenant();
    const [v1, v2] = await pair(tenant);
    await promoted(tenant, v1, v2);
    const back = await promoted(tenant, v2, v1);
    await assertRouted(await created(tenant, v2), v1, `candidate of ${back}`);
    await assertRouted(await created(tenant, v1), v1, 'none');
  });
});
