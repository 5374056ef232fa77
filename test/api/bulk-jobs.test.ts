/** Changes of many instances that go on behind their answer: asked for, looked at, listed and ended. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BulkJob } from '../../schema/bulk-job.js';
import { eventually, newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const api = useSharedApi();

const JOBS = '/instances/bulk/jobs';
const signalsTo = async (tenant: Tenant, id: string) =>
  expectStatus(await tenant.get<object[]>(`/instances/${id}/signals`), 200);

async function waiting(tenant: Tenant, count: number): Promise<string[]> {
  const sequence = await tenant.sequence([step('a', newHandler())]);
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await tenant.create(sequence));
  await Promise.all(ids.map((id) => tenant.until(id, 'waiting')));
  return ids;
}

async function ended(tenant: Tenant, id: string): Promise<BulkJob> {
  return eventually(async () => {
    const job = expectStatus(await tenant.get<BulkJob>(`${JOBS}/${id}`), 200);
    assert.notEqual(job.ended_at, null, job.state);
    return job;
  });
}

test('a change of many that is to be a job answers where it can be asked for, and is done', async () => {
  const tenant = api.tenant();
  const ids = await waiting(tenant, 5);
  const request = { filter: {}, action: 'signal', signal_type: 'hello', payload: { n: 1 } };
  const reply = await tenant.post<BulkJob>('/instances/batch-action?async=true', request);
  const begun = expectStatus(reply, 202);
  assert.equal(reply.headers.location, `/api/v1${JOBS}/${begun.id}`);
  assert.deepEqual(
    [begun.tenant_id, begun.operation, begun.request, begun.state, begun.matched, begun.ended_at],
    [tenant.name, 'batch_action', request, 'running', 0, null],
  );
  const job = await ended(tenant, begun.id);
  assert.deepEqual(
    [job.state, job.matched, job.applied, job.skipped, job.failed, job.error],
    ['completed', 5, 5, 0, 0, null],
  );
  for (const id of ids) assert.equal((await signalsTo(tenant, id)).length, 1, id);
});

test('the other changes of many are jobs as well, a dry run too', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', newHandler())]);
  const id = await tenant.create(sequence, { next_fire_at: '2100-01-01T00:00:00Z' });
  const path = '/instances/bulk';
  const ask = async (name: string, body: object) => {
    const headers = { prefer: 'respond-async' };
    const reply = await tenant.request<BulkJob>('PATCH', `${path}/${name}`, { body, headers });
    return ended(tenant, expectStatus(reply, 202).id);
  };
  const moved = await ask('reschedule', { filter: {}, offset_secs: 60 });
  assert.deepEqual([moved.operation, moved.applied], ['reschedule', 1]);
  assert.equal((await tenant.instance(id)).next_fire_at, '2100-01-01T00:01:00.000Z');
  const seen = await ask('state', { filter: {}, state: 'cancelled', dry_run: true });
  assert.deepEqual([seen.operation, seen.applied, seen.request.dry_run], ['state', 1, true]);
  assert.equal((await tenant.instance(id)).state, 'scheduled');
  await ask('state', { filter: {}, state: 'cancelled' });
  assert.equal((await tenant.instance(id)).state, 'cancelled');
});

test('jobs are listed newest first, by state, with a way to the next page', async () => {
  const tenant = api.tenant();
  const made: string[] = [];
  for (const state of ['paused', 'scheduled', 'cancelled']) {
    const body = { filter: {}, state };
    const reply = await tenant.patch<BulkJob>('/instances/bulk/state?async=true', body);
    made.unshift((await ended(tenant, expectStatus(reply, 202).id)).id);
  }
  const list = async (query: string) => {
    const reply = await tenant.get<BulkJob[]>(`${JOBS}?${query}`);
    return { ids: expectStatus(reply, 200).map(({ id }) => id), headers: reply.headers };
  };
  assert.deepEqual((await list('')).ids, made);
  assert.deepEqual((await list('state=completed')).ids, made);
  assert.deepEqual((await list('state=running')).ids, []);
  const first = await list('limit=2');
  const next = await list(`limit=2&cursor=${first.headers['x-next-cursor']}`);
  assert.deepEqual([first.ids, next.ids], [made.slice(0, 2), made.slice(2)]);
});

test('a job that has ended cannot be ended; one that was ended can be again', async () => {
  const tenant = api.tenant();
  const asked = { filter: {}, state: 'paused' };
  const reply = await tenant.patch<BulkJob>('/instances/bulk/state?async=true', asked);
  const { id } = await ended(tenant, expectStatus(reply, 202).id);
  const late = await tenant.post<{ error: string }>(`${JOBS}/${id}/cancel`, {});
  assert.deepEqual([late.status, late.body.error], [409, `conflict: job ${id} is completed`]);
});

test('the job of another tenant is nowhere', async () => {
  const [tenant, other] = [api.tenant(), api.tenant()];
  const asked = { filter: {}, state: 'paused' };
  const reply = await tenant.patch<BulkJob>('/instances/bulk/state?async=true', asked);
  const { id } = expectStatus(reply, 202);
  expectStatus(await other.get(`${JOBS}/${id}`), 404);
  expectStatus(await other.post(`${JOBS}/${id}/cancel`, {}), 404);
  assert.deepEqual((await other.get(JOBS)).body, []);
  assert.equal((await ended(tenant, id)).state, 'completed');
});
