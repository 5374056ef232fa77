/** What of human gates outlives SIGKILL: questions, answers that were taken or kept, and times. */

import assert from 'node:assert/strict';
import type { Approval, ApprovalPage } from '../../schema/approval.js';
import { type Json, newHandler, step, type Tenant, useApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { survival } from '../helpers/survival.js';

/** The server is down for longer. */
const TIMEOUT_MS = 3_000;

const survives = survival(useApi({ env: { ENGINE_SHARDS: '2' } }), TIMEOUT_MS);

const gated = (id: string, wait_for_input: Json = {}, handler = 'noop'): Json =>
  step(id, handler, { wait_for_input });

async function asked(tenant: Tenant): Promise<Approval[]> {
  return expectStatus(await tenant.get<ApprovalPage>('/approvals'), 200).items;
}

survives('an open question, under its id and with its time', async (tenant) => {
  const id = await tenant.runUntil('waiting', [gated('a', { timeout: 600_000 })]);
  const before = await asked(tenant);
  return async () => {
    assert.deepEqual(await asked(tenant), before);
    const path = `/approvals/${before[0]?.id}`;
    expectStatus(await tenant.post(path, { value: 'yes' }), 200);
    assert.equal((await tenant.post(path, { value: 'no' })).status, 409);
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual([context.data, await asked(tenant)], [{ a: 'yes' }, []]);
  };
});

survives(
  'the end of the time for an answer, which comes while the server is away',
  async (tenant) => {
    const gate = { timeout: TIMEOUT_MS, escalation_handler: 'boss' };
    const id = await tenant.runUntil('waiting', [gated('a', gate)]);
    return async () => {
      await tenant.until(id, 'completed');
      assert.equal((await tenant.outputsOf(id)).a?._escalated, true);
      assert.deepEqual(await asked(tenant), []);
    };
  },
);

survives('an answer, also to who repeats it', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.runUntil('waiting', [gated('a', {}, handler)]);
  const [approval] = await asked(tenant);
  const body = { value: 'no', answer_id: 'once' };
  const path = `/approvals/${approval?.id}`;
  const first = expectStatus(await tenant.post<Json>(path, body), 200);
  return async () => {
    const again = expectStatus(await tenant.post<Json>(path, body), 200);
    assert.deepEqual(again, { ...first, repeated: true });
    await tenant.complete(await tenant.task(handler));
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { a: 'no' });
  };
});

survives('an answer that came before its gate', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.run([step('first', handler), gated('a')]);
  await tenant.signal(id, 'custom:human_input:a', { value: 'no' });
  return async () => {
    await tenant.complete(await tenant.task(handler));
    const { context } = await tenant.until(id, 'completed');
    assert.deepEqual(context.data, { a: 'no' });
  };
});
