/** What a quiet engine holds: one of everything that an id can name, and nothing that moves. */

import { sleep, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import {
  makeApproval,
  makeCredential,
  makeEvent,
  makePendingStart,
  makeSchedule,
  makeSubscription,
  makeTrigger,
} from '../helpers/route-requests.js';
import { EXTERNAL_HANDLERS, NAMESPACE } from './arbitrary.js';
import type { KnownIds } from './known.js';

const FAR = '2199-01-01T00:00:00Z';
const OF_EACH = 3;
/** Some end early, whatever the requests do with them. */
const RELEASES = 6;
const EXECUTIONS = 6;

/** Returns when all instances are at rest. */
export async function furnish(tenant: Tenant, known: KnownIds): Promise<void> {
  const more = { namespace: NAMESPACE };
  const [handler = ''] = EXTERNAL_HANDLERS;
  const endings: readonly [state: string, block: ReturnType<typeof step>][] = [
    ['completed', step('b0', 'noop')],
    ['failed', step('b0', 'fail', { params: { message: 'no' } })],
    ['waiting', step('b0', handler)],
    ['scheduled', sleep('b0', 1)],
    ['paused', sleep('b0', 1)],
  ];
  for (const [state, block] of endings) {
    const sequenceId = await tenant.sequence([block, step('b1', 'noop')], more);
    known.add('sequences', sequenceId);
    for (let count = 0; count < 3; count += 1) {
      const isLater = state === 'scheduled' || state === 'paused';
      const body = { ...more, ...(isLater ? { next_fire_at: FAR } : {}) };
      const id = await tenant.create(sequenceId, body);
      if (state === 'paused') await tenant.move(id, 'paused');
      await tenant.until(id, state);
      known.add('instances', id);
      await tenant.post(`/instances/${id}/checkpoints`, { checkpoint_data: { count } });
    }
    known.add('cron', await makeSchedule(tenant, sequenceId));
  }
  for (let count = 0; count < OF_EACH; count += 1) {
    known.add('webhooks', await makeSubscription(tenant));
    await tenant.sequence([step('b0', 'noop')], { name: `triggered-${count}` });
    known.add('triggers', await makeTrigger(tenant, `triggered-${count}`));
    known.add('credentials', await makeCredential(tenant));
    known.add('pending-starts', await makePendingStart(tenant));
    known.add('events', await makeEvent(tenant));
    known.add('approvals', await makeApproval(tenant));
  }
  await releases(tenant, known);
  await executions(tenant, known);
  for (const task of await tenant.tasks(handler)) {
    known.add('tasks', task.id);
    known.add('effects', task.id);
  }
  expectStatus(await tenant.put('/rate-limits/a', { max_count: 5, window_seconds: 1 }), 200);
}

/** Drafts, each between two versions that nothing else is named like. */
async function releases(tenant: Tenant, known: KnownIds): Promise<void> {
  for (let count = 0; count < RELEASES; count += 1) {
    const [baseline_sequence_id = '', candidate_sequence_id = ''] = await Promise.all(
      [1, 2].map((version) => {
        const more = { namespace: NAMESPACE, name: `released-${count}`, version };
        return tenant.sequence([step('b0', 'noop')], more);
      }),
    );
    const body = { baseline_sequence_id, candidate_sequence_id };
    const reply = await tenant.post<{ id: string }>('/releases', body);
    known.add('sequences', baseline_sequence_id);
    known.add('sequences', candidate_sequence_id);
    known.add('releases', expectStatus(reply, 201).id);
  }
}

/** Paused ones, each with what can be asked about one: a checkpoint, a runtime, a handoff, a plan. */
async function executions(tenant: Tenant, known: KnownIds): Promise<void> {
  const continuity = continuityOf(tenant);
  const [from = '', to = ''] = await Promise.all(
    [1, 2].map((version) => {
      const more = { namespace: NAMESPACE, name: 'migrated', version };
      return tenant.sequence([step('b0', 'noop'), step('b1', 'noop')], more);
    }),
  );
  for (let count = 0; count < EXECUTIONS; count += 1) {
    const id = await tenant.create(from, { namespace: NAMESPACE, next_fire_at: FAR });
    await tenant.move(id, 'paused');
    await continuity.enrol(id);
    const data = { checkpoint_data: { count } };
    const saved = await tenant.post<{ id: string }>(`/instances/${id}/checkpoints`, data);
    const plan = await tenant.post<{ id: string }>('/continuity/migrations/plan', {
      continuity_id: id,
      to_sequence_id: to,
      to_version: 2,
    });
    const { runtime_id } = await continuity.runtime();
    const handoff = await continuity.handoff(id, runtime_id);
    known.add('executions', id);
    known.add('checkpoints', expectStatus(saved, 201).id);
    known.add('migrations', expectStatus(plan, 200).id);
    known.add('runtimes', runtime_id);
    known.add('handoffs', handoff.id);
    known.add('placements', handoff.placement_decision_id);
  }
}
