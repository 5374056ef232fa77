/** Creations and changes of many instances: those that were answered, and those under way. */

import assert from 'node:assert/strict';
import type { BulkJob } from '../../schema/bulk-job.js';
import { eventually, type Json, newHandler, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { subject } from '../helpers/survival.js';

export const bulk = subject();
const { survives } = bulk;

const FAR = '2100-01-01T00:00:00.000Z';

/** Creates so many, which have the same body. */
async function createMany(tenant: Tenant, count: number, blocks: Json[], more: Json = {}) {
  const creation = tenant.creation(await tenant.sequence(blocks), more);
  const body = { instances: Array(count).fill(creation) };
  return async () => expectStatus(await tenant.post('/instances/batch', body), 201);
}

survives('a job goes on where it stood, and changes nothing twice', async (tenant, { sql }) => {
  const count = 1_000;
  await (await createMany(tenant, count, [step('a', newHandler())], { next_fire_at: FAR }))();
  const body = { filter: {}, action: 'signal', signal_type: 'once', limit: 10_000 };
  let id = '';
  const read = async () =>
    expectStatus(await tenant.get<BulkJob>(`/instances/bulk/jobs/${id}`), 200);
  return {
    underWay: async () => {
      const reply = await tenant.post<BulkJob>('/instances/batch-action?async=true', body);
      id = expectStatus(reply, 202).id;
      await eventually(async () => assert.ok((await read()).matched > 0));
    },
    check: async () => {
      await eventually(async () => assert.equal((await read()).state, 'completed'));
      const { matched, applied, skipped, failed } = await read();
      assert.deepEqual([matched, applied, skipped, failed], [count, count, 0, 0]);
      const { rows } = await sql.query<{ signals: number; instances: number }>(
        'select count(*)::int as signals, count(distinct instance_id)::int as instances ' +
          'from signals where instance_id in (select id from instances where tenant_id = $1)',
        [tenant.name],
      );
      assert.deepEqual(rows, [{ signals: count, instances: count }]);
    },
  };
});

survives('changes of many instances in one call', async (tenant) => {
  const count = 250;
  for (const namespace of ['paused', 'shifted']) {
    const more = { next_fire_at: FAR, namespace };
    await (await createMany(tenant, count, [step('a', 'noop')], more))();
  }
  const act = async (action: string) => {
    const body = { filter: { namespace: 'paused' }, action, limit: 10_000 };
    return expectStatus(await tenant.post<Json>('/instances/batch-action', body), 200);
  };
  await act('pause');
  const shift = { filter: { namespace: 'shifted' }, offset_secs: 60 };
  expectStatus(await tenant.patch('/instances/bulk/reschedule', shift), 200);
  return async () => {
    const { matched, applied } = await act('resume');
    assert.deepEqual([matched, applied], [count, count]);
    const path = '/instances?limit=1000&namespace=shifted';
    const shifted = expectStatus(await tenant.get<{ next_fire_at: string }[]>(path), 200);
    const times = column(shifted, 'next_fire_at');
    assert.deepEqual([times.length, ...new Set(times)], [count, '2100-01-01T00:01:00.000Z']);
  };
});

survives('a batch that was half done: the rest is done, nothing twice', async (tenant) => {
  const count = 250;
  const nap = step('b', 'sleep', { params: { duration_ms: 5 } });
  const create = await createMany(tenant, count, [step('a', 'noop'), nap, step('c', 'noop')]);
  const completed = async () =>
    (await tenant.get<{ id: string }[]>('/instances?state=completed&limit=1000')).body;
  return {
    underWay: async () => {
      await create();
      await eventually(async () => assert.ok((await completed()).length > 0));
    },
    check: async () => {
      await eventually(async () => assert.equal((await completed()).length, count));
      for (const { id } of (await completed()).filter((_, index) => index % 10 === 0)) {
        assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
      }
    },
  };
});
