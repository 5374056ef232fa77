/** PATCH bulk/reschedule: which instances it shifts, by how much, and what becomes of those due. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';

const api = useSharedApi();

const FAR = '2100-01-01T00:00:00.000Z';
const DAY_SECS = 86_400;
const YEAR_SECS = 365 * DAY_SECS;

interface Answer {
  readonly count: number;
  readonly updated: number;
  readonly error: string;
}

const reschedule = (tenant: Tenant, filter: unknown, offset_secs: unknown) =>
  tenant.patch<Answer>('/instances/bulk/reschedule', { filter, offset_secs });

/** How many were shifted, by a call that is answered 200. */
async function shifted(tenant: Tenant, filter: object, offset: number): Promise<number> {
  const { status, body, text } = await reschedule(tenant, filter, offset);
  assert.equal(status, 200, text);
  assert.equal(body.updated, body.count);
  return body.count;
}

const fireTime = async (tenant: Tenant, id: string) => (await tenant.instance(id)).next_fire_at;
const later = (offsetSecs: number, from = FAR) =>
  new Date(Date.parse(from) + offsetSecs * 1_000).toISOString();

describe('Bulk reschedule moves only scheduled instances, accepts negative offsets, needs offset_secs', () => {
  test('only scheduled instances move', async () => {
    const tenant = api.tenant();
    const scheduled = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    const others = [
      await tenant.runUntil('waiting', [step('a', newHandler())]),
      await tenant.runUntil('completed', [step('a', 'noop')]),
      await tenant.runUntil('failed', [step('a', 'fail')]),
      await tenant.run([step('a', 'noop')], { next_fire_at: FAR }),
    ];
    await tenant.move(others[3] ?? '', 'paused');
    const before = await Promise.all(others.map((id) => tenant.instance(id)));
    assert.equal(await shifted(tenant, {}, 3_600), 1);
    assert.equal(await fireTime(tenant, scheduled), later(3_600));
    assert.deepEqual(await Promise.all(others.map((id) => tenant.instance(id))), before);
  });

  test('a dry run counts them, and moves none', async () => {
    const tenant = api.tenant();
    const scheduled = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    await tenant.runUntil('waiting', [step('a', newHandler())]);
    for (const [filter, count] of [
      [{}, 1],
      [{ states: ['waiting'] }, 0],
    ] as const) {
      const body = { filter, offset_secs: 60, dry_run: true };
      const reply = await tenant.patch('/instances/bulk/reschedule', body);
      assert.deepEqual([reply.status, reply.body], [200, { count, updated: 0, dry_run: true }]);
    }
    assert.equal(await fireTime(tenant, scheduled), FAR);
  });

  test('negative offsets are accepted, and one that makes an instance due starts it', async () => {
    const tenant = api.tenant();
    const far = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const near = await tenant.run([step('a', 'noop')], { next_fire_at: soon });
    assert.equal(await shifted(tenant, {}, -7_200), 2);
    await tenant.until(near, 'completed');
    assert.equal(await fireTime(tenant, far), later(-7_200));
  });

  test('offset_secs is needed', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', 'noop')], { next_fire_at: FAR });
    for (const offset of [undefined, null, '60', 1.5, YEAR_SECS + 1, -YEAR_SECS - 1]) {
      const { status, body } = await reschedule(tenant, {}, offset);
      assert.equal(status, 400, String(offset));
      assert.match(body.error, /offset_secs/);
    }
    assert.equal((await reschedule(tenant, undefined, 60)).status, 400);
    assert.equal(await fireTime(tenant, id), FAR);
    assert.equal(await shifted(tenant, {}, YEAR_SECS), 1);
    assert.equal(await fireTime(tenant, id), later(YEAR_SECS));
  });
});

