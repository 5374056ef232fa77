/** Instances are read, changed and told things, over HTTP. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { AuditEntry, TaskInstance } from '../../schema/instance.js';
import {
  newHandler,
  sleep,
  step,
  type Tenant,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const FAR = '2100-01-01T00:00:00.000Z';

const api = useSharedApi();

const list = async (tenant: Tenant, query = '') => {
  const reply = await tenant.get<TaskInstance[]>(`/instances?${query}`);
  return expectStatus(reply, 200).map(({ id }) => id);
};
const sorted = (...ids: string[]) => [...ids].sort();
const later = { next_fire_at: FAR };

describe('List filters by state, tenant, namespace and sequence; limit and offset page without overlap', () => {
  let tenant: Tenant;
  let other: Tenant;
  let sequence: string;
  let scheduled: string;
  let completed: string;
  let elsewhere: string;
  let second: string;

  before(async () => {
    [tenant, other] = [api.tenant(), api.tenant()];
    sequence = await tenant.sequence([step('a', 'noop')]);
    scheduled = await tenant.create(sequence, later);
    completed = await tenant.create(sequence);
    elsewhere = await tenant.create(sequence, { ...later, namespace: 'elsewhere' });
    second = await tenant.run([step('a', newHandler())]);
    await other.run([step('a', 'noop')], later);
    await tenant.until(completed, 'completed');
    await tenant.until(second, 'waiting');
  });

  test('by state', async () => {
    assert.deepEqual(await list(tenant, 'state=completed'), [completed]);
    const both = sorted(...(await list(tenant, 'state=waiting,completed')));
    assert.deepEqual(both, sorted(completed, second));
    assert.deepEqual(await list(tenant, 'state=failed'), []);
  });

  test('by tenant', async () => {
    const all = sorted(scheduled, completed, elsewhere, second);
    assert.deepEqual(sorted(...(await list(tenant))), all);
    assert.deepEqual(sorted(...(await list(tenant, `tenant_id=${other.name}`))), all);
    assert.equal((await list(other)).length, 1);
  });

  test('by namespace', async () => {
    assert.deepEqual(await list(tenant, 'namespace=elsewhere'), [elsewhere]);
    assert.equal((await list(tenant, 'namespace=test')).length, 3);
  });

  test('by sequence', async () => {
    const all = sorted(scheduled, completed, elsewhere);
    assert.deepEqual(sorted(...(await list(tenant, `sequence_id=${sequence}`))), all);
    assert.deepEqual(await list(tenant, `sequence_id=${randomUUID()}`), []);
    const narrow = `sequence_id=${sequence}&state=scheduled&namespace=test`;
    assert.deepEqual(await list(tenant, narrow), [scheduled]);
  });

  test('limit and offset page without overlap', async () => {
    const paged = api.tenant();
    const item = paged.creation(await paged.sequence([step('a', 'noop')]), later);
    expectStatus(await paged.post('/instances/batch', { instances: Array(23).fill(item) }), 201);
    const pages: string[] = [];
    for (let offset = 0; offset < 25; offset += 5) {
      pages.push(...(await list(paged, `limit=5&offset=${offset}`)));
    }
    assert.equal(new Set(pages).size, 23);
    assert.deepEqual(pages, await list(paged));
  });
});

describe('PATCH state scheduled to paused works; invalid move on a terminal instance is 4xx; unknown instance 404', () => {
  test('scheduled to paused works', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', 'noop')], later);
    assert.equal((await tenant.move(id, 'paused')).state, 'paused');
    assert.equal((await tenant.instance(id)).state, 'paused');
  });

  test('every move of a terminal instance is 400', async () => {
    const tenant = api.tenant();
    const ids = [
      await tenant.run([step('a', 'noop')]),
      await tenant.run([step('a', 'noop')], later),
    ];
    await tenant.until(ids[0] ?? '', 'completed');
    await tenant.move(ids[1] ?? '', 'cancelled');
    for (const id of ids) {
      const before = await tenant.instance(id);
      for (const state of ['scheduled', 'running', 'waiting', 'paused', 'failed', before.state]) {
        const reply = await tenant.patch(`/instances/${id}/state`, { state });
        assert.equal(reply.status, 400, `${before.state} to ${state}`);
      }
      assert.deepEqual(await tenant.instance(id), before);
    }
  });

  test('unknown instance 404', async () => {
    const reply = await api.tenant().patch(`/instances/${randomUUID()}/state`, { state: 'paused' });
    assert.equal(reply.status, 404);
  });
});

describe('PATCH context replaces data wholly (old top-level keys vanish), works on running and completed instances, 404 on unknown', () => {
  const replace = (tenant: Tenant, id: string) =>
    tenant.patch(`/instances/${id}/context`, { context: { data: { fresh: 1 } } });
  const states = {
    running: sleep('a', 600_000),
    completed: step('a', 'noop'),
  };
  for (const [state, block] of Object.entries(states)) {
    test(`on a ${state} instance`, async () => {
      const tenant = api.tenant();
      const id = await tenant.runUntil(state, [block], { old: 1, fresh: { deep: true } });
      assert.equal((await replace(tenant, id)).status, 200);
      const instance = await tenant.instance(id);
      assert.deepEqual([instance.state, instance.context.data], [state, { fresh: 1 }]);
    });
  }

  test('404 on unknown', async () => {
    assert.equal((await replace(api.tenant(), randomUUID())).status, 404);
  });
});

describe('Retry: failed goes back to scheduled; non-failed is 400; unknown is 404; context is kept; already completed blocks are not run twice', () => {
  const retry = (tenant: Tenant, id: string) => tenant.post(`/instances/${id}/retry`);

  test('failed goes back to scheduled; context is kept; completed blocks are not run twice', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const data = { kept: { n: 1 } };
    const blocks = [
      step('a', handler),
      transform('b', { n: '{{ data.kept.n }}' }),
      step('c', handler),
    ];
    const id = await tenant.run(blocks, { context: { data, config: { c: 1 } } });
    await tenant.complete(await tenant.task(handler), { done: true });
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    const rows = await tenant.outputs(id);
    const { body, status } = await retry(tenant, id);
    assert.deepEqual([status, body], [200, { id, state: 'scheduled' }]);
    const task = await tenant.task(handler);
    assert.equal(task.block_id, 'c');
    const { context } = await tenant.instance(id);
    assert.deepEqual([context.data, context.config], [{ ...data, done: true }, { c: 1 }]);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.outputs(id)).slice(0, 2), rows);
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'b', 'c']);
  });

  test('non-failed is 400', async () => {
    const tenant = api.tenant();
    const ids = {
      scheduled: await tenant.run([step('a', 'noop')], later),
      waiting: await tenant.run([step('a', newHandler())]),
      running: await tenant.run([sleep('a', 600_000)]),
      completed: await tenant.run([step('a', 'noop')]),
      cancelled: await tenant.run([step('a', 'noop')], later),
      paused: await tenant.run([step('a', 'noop')], later),
    };
    await tenant.signal(ids.cancelled, 'cancel');
    await tenant.signal(ids.paused, 'pause');
    for (const [state, id] of Object.entries(ids)) {
      await tenant.until(id, state);
      assert.equal((await retry(tenant, id)).status, 400, state);
      assert.equal((await tenant.instance(id)).state, state);
    }
  });

  test('unknown is 404', async () => {
    assert.equal((await retry(api.tenant(), randomUUID())).status, 404);
  });
});

test('DLQ lists only failed instances of the tenant', async () => {
  const tenant = api.tenant();
  const other = api.tenant();
  const failed = await tenant.runUntil('failed', [step('a', 'fail')]);
  await tenant.runUntil('completed', [step('a', 'noop')]);
  await tenant.run([step('a', newHandler())]);
  const retried = await tenant.runUntil('failed', [
    step('a', 'assert', { params: { condition: 'ok' } }),
  ]);
  const theirs = await other.runUntil('failed', [step('a', 'fail')]);
  assert.deepEqual(await tenant.deadLetters(), [retried, failed]);
  await tenant.signal(retried, 'update_context', { ok: true });
  expectStatus(await tenant.post(`/instances/${retried}/retry`), 200);
  assert.deepEqual(await tenant.deadLetters(), [failed]);
  await tenant.until(retried, 'completed');
  assert.deepEqual(await tenant.deadLetters(), [failed]);
  assert.deepEqual(await other.deadLetters(), [theirs]);
});

describe('Signal to completed or cancelled instance is 400; to unknown 404; without payload accepted; reply has signal_id', () => {
  const send = (tenant: Tenant, id: string, signal_type = 'custom:hello') =>
    tenant.post<{ signal_id: string }>(`/instances/${id}/signals`, { signal_type });

  test('to a completed or cancelled instance it is 400', async () => {
    const tenant = api.tenant();
    const completed = await tenant.runUntil('completed', [step('a', 'noop')]);
    const cancelled = await tenant.run([step('a', 'noop')], later);
    await tenant.signal(cancelled, 'cancel');
    for (const id of [completed, cancelled]) {
      for (const type of ['pause', 'resume', 'cancel', 'update_context', 'custom:hello']) {
        assert.equal((await send(tenant, id, type)).status, 400, type);
      }
    }
  });

  test('to an unknown instance it is 404', async () => {
    assert.equal((await send(api.tenant(), randomUUID())).status, 404);
  });

  test('without payload it is accepted, and the reply has signal_id', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', newHandler())]);
    const [one, two] = [await send(tenant, id), await send(tenant, id, 'pause')];
    assert.deepEqual([one.status, two.status], [201, 201]);
    assert.match(one.body.signal_id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.notEqual(one.body.signal_id, two.body.signal_id);
  });
});

describe('Pause then resume drives paused then back to progress; pause/resume/pause/resume never leaves it paused', () => {
  for (const rounds of [1, 2]) {
    test(`${rounds === 1 ? 'once' : 'twice'}, in every state`, async () => {
      const tenant = api.tenant();
      const handler = newHandler();
      const ids = [
        await tenant.run([step('a', handler)]),
        await tenant.run([sleep('a', 50), step('b', handler)]),
        await tenant.run([step('d', 'noop', { delay: { duration: 50 } }), step('b', handler)]),
      ];
      const unborn = await tenant.run([step('a', handler)], later);
      for (const id of [...ids, unborn]) {
        for (let round = 0; round < rounds; round++) {
          await tenant.signal(id, 'pause');
          assert.equal((await tenant.instance(id)).state, 'paused');
          await tenant.signal(id, 'resume');
          assert.notEqual((await tenant.instance(id)).state, 'paused');
        }
      }
      for (const _ of ids) await tenant.complete(await tenant.task(handler));
      for (const id of ids) await tenant.until(id, 'completed');
      assert.equal((await tenant.instance(unborn)).state, 'scheduled');
    });
  }

  test('also when nobody waits for one signal before the next', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([sleep('a', 50), step('b', handler)]);
    const signals = ['pause', 'resume', 'pause', 'resume'];
    for (const type of signals) await tenant.signal(id, type);
    await tenant.complete(await tenant.task(handler));
    await tenant.until(id, 'completed');
  });
});

test('update_context on a paused instance makes the new key visible while it stays paused', async () => {
  const tenant = api.tenant();
  const id = await tenant.run([step('a', newHandler())], { context: { data: { old: 1 } } });
  await tenant.signal(id, 'pause');
  await tenant.signal(id, 'update_context', { fresh: { n: 2 } });
  const { state, context } = await tenant.instance(id);
  assert.equal(state, 'paused');
  assert.deepEqual(context.data, { old: 1, fresh: { n: 2 } });
});

describe('Bulk cancel honours tenant, namespace, sequence and state filters; no match gives count 0', () => {
  const cancel = async (tenant: Tenant, filter: object) => {
    const body = { filter, state: 'cancelled' };
    const reply = await tenant.patch<{ count: number }>('/instances/bulk/state', body);
    return expectStatus(reply, 200).count;
  };

  test('every filter alone', async () => {
    const tenant = api.tenant();
    const other = api.tenant();
    const theirs = await other.run([step('a', 'noop')], later);
    const blocks = [step('a', newHandler())];
    const sequence = await tenant.sequence(blocks);
    const narrow = {
      namespace: await tenant.run(blocks, { ...later, namespace: 'narrow' }),
      sequence: await tenant.create(sequence, later),
      state: await tenant.run(blocks),
      tenant: await tenant.run(blocks, later),
    };
    await tenant.until(narrow.state, 'waiting');
    const cancelled = () => list(tenant, 'state=cancelled');
    assert.equal(await cancel(tenant, { namespace: 'narrow' }), 1);
    assert.deepEqual(await cancelled(), [narrow.namespace]);
    assert.equal(await cancel(tenant, { sequence_id: sequence }), 1);
    assert.equal((await tenant.instance(narrow.sequence)).state, 'cancelled');
    assert.equal(await cancel(tenant, { states: ['waiting', 'running'] }), 1);
    assert.equal((await tenant.instance(narrow.state)).state, 'cancelled');
    assert.equal(await cancel(tenant, { tenant_id: tenant.name }), 1);
    assert.equal((await cancelled()).length, 4);
    assert.equal((await other.instance(theirs)).state, 'scheduled');
  });

  test('no match gives count 0', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', newHandler())]);
    await tenant.until(id, 'waiting');
    for (const filter of [
      { namespace: 'nowhere' },
      { sequence_id: randomUUID() },
      { states: ['failed', 'paused'] },
      { namespace: 'test', states: ['scheduled'] },
    ]) {
      assert.equal(await cancel(tenant, filter), 0);
    }
    assert.equal(await cancel(api.tenant(), {}), 0);
    assert.equal((await tenant.instance(id)).state, 'waiting');
  });
});

describe('Audit of a completed instance is a non-empty array with id, event_type, timestamps; unknown instance 404', () => {
  test('of a completed instance', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', [step('a', 'noop')]);
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    assert.notEqual(audit.length, 0);
    assert.equal(new Set(audit.map((entry) => entry.id)).size, audit.length);
    for (const entry of audit) {
      assert.equal(entry.instance_id, id);
      assert.notEqual(entry.event_type, '');
      assert.ok(Math.abs(Date.parse(entry.created_at) - Date.now()) < 60_000);
    }
    const { from_state, to_state } = audit[0] ?? {};
    assert.deepEqual([from_state, to_state], ['running', 'completed']);
  });

  test('unknown instance 404', async () => {
    assert.equal((await api.tenant().get(`/instances/${randomUUID()}/audit`)).status, 404);
  });
});

describe('Timeline, tree and outputs of an unknown instance are 404', () => {
  for (const report of ['timeline', 'tree', 'outputs']) {
    test(report, async () => {
      const tenant = api.tenant();
      assert.equal((await tenant.get(`/instances/${randomUUID()}/${report}`)).status, 404);
      const theirs = await api.tenant().run([step('a', 'noop')], later);
      assert.equal((await tenant.get(`/instances/${theirs}/${report}`)).status, 404);
    });
  }
});
