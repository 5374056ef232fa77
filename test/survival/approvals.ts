/** Questions to people, answers that were given or kept, and the time for them. */

import assert from 'node:assert/strict';
import type { Approval, ApprovalPage } from '../../schema/approval.js';
import { type Json, newHandler, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { DOWN_MS, subject } from '../helpers/survival.js';

export const approvals = subject();
const { survives } = approvals;

const gated = (id: string, wait_for_input: Json = {}, handler = 'noop'): Json =>
  step(id, handler, { wait_for_input });

const asked = async (tenant: Tenant): Promise<Approval[]> =>
  expectStatus(await tenant.get<ApprovalPage>('/approvals'), 200).items;

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

survives('the end of the time for an answer, which comes meanwhile', async (tenant) => {
  const gate = { timeout: DOWN_MS, escalation_handler: 'boss' };
  let id = '';
  return {
    atTheKill: async () => {
      id = await tenant.runUntil('waiting', [gated('a', gate)]);
    },
    check: async () => {
      await tenant.until(id, 'completed');
      assert.equal((await tenant.outputsOf(id)).a?._escalated, true);
      assert.deepEqual(await asked(tenant), []);
    },
  };
});

survives('an answer, also to who repeats it', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.runUntil('waiting', [gated('a', {}, handler)]);
  const [approval] = await asked(tenant);
  const answer = () =>
    tenant.post<Json>(`/approvals/${approval?.id}`, { value: 'no', answer_id: 'once' });
  const first = expectStatus(await answer(), 200);
  return async () => {
    assert.deepEqual(expectStatus(await answer(), 200), { ...first, repeated: true });
    await tenant.complete(await tenant.task(handler));
    assert.deepEqual((await tenant.until(id, 'completed')).context.data, { a: 'no' });
  };
});

survives('an answer that came before its gate', async (tenant) => {
  const handler = newHandler();
  const id = await tenant.run([step('first', handler), gated('a')]);
  await tenant.signal(id, 'custom:human_input:a', { value: 'no' });
  return async () => {
    await tenant.complete(await tenant.task(handler));
    assert.deepEqual((await tenant.until(id, 'completed')).context.data, { a: 'no' });
    const rows = expectStatus(await tenant.get<Json[]>(`/instances/${id}/outputs`), 200);
    const said = rows.find(({ output_ref }) => output_ref === 'human_input')?.output;
    assert.equal((said as Json).answered_by, 'root');
  };
});