test('a back-off and a delay that are deferred are shifted both ways', async () => {
  const tenant = api.tenant();
  const retry = { max_attempts: 2, initial_backoff: 3_600_000, max_backoff: 3_600_000 };
  const failing = await tenant.runUntil('scheduled', [
    step('a', 'fail', { params: { retryable: true }, retry }),
  ]);
  const delayed = await tenant.runUntil('scheduled', [
    step('a', 'noop', { delay: { duration: 3_600_000 } }),
  ]);
  const at = await Promise.all([fireTime(tenant, failing), fireTime(tenant, delayed)]);
  assert.equal(await shifted(tenant, {}, 60), 2);
  assert.deepEqual(
    await Promise.all([fireTime(tenant, failing), fireTime(tenant, delayed)]),
    at.map((time) => later(60, String(time))),
  );
  assert.equal(await shifted(tenant, {}, -DAY_SECS), 2);
  await tenant.until(failing, 'failed');
  await tenant.until(delayed, 'completed');
});

test('an instance that waits for a slot of its key is held until the new time', async () => {
  const tenant = api.tenant();
  const key = { concurrency_key: 'k', max_concurrency: 1 };
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  const first = await tenant.create(sequence, key);
  const task = await tenant.task(handler);
  const second = await tenant.create(sequence, key);
  const before = String((await tenant.until(second, 'scheduled')).next_fire_at);
  assert.equal(await shifted(tenant, {}, 3_600), 1);
  assert.equal(await fireTime(tenant, second), later(3_600, before));
  await tenant.complete(task);
  await tenant.until(first, 'completed');
  assert.deepEqual(await tenant.poll(handler), []);
  assert.equal((await tenant.instance(second)).state, 'scheduled');
  assert.equal(await shifted(tenant, {}, -7_200), 1);
  await tenant.until(second, 'waiting');
});

test('the filter narrows the shift; states without scheduled match nothing', async () => {
  const tenant = api.tenant();
  const far = { next_fire_at: FAR };
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const wanted = await tenant.create(sequence, { ...far, metadata: { team: 'x' } });
  const other = await tenant.create(sequence, { ...far, namespace: 'n2' });
  const steps: [object, number][] = [
    [{ states: ['waiting', 'paused'] }, 0],
    [{ metadata: { team: 'y' } }, 0],
    [{ metadata: { team: 'x' }, states: ['scheduled', 'failed'] }, 1],
    [{ sequence_id: sequence, namespace: 'test' }, 1],
    [{ states: [] }, 2],
  ];
  for (const [filter, count] of steps) {
    assert.equal(await shifted(tenant, filter, 1), count, JSON.stringify(filter));
  }
  assert.equal(await fireTime(tenant, wanted), later(3));
  assert.equal(await fireTime(tenant, other), later(1));
});

test('another tenant’s instances are not touched', async () => {
  const tenant = api.tenant();
  const other = api.tenant();
  const theirs = await other.run([step('a', 'noop')], { next_fire_at: FAR });
  assert.equal(await shifted(tenant, {}, 60), 0);
  assert.equal((await reschedule(tenant, { tenant_id: other.name }, 60)).status, 403);
  assert.equal(await fireTime(other, theirs), FAR);
});

test('1,200 instances are shifted in one call', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const at = new Date(Date.now() + DAY_SECS * 1_000).toISOString();
  const creation = tenant.creation(sequence, { next_fire_at: at });
  await tenant.post('/instances/batch', { instances: Array(1_200).fill(creation) });
  assert.equal(await shifted(tenant, {}, 60), 1_200);
  const list = await tenant.get<{ next_fire_at: string }[]>('/instances?limit=1000');
  assert.deepEqual(
    [...new Set(list.body.map(({ next_fire_at }) => next_fire_at))],
    [later(60, at)],
  );
  assert.equal(await shifted(tenant, {}, -2 * DAY_SECS), 1_200);
  await eventually(async () => {
    const left = await tenant.get<unknown[]>('/instances?state=scheduled,running&limit=1');
    assert.deepEqual(left.body, []);
  });
});

test('times stay within the years that a timestamp can name', async () => {
  const tenant = api.tenant();
  const last = '9999-12-31T23:59:59.000Z';
  const id = await tenant.run([step('a', 'noop')], { next_fire_at: last });
  assert.equal(await shifted(tenant, {}, YEAR_SECS), 1);
  assert.equal(await fireTime(tenant, id), '9999-12-31T23:59:59.999Z');
});
