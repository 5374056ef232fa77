/** What tenants have stored outlives SIGKILL: everything is set up, the server is killed, and looked at. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import type { StepLogLine } from '../../schema/edits.js';
import type { RateLimit } from '../../schema/rate.js';
import { type Json, newHandler, step, type Tenant, transform, useApi } from '../helpers/api.js';
import { exported, handedOver, passageOf } from '../helpers/capsules.js';
import { expectStatus } from '../helpers/client.js';
import { continuityOf } from '../helpers/continuity.js';
import {
  canary,
  expectedVariant,
  pair,
  promoted,
  stampOf,
  versions,
} from '../helpers/routed.js';
import { untilAll } from '../helpers/slots.js';
import { survival } from '../helpers/survival.js';

const api = useApi({ env: { ENGINE_SHARDS: '2', ENGINE_ENCRYPTION_KEY: 'ef'.repeat(32) } });
const survives = survival(api);

const read = async (tenant: Tenant, path: string) => expectStatus(await tenant.get(path), 200);

survives(
  'State, outputs, audit, checkpoints, worker tasks survive a server restart; a large context round-trips',
  async (tenant) => {
    const handler = newHandler();
    /** With the punctuation around it, just below the 256 KiB that a context may have. */
    const large = { text: 'é'.repeat(130_000) };
    const id = await tenant.run([transform('a', { n: 1 }), step('b', handler), step('c', 'noop')], {
      context: { data: large },
    });
    const task = await tenant.task(handler);
    const checkpoint = { checkpoint: { page: 3 }, checkpoint_seq: 0 };
    assert.equal(await tenant.call('heartbeat', task, checkpoint), 200);
    const checkpoints = `/instances/${id}/checkpoints`;
    for (const page of [1, 2, 3]) {
      expectStatus(await tenant.post(checkpoints, { checkpoint_data: { page } }), 201);
    }
    const paths = [
      `/instances/${id}`,
      `/instances/${id}/outputs`,
      `/instances/${id}/audit`,
      checkpoints,
      `/workers/tasks?handler_name=${handler}`,
    ];
    const readAll = () => Promise.all(paths.map((path) => read(tenant, path)));
    const told = await readAll();
    for (const each of told) assert.notDeepEqual(each, []);
    return async () => {
      assert.deepEqual(await readAll(), told);
      assert.deepEqual((await tenant.instance(id)).context.data, large);
      const [claimed] = await tenant.tasks(handler);
      assert.ok(claimed);
      await tenant.complete(claimed, { done: true });
      await tenant.until(id, 'completed');
      assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
    };
  },
);

survives('Worker task state survives a server restart', async (tenant) => {
  const handlers = { pending: newHandler(), claimed: newHandler(), completed: newHandler() };
  const tasksOf = async () => [
    await read(tenant, '/workers/tasks'),
    await Promise.all(
      Object.values(handlers).map(async (handler) => {
        const [task] = await tenant.tasks(handler);
        return tenant.attempts(task?.id ?? '');
      }),
    ),
  ];
  const ids: string[] = [];
  for (const handler of Object.values(handlers)) ids.push(await tenant.run([step('a', handler)]));
  await tenant.complete(await tenant.task(handlers.completed), { n: 1 });
  await tenant.task(handlers.claimed);
  const told = await tasksOf();
  return async () => {
    assert.deepEqual(await tasksOf(), told);
    const [claimed] = await tenant.tasks(handlers.claimed);
    assert.ok(claimed);
    await tenant.complete(claimed);
    await tenant.complete(await tenant.task(handlers.pending));
    await untilAll(tenant, ids, 'completed');
  };
});

survives('lines of logs, with the try that they belong to', async (tenant) => {
  const handler = newHandler();
  const log = (id: string, message: string) => step(id, 'log', { params: { message } });
  const id = await tenant.run([log('a', 'begin'), step('work', handler), log('b', 'end')]);
  const task = await tenant.task(handler);
  assert.equal(await tenant.call('complete', task, { logs: [{ message: 'on' }] }), 200);
  return async () => {
    await tenant.until(id, 'completed');
    const lines = (await read(tenant, `/instances/${id}/logs`)) as StepLogLine[];
    assert.deepEqual(
      lines.map(({ block_id, level, message }) => [block_id, level, message]),
      [
        ['a', 'info', 'begin'],
        ['work', 'info', 'on'],
        ['b', 'info', 'end'],
      ],
    );
  };
});

