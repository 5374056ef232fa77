/** What one shard does with many things at once: due starts, requests, steps that are under way. */

import assert from 'node:assert/strict';
import type { RequestListener, ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import type { Json, Tenant } from '../helpers/api.js';
import { eventually, parallel, sleep, step, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { listen } from '../helpers/http-handler.js';

const PRIORITIES: readonly string[] = ['low', 'normal', 'high', 'critical'];

/** As `http_request` bounds itself; steps of other kinds share a higher bound. */
const SHARD_REQUESTS_MAX = 128;
const TENANT_REQUESTS_MAX = 96;

const api = useSharedApi('open');

const noop = (id: string) => step(id, 'noop');

/**
 * Creates instances of all priorities in turns that are due at one time, which lies ahead when the
 * last of them is stored: those that are created when they are due start in the order of creation.
 */
async function createBeforeDue(
  count: number,
  leadMs: number,
): Promise<{ tenant: Tenant; listed: TaskInstance[] }> {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([noop('a')]);
  const dueMs = Date.now() + leadMs;
  const due = new Date(dueMs).toISOString();
  const instances = Array.from({ length: count }, (_, index) =>
    tenant.creation(sequence, { priority: PRIORITIES[index % 4], next_fire_at: due }),
  );
  expectStatus(await tenant.post('/instances/batch', { instances }), 201);
  if (Date.now() > dueMs) return createBeforeDue(count, 2 * leadMs);
  const { body: listed } = await tenant.get<TaskInstance[]>('/instances?limit=1000');
  return { tenant, listed };
}

describe('instances that are due at one time', () => {
  test('start by priority, whatever the order of their creation', async () => {
    const { tenant, listed } = await createBeforeDue(200, 1_000);
    for (const { id } of listed) await tenant.until(id, 'completed');
    const { body: ended } = await tenant.get<TaskInstance[]>('/instances?limit=1000');
    const startsOf = (priority: string) =>
      ended
        .filter((instance) => instance.priority.toLowerCase() === priority)
        .map(({ context }) => Date.parse(context.runtime.started_at ?? ''));
    for (const [at, lower] of PRIORITIES.slice(0, -1).entries()) {
      const last = Math.max(...startsOf(PRIORITIES[at + 1] ?? ''));
      const first = Math.min(...startsOf(lower));
      assert.ok(last <= first, `${lower} began ${last - first} ms before the one above it ended`);
    }
  });

  test('leave room for requests while there are many of them', async () => {
    const neighbour = api.tenant();
    const small = await neighbour.sequence([noop('a')]);
    const { tenant } = await createBeforeDue(2_000, 1_000);
    const isAny = async (state: string) => {
      const { body } = await tenant.get<TaskInstance[]>(`/instances?state=${state}&limit=1`);
      return body.length > 0;
    };
    let served = 0;
    for (;;) {
      const hasBegun = await isAny('completed');
      await neighbour.until(await neighbour.create(small), 'completed');
      if (!(await isAny('scheduled'))) break;
      if (hasBegun) served += 1;
    }
    assert.ok(served > 0, 'the neighbour was not served while 2,000 instances became due');
  });
});

/** Answers nothing before it is opened. */
function gate(): { onRequest: RequestListener; held: () => number; open: () => void } {
  const waiting: ServerResponse[] = [];
  let isOpen = false;
  return {
    onRequest: (_request, response) => {
      if (isOpen) response.end('through');
      else waiting.push(response);
    },
    held: () => waiting.length,
    open: () => {
      isOpen = true;
      for (const response of waiting) response.end('through');
    },
  };
}
const ask = (id: string, url: string) =>
  step(id, 'http_request', { params: { url, timeout_ms: 60_000 } });

test('Parallel steps of the process run concurrently, up to a limit per shard', async (t) => {
  const { onRequest, held, open } = gate();
  const branches: Json[][] = [];
  while (branches.length < SHARD_REQUESTS_MAX / 2 + 16) {
    // Many servers, so that the limit of requests to one of them is not met first.
    const { origin } = await listen(t, onRequest);
    for (let index = 0; index < 8; index++) branches.push([ask(`a${branches.length}`, origin)]);
  }
  // And two instances of each, so that the share of an instance is not, either.
  const runs: { tenant: Tenant; id: string }[] = [];
  for (const most of [TENANT_REQUESTS_MAX, SHARD_REQUESTS_MAX]) {
    const tenant = api.tenant();
    const sequence = await tenant.sequence([parallel('p', ...branches)]);
    for (let index = 0; index < 2; index++) {
      runs.push({ tenant, id: await tenant.create(sequence) });
    }
    await eventually(() => assert.equal(held(), most));
    await tenant.runUntil('completed', [sleep('while', 100)]);
    assert.equal(held(), most);
  }
  open();
  for (const { tenant, id } of runs) {
    await tenant.until(id, 'completed');
    assert.equal((await tenant.outputs(id)).length, branches.length);
  }
});
