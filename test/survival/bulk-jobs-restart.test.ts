/** Changes of many instances that are under way when the server is killed. */

import assert from 'node:assert/strict';
import type { BulkJob } from '../../schema/bulk-job.js';
import { eventually, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { survival } from '../helpers/survival.js';

const COUNT = 2_000;
const JOBS = '/instances/bulk/jobs';
const signalsTo = async (tenant: Tenant, id: string) =>
  expectStatus(await tenant.get<object[]>(`/instances/${id}/signals`), 200);

const api = useApi({ env: { ENGINE_SHARDS: '2' } });
const survives = survival(api);

survives('a job goes on where it stood, and changes nothing twice', async (tenant) => {
  const sequence_id = await tenant.sequence([step('a', newHandler())]);
  const far = '2100-01-01T00:00:00Z';
  const created = { sequence_id, tenant_id: tenant.name, namespace: 'default', next_fire_at: far };
  const instances = Array.from({ length: COUNT }, () => created);
  expectStatus(await tenant.post('/instances/batch', { instances }), 201);
  const body = { filter: {}, action: 'signal', signal_type: 'once', limit: 10_000 };
  const reply = await tenant.post<BulkJob>('/instances/batch-action?async=true', body);
  const { id } = expectStatus(reply, 202);
  await eventually(async () => {
    const job = expectStatus(await tenant.get<BulkJob>(`${JOBS}/${id}`), 200);
    assert.ok(job.matched > 0);
  });
  return async () => {
    const job = await eventually(async () => {
      const so = expectStatus(await tenant.get<BulkJob>(`${JOBS}/${id}`), 200);
      assert.equal(so.state, 'completed');
      return so;
    });
    assert.deepEqual([job.matched, job.applied, job.skipped, job.failed], [COUNT, COUNT, 0, 0]);
    const page = await tenant.get<{ id: string }[]>('/instances?limit=1000&offset=500');
    const some = expectStatus(page, 200).map((one) => one.id);
    for (const one of some) assert.equal((await signalsTo(tenant, one)).length, 1, one);
  };
});