survives('keys, and so do revocations', async (tenant) => {
  const mint = async () => {
    const body = { tenant_id: tenant.name, capabilities: ['operator'] };
    return expectStatus(await api.root.post<KeyMinted>('/api-keys', body), 201);
  };
  const [kept, gone] = [await mint(), await mint()];
  expectStatus(await api.root.delete(`/api-keys/${gone.id}`), 204);
  return async () => {
    const ask = async (apiKey: string) => (await tenant.with({ apiKey }).get('/instances')).status;
    assert.deepEqual([await ask(kept.secret), await ask(gone.secret)], [200, 401]);
  };
});

survives('changes of many instances in one call', async (tenant) => {
  const at = '2100-01-01T00:00:00.000Z';
  const shiftedTo = '2100-01-01T00:01:00.000Z';
  const creation = tenant.creation(await tenant.sequence([step('a', 'noop')]), {
    next_fire_at: at,
  });
  const create = (namespace: string) =>
    tenant.post('/instances/batch', {
      instances: Array(1_100).fill({ ...creation, namespace }),
    });
  for (const namespace of ['paused', 'shifted']) expectStatus(await create(namespace), 201);
  const pause = { filter: { namespace: 'paused' }, action: 'pause', limit: 10_000 };
  expectStatus(await tenant.post('/instances/batch-action', pause), 200);
  const shift = { filter: { namespace: 'shifted' }, offset_secs: 60 };
  expectStatus(await tenant.patch('/instances/bulk/reschedule', shift), 200);
  return async () => {
    const resume = { ...pause, action: 'resume' };
    const reply = await tenant.post<Json>('/instances/batch-action', resume);
    assert.deepEqual([reply.body.matched, reply.body.applied], [1_100, 1_100]);
    const shifted = (await read(tenant, '/instances?limit=1000&namespace=shifted')) as {
      next_fire_at: string;
    }[];
    assert.deepEqual([...new Set(shifted.map((it) => it.next_fire_at))], [shiftedTo]);
  };
});

survives('the routes of releases, and the keys of what they created', async (tenant) => {
  const [v1, v2] = await pair(tenant);
  const [w1, w2] = await pair(tenant);
  const promotion = await promoted(tenant, v1, v2);
  const split = await canary(tenant, w1, w2, 50);
  const create = async (idempotency_key: string) => {
    const body = tenant.creation(w1, { idempotency_key });
    const reply = await tenant.post<{ id: string; deduplicated: boolean }>('/instances', body);
    return expectStatus(reply, 201);
  };
  const keys = Array.from({ length: 12 }, (_, at) => `key-${at}`);
  const first = await Promise.all(keys.map(create));
  return async () => {
    assert.deepEqual(
      await Promise.all(keys.map(create)),
      first.map(({ id }) => ({ id, deduplicated: true })),
    );
    const routed = await tenant.instance(await tenant.create(v1));
    assert.equal(stampOf(routed), `candidate of ${promotion}`);
    for (let at = 12; at < 24; at += 1) {
      const { id } = await create(`key-${at}`);
      const { metadata, sequence_id } = await tenant.instance(id);
      const variant = expectedVariant(split, `key-${at}`, 50);
      assert.equal(stampOf({ metadata }), `${variant} of ${split}`);
      assert.equal(sequence_id, variant === 'candidate' ? w2 : w1);
    }
  };
});

survives('rate limits that were changed or deleted', async (tenant) => {
  const put = async (key: string, max_count: number, window_seconds: number) => {
    const body = { max_count, window_seconds };
    return expectStatus(await tenant.put<RateLimit>(`/rate-limits/${key}`, body), 200);
  };
  await put('kept', 1, 60);
  await put('gone', 1, 60);
  const changed = await put('kept', 9, 90);
  expectStatus(await tenant.delete('/rate-limits/gone'), 204);
  return async () => {
    assert.deepEqual(await read(tenant, '/rate-limits'), [changed]);
    assert.deepEqual([changed.max_count, changed.window_seconds], [9, 90]);
  };
});

survives('what was used of a rate limit', async (tenant) => {
  const limit = (max_count: number) =>
    tenant.put('/rate-limits/k', { max_count, window_seconds: 3_600 });
  const limited = [step('a', 'noop', { rate_limit_key: 'k' })];
  expectStatus(await limit(1), 200);
  await tenant.runUntil('completed', limited);
  const id = await tenant.runUntil('scheduled', limited);
  const { next_fire_at } = await tenant.instance(id);
  return async () => {
    const { state, next_fire_at: due } = await tenant.instance(id);
    assert.deepEqual([state, due], ['scheduled', next_fire_at]);
    const later = await tenant.runUntil('scheduled', limited);
    expectStatus(await limit(2), 200);
    await tenant.until(later, 'completed');
    await tenant.move(id, 'running');
    await tenant.until(id, 'scheduled');
    assert.deepEqual(await tenant.outputs(id), []);
    expectStatus(await tenant.delete('/rate-limits/k'), 204);
    await tenant.until(id, 'completed');
  };
});

