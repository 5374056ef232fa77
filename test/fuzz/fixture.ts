/** What a quiet engine holds: one of everything that an id can name, and nothing that moves. */

import assert from 'node:assert/strict';
import { sleep, step, type Tenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { EXTERNAL_HANDLERS, NAMESPACE } from './arbitrary.js';
import type { KnownIds } from './known.js';

const FAR = '2199-01-01T00:00:00Z';

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
    await schedule(tenant, known, sequenceId);
  }
  for (const task of await tenant.tasks(handler)) known.add('tasks', task.id);
  expectStatus(await tenant.put('/rate-limits/a', { max_count: 5, window_seconds: 1 }), 200);
}

/** Disabled, so that it never fires. */
async function schedule(tenant: Tenant, known: KnownIds, sequence_id: string): Promise<void> {
  const reply = await tenant.post<{ id: string }>('/cron', {
    tenant_id: tenant.name,
    namespace: NAMESPACE,
    sequence_id,
    cron_expr: '@daily',
    enabled: false,
  });
  assert.equal(reply.status, 201, reply.text);
  known.add('cron', reply.body.id);
}
