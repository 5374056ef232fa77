/** What is due at one time starts by priority, and a herd of timers does not hold up requests. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../../schema/instance.js';
import { type Tenant, useApi } from '../../helpers/api.js';

const PRIORITIES: readonly string[] = ['low', 'normal', 'high', 'critical'];
const NOOP = { type: 'step', id: 'a', handler: 'noop' };

const api = useApi({ env: { ENGINE_SHARDS: '1' } });

/** 0 critical … 3 low. */
function rankOf(instance: TaskInstance): number {
  return 3 - PRIORITIES.indexOf(instance.priority.toLowerCase());
}

function startedAt(instance: TaskInstance): number {
  return Date.parse(instance.context.runtime.started_at ?? '');
}

/**
 * Creates instances of all priorities in turns that are due at one time, which lies ahead when the
 * last of them is stored: those that are created when they are due start in the order of creation.
 */
async function createBeforeDue(
  count: number,
  leadMs: number,
): Promise<{ tenant: Tenant; listed: TaskInstance[] }> {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([NOOP]);
  const dueMs = Date.now() + leadMs;
  const due = new Date(dueMs).toISOString();
  const instances = Array.from({ length: count }, (_, index) =>
    tenant.creation(sequence, { priority: PRIORITIES[index % 4], next_fire_at: due }),
  );
  await tenant.post('/instances/batch', { instances });
  if (Date.now() > dueMs) return createBeforeDue(count, 2 * leadMs);
  const { body: listed } = await tenant.get<TaskInstance[]>('/instances?limit=1000');
  return { tenant, listed };
}

describe('instances that are due at one time', () => {
  test('start by priority, whatever the order of their creation', async () => {
    const { tenant, listed } = await createBeforeDue(400, 1_000);
    for (const { id } of listed) await tenant.until(id, 'completed');
    const { body: ended } = await tenant.get<TaskInstance[]>('/instances?limit=1000');
    const ends = [0, 1, 2, 3].map((rank) =>
      ended.filter((instance) => rankOf(instance) === rank).map(startedAt),
    );
    for (let rank = 1; rank < 4; rank += 1) {
      const last = Math.max(...(ends[rank - 1] as number[]));
      const first = Math.min(...(ends[rank] as number[]));
      assert.ok(
        last <= first,
        `rank ${rank} began ${last - first} ms before the one above it ended`,
      );
    }
  });

  test('leave room for requests while there are many of them', async () => {
    const tenant = api.tenant();
    const neighbour = api.tenant();
    const sequence = await tenant.sequence([NOOP]);
    const small = await neighbour.sequence([NOOP]);
    const due = new Date(Date.now() + 500).toISOString();
    const herd = Array.from({ length: 5_000 }, () =>
      tenant.creation(sequence, { next_fire_at: due }),
    );
    await tenant.post('/instances/batch', { instances: herd });
    let served = 0;
    for (;;) {
      const id = await neighbour.create(small);
      await neighbour.until(id, 'completed');
      served += 1;
      const { body: left } = await tenant.get<TaskInstance[]>('/instances?state=scheduled&limit=1');
      if (left.length === 0) break;
    }
    assert.ok(served > 1, 'the neighbour was served once while 5,000 instances became due');
  });
});