survives('an execution', async (tenant) => {
  const continuity = continuityOf(tenant);
  const instance_id = await continuity.paused();
  const created = await continuity.enrol(instance_id);
  return async () => {
    assert.deepEqual(await continuity.execution(created.continuity_id), created);
    const body = { instance_id, runtime_id: created.owner_runtime_id };
    expectStatus(await tenant.post('/continuity/executions', body), 409);
  };
});

for (const [what, leave] of [
  [
    'is being handed over',
    async (from) => exported(from, await from.handoff(from.id, from.destination)),
  ],
  ['was handed over', (from) => handedOver(from)],
] as readonly [string, (from: Awaited<ReturnType<typeof passageOf>>) => Promise<unknown>][]) {
  survives(`the fence of an instance that ${what}: it is left alone`, async (tenant) => {
    const id = await continuityOf(tenant).paused();
    await leave(await passageOf(tenant, id));
    const before = await tenant.instance(id);
    return async () => {
      for (const reply of await Promise.all([
        tenant.patch(`/instances/${id}/state`, { state: 'scheduled' }),
        tenant.patch(`/instances/${id}/context`, { context: { data: {} } }),
        tenant.post(`/instances/${id}/signals`, { signal_type: 'resume' }),
        tenant.post(`/instances/${id}/resume-from/a`),
      ])) {
        assert.equal(reply.status, 409, reply.text);
      }
      assert.deepEqual(await tenant.instance(id), before);
    };
  });
}

survives('the trace of an instance, for the task that comes after it', async (tenant) => {
  const [first, second] = [newHandler(), newHandler()];
  const traceparent = `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`;
  const body = tenant.creation(await tenant.sequence([step('a', first), step('b', second)]));
  const headers = { traceparent };
  expectStatus(await tenant.request('POST', '/instances', { body, headers }), 201);
  const task = await tenant.task(first);
  return async () => {
    await tenant.complete(task);
    assert.equal((await tenant.task(second)).traceparent, traceparent);
  };
});

test('there is one outcome of a release for each ended instance, whatever a kill cut off', async () => {
  const tenant = api.tenant();
  const handler = newHandler();
  const blocks = [step('a', handler), step('b', 'sleep', { params: { duration_ms: 20 } })];
  const [v1, v2] = await versions(tenant, { blocks }, { blocks });
  assert.ok(v1 && v2);
  const release = await canary(tenant, v1, v2, 50);
  const ids = await Promise.all(Array.from({ length: 40 }, () => tenant.create(v1)));
  /** Half of what is open is done, the other half fails; what a kill cuts off is left open. */
  const work = async () => {
    const tasks = await tenant.poll(handler, { limit: 40 });
    await Promise.allSettled(
      tasks.map((task, at) =>
        at % 2 === 0 ? tenant.complete(task) : tenant.fail(task, 'no', false),
      ),
    );
  };
  const retry = () =>
    Promise.allSettled(ids.slice(0, 20).map((id) => tenant.post(`/instances/${id}/retry`)));
  await work();
  const cutOff = Promise.allSettled([retry(), work()]);
  await api.restart();
  await cutOff;
  await retry();
  await work();
  await tenant.signal(ids.at(-1) ?? '', 'cancel').catch(() => undefined);
  await Promise.all(
    ids.map(async (id) => {
      const { state } = await tenant.instance(id);
      if (state === 'running') await tenant.until(id, 'completed');
    }),
  );
  const { rows } = await api.sql.query(
    'select i.id, o.instance_id from release_outcomes o full join instances i ' +
      'on i.id = o.instance_id and i.state = o.state and i.sequence_id = o.sequence_id ' +
      'and i.created_at = o.created_at and i.release_id = o.release_id ' +
      'where coalesce(i.release_id, o.release_id) = $1 and (i.id is null or ' +
      "o.instance_id is null and i.state in ('completed', 'failed', 'cancelled'))",
    [release],
  );
  assert.deepEqual(rows, []);
  const { rows: ended } = await api.sql.query<{ count: number }>(
    'select count(*)::int as count from release_outcomes where release_id = $1',
    [release],
  );
  assert.ok((ended[0]?.count ?? 0) > 0);
});
