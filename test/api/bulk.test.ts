/** PATCH bulk/state: filters, terminal instances, what a change of many does to each of them. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newHandler, step, type Tenant, useSharedApi } from '../helpers/api.js';

const api = useSharedApi();

const bulk = (tenant: Tenant, filter: unknown, state: unknown) =>
  tenant.patch<{ count: number; updated: number; error: string }>('/instances/bulk/state', {
    filter,
    state,
  });
const states = async (tenant: Tenant, ids: readonly string[]) =>
  Promise.all(ids.map(async (id) => (await tenant.instance(id)).state));

test('every filter narrows the change, and all of them hold together', async () => {
  const tenant = api.tenant();
  const [a, b] = [
    await tenant.sequence([step('a', newHandler())]),
    await tenant.sequence([step('a', newHandler())]),
  ];
  const make = (sequence: string, namespace: string, more = {}) =>
    tenant.create(sequence, { namespace, ...more });
  const far = { next_fire_at: '2100-01-01T00:00:00Z' };
  const ids = [
    await make(a, 'n1'),
    await make(a, 'n2', { metadata: { team: 'x' } }),
    await make(b, 'n1', { metadata: { team: 'x' } }),
    await make(b, 'n1', far),
  ];
  const steps: [object, number, string[]][] = [
    [{ namespace: 'n3' }, 0, ['waiting', 'waiting', 'waiting', 'scheduled']],
    [{ states: ['failed'] }, 0, ['waiting', 'waiting', 'waiting', 'scheduled']],
    [{ states: ['scheduled'], namespace: 'n1' }, 1, ['waiting', 'waiting', 'waiting', 'cancelled']],
    [{ sequence_id: b, states: [] }, 1, ['waiting', 'waiting', 'cancelled', 'cancelled']],
    [{ metadata: { team: 'x' } }, 1, ['waiting', 'cancelled', 'cancelled', 'cancelled']],
    [{ tenant_id: tenant.name, states: null }, 1, Array(4).fill('cancelled')],
    [{}, 0, Array(4).fill('cancelled')],
  ];
  for (const [filter, count, after] of steps) {
    const reply = await bulk(tenant, filter, 'cancelled');
    assert.deepEqual([reply.status, reply.body], [200, { count, updated: count }]);
    assert.deepEqual(await states(tenant, ids), after);
  }
});

test('cancelling withdraws the tasks of all of them', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const sequence = await tenant.sequence([step('a', handler)]);
  for (let index = 0; index < 5; index++) await tenant.create(sequence);
  const claimed = await tenant.task(handler);
  assert.equal((await bulk(tenant, {}, 'cancelled')).body.count, 5);
  assert.deepEqual(await tenant.poll(handler, { limit: 10 }), []);
  assert.deepEqual((await tenant.get(`/workers/tasks?handler_name=${handler}`)).body, []);
  const { worker_id, claim_epoch } = claimed;
  const late = await tenant.post(`/workers/tasks/${claimed.id}/complete`, {
    worker_id,
    claim_epoch,
    output: {},
  });
  assert.equal(late.status, 409);
});

test('there is no check of the transition, and a repeated call is safe', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const ids = [
    await tenant.run([step('a', handler)]),
    await tenant.run([step('a', 'noop')], { next_fire_at: '2100-01-01T00:00:00Z' }),
  ];
  for (const round of [1, 2]) {
    assert.equal((await bulk(tenant, {}, 'paused')).body.count, 2, `round ${round}`);
    assert.deepEqual(await states(tenant, ids), ['paused', 'paused']);
  }
  assert.equal((await bulk(tenant, { states: ['paused'] }, 'scheduled')).body.count, 2);
  await tenant.until(ids[0] ?? '', 'waiting');
  await tenant.until(ids[1] ?? '', 'scheduled');
  assert.equal((await bulk(tenant, {}, 'failed')).body.count, 2);
  assert.equal((await tenant.get<unknown[]>('/instances/dlq')).body.length, 2);
  assert.equal((await bulk(tenant, {}, 'completed')).body.count, 2);
  assert.deepEqual(await states(tenant, ids), ['completed', 'completed']);
  assert.deepEqual((await tenant.get('/instances/dlq')).body, []);
});

test('a dry run answers how many it would change, and changes nothing', async () => {
  const tenant = api.tenant();
  const ids = [
    await tenant.runUntil('waiting', [step('a', newHandler())]),
    await tenant.runUntil('failed', [step('a', 'fail')]),
    await tenant.runUntil('completed', [step('a', 'noop')]),
  ];
  const before = await Promise.all(ids.map((id) => tenant.instance(id)));
  for (const [filter, count] of [
    [{}, 2],
    [{ states: ['failed', 'completed'] }, 1],
    [{ namespace: 'nowhere' }, 0],
  ] as const) {
    const body = { filter, state: 'cancelled', dry_run: true };
    const reply = await tenant.patch('/instances/bulk/state', body);
    assert.deepEqual([reply.status, reply.body], [200, { count, updated: 0, dry_run: true }]);
  }
  assert.deepEqual(await Promise.all(ids.map((id) => tenant.instance(id))), before);
  const real = { filter: {}, state: 'cancelled', dry_run: false };
  const reply = await tenant.patch('/instances/bulk/state', real);
  assert.deepEqual(reply.body, { count: 2, updated: 2 });
});

test('what is wrong is 400, and nothing changes', async () => {
  const tenant = api.tenant();
  const id = await tenant.run([step('a', newHandler())]);
  for (const [filter, state, says] of [
    [undefined, 'cancelled', /filter is required/],
    [null, 'cancelled', /filter must be an object/],
    [{}, undefined, /state is required/],
    [{}, 'gone', /state must be one of/],
    [{ states: ['gone'] }, 'cancelled', /filter\.states\[0\] must be one of/],
    [{ states: 'waiting' }, 'cancelled', /filter\.states must be an array/],
    [{ sequence_id: 'x' }, 'cancelled', /filter\.sequence_id must be a UUID/],
    [{ namespace: 5 }, 'cancelled', /filter\.namespace must be a string/],
    [{ metadata: { a: 5 } }, 'cancelled', /filter\.metadata/],
  ] as const) {
    const reply = await bulk(tenant, filter, state);
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, says);
  }
  assert.equal((await tenant.instance(id)).state, 'waiting');
});
