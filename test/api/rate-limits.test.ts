/** Rate limits over HTTP: never too many, nobody lost, and what is set and taken away again. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RateLimit } from '../../schema/rate.js';
import {
  eventually,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  sleep,
  step,
  type Tenant,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { assertNeverMore, underKey, untilAll } from '../helpers/slots.js';

/** Longer than any test. */
const HOUR_MS = 3_600_000;
const HOURLY = (max_count: number) => ({ max_count, window_seconds: HOUR_MS / 1_000 });

const api = useSharedApi();

const limit = async (tenant: Tenant, body: Json, key = 'k') =>
  expectStatus(await tenant.put<RateLimit>(`/rate-limits/${key}`, body), 200);
const unlimit = async (tenant: Tenant, key = 'k') =>
  expectStatus(await tenant.delete(`/rate-limits/${key}`), 204);

/** A step under the key `k`. */
const limited = (id: string, handler = 'noop', more: Json = {}) =>
  step(id, handler, { rate_limit_key: 'k', ...more });

/** When tries began: steps inside the process begin and end at once, others have a task. */
async function beginnings(tenant: Tenant, ids: readonly string[], handlers: string[] = []) {
  const rows = await Promise.all(ids.map((id) => tenant.outputs(id)));
  const tasks = await Promise.all(handlers.map((handler) => tenant.tasks(handler)));
  return [...rows.flat().filter(({ block_id }) => block_id.startsWith('in')), ...tasks.flat()]
    .map(({ created_at }) => Date.parse(created_at))
    .sort((a, b) => a - b);
}

/** The most of these times that lie within any second, which does not contain its end. */
function mostInASecond(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  times.forEach((time, index) => {
    while (time - (times[first] ?? time) >= 1_000) first += 1;
    most = Math.max(most, index + 1 - first);
  });
  return most;
}

/** An instance whose first step is put off; its record. */
async function putOff(tenant: Tenant, block = limited('in')) {
  const id = await tenant.run([block]);
  return eventually(async () => {
    const instance = await tenant.instance(id);
    assert.equal(instance.state, 'scheduled');
    assert.ok(Date.parse(instance.next_fire_at ?? '') > Date.now() + HOUR_MS / 2);
    return instance;
  });
}

describe('rate_limit_key defers but never loses instances; also combined with concurrency keys', () => {
  test('one key shared by steps of several sequences, at every depth', async () => {
    const tenant = api.tenant();
    await limit(tenant, { max_count: 8, window_seconds: 1 });
    const handler = newHandler();
    const data = { on: true, items: [1, 2, 3] };
    const sequences: readonly (readonly [number, Json[]])[] = [
      [2, [limited('in1'), limited('in2')]],
      [4, [limited('out', handler)]],
      [2, [parallel('p', [limited('in1')], [limited('in2'), limited('in3')])]],
      [2, [loop('l', 'on', [limited('in')], 3)]],
      [1, [forEach('f', 'items', [limited('in')])]],
      [1, [tryCatch('t', [step('x', 'fail')], [limited('in1')], [limited('in2')])]],
    ];
    const ids: string[] = [];
    for (const [count, blocks] of sequences) {
      const sequence = await tenant.sequence(blocks);
      for (let index = 0; index < count; index++) {
        ids.push(await tenant.create(sequence, { context: { data } }));
      }
    }
    for (let index = 0; index < 4; index++) await tenant.complete(await tenant.task(handler));
    await untilAll(tenant, ids, 'completed');
    const times = await beginnings(tenant, ids, [handler]);
    assert.equal(times.length, 4 + 4 + 6 + 6 + 3 + 2);
    assert.ok(mostInASecond(times) <= 8);
  });

  test('also combined with concurrency keys', async () => {
    const tenant = api.tenant();
    await limit(tenant, { max_count: 5, window_seconds: 1 });
    const sequence = await tenant.sequence([limited('in1'), sleep('s', 5), limited('in2')]);
    const key = underKey(2);
    const ids = await Promise.all(Array.from({ length: 6 }, () => tenant.create(sequence, key)));
    await untilAll(tenant, ids, 'completed');
    const times = await beginnings(tenant, ids);
    assert.equal(times.length, 12);
    assert.ok(mostInASecond(times) <= 5);
    await assertNeverMore(2, tenant, ids);
  });

  test('those that are put off are scheduled, each at its own time, and no try is consumed', async () => {
    const tenant = api.tenant();
    await limit(tenant, HOURLY(1));
    const handler = newHandler();
    const first = await tenant.runUntil('completed', [limited('in')]);
    const [began = 0] = await beginnings(tenant, [first]);
    const block = limited('out', handler, { retry: { max_attempts: 1 } });
    const one = await putOff(tenant, block);
    const two = await putOff(tenant, block);
    for (const [index, { next_fire_at, context }] of [one, two].entries()) {
      const due = began + (index + 1) * HOUR_MS;
      const late = Date.parse(next_fire_at ?? '') - due;
      assert.ok(late >= 0 && late < 1_000, `${late} ms late`);
      assert.equal(context.runtime.attempt ?? 0, 0);
    }
    assert.deepEqual(await tenant.poll(handler), []);
    await unlimit(tenant);
    for (const _ of [one, two]) {
      const task = await tenant.task(handler);
      assert.equal(task.attempt, 0);
      await tenant.complete(task);
    }
    await untilAll(tenant, [one.id, two.id], 'completed');
  });

  test('a request to go on does not let it pass', async () => {
    const tenant = api.tenant();
    await limit(tenant, HOURLY(1));
    await tenant.runUntil('completed', [limited('in')]);
    const { id } = await putOff(tenant);
    for (const deed of ['PATCH', 'signals']) {
      if (deed === 'PATCH') await tenant.move(id, 'running');
      else for (const type of ['pause', 'resume']) await tenant.signal(id, type);
      await eventually(async () => {
        const { state, next_fire_at } = await tenant.instance(id);
        assert.equal(state, 'scheduled');
        assert.ok(Date.parse(next_fire_at ?? '') > Date.now() + HOUR_MS / 2);
      });
    }
    assert.deepEqual(await tenant.outputs(id), []);
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.instance(id)).state, 'cancelled');
  });

  test('those that are paused while they ask go on afterwards', async () => {
    const tenant = api.tenant();
    await limit(tenant, { max_count: 6, window_seconds: 1 });
    const sequence = await tenant.sequence([limited('in')]);
    const ids = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const id = await tenant.create(sequence);
        // The answer to the question may or may not have come.
        await tenant.post(`/instances/${id}/signals`, { signal_type: 'pause' });
        return id;
      }),
    );
    for (const id of ids) await tenant.post(`/instances/${id}/signals`, { signal_type: 'resume' });
    await untilAll(tenant, ids, 'completed');
    assert.ok(mostInASecond(await beginnings(tenant, ids)) <= 6);
  });
});

describe('Rate limits: `PUT /rate-limits/{key}` `{max_count, window_seconds}`, `GET /rate-limits`, `DELETE /rate-limits/{key}`; per tenant; a key without a limit is unlimited. Sliding window, exact: never more than max_count in any window', () => {
  test('PUT answers with the limit, and again with the new one', async () => {
    const tenant = api.tenant();
    for (const body of [HOURLY(3), { max_count: 100_000, window_seconds: 86_400 }]) {
      const { updated_at, ...rest } = await limit(tenant, body);
      assert.deepEqual(rest, { tenant_id: tenant.name, key: 'k', ...body });
      assert.ok(Math.abs(Date.parse(updated_at) - Date.now()) < 60_000);
    }
  });

  test('DELETE takes it away, and is 404 without one', async () => {
    const tenant = api.tenant();
    await limit(tenant, HOURLY(1));
    await unlimit(tenant);
    assert.equal((await tenant.delete('/rate-limits/k')).status, 404);
    assert.equal((await tenant.delete('/rate-limits/other')).status, 404);
  });

  test('any text is a key', async () => {
    const tenant = api.tenant();
    const key = 'a/b ü?%#:';
    const record = await limit(tenant, HOURLY(1), encodeURIComponent(key));
    assert.equal(record.key, key);
    await tenant.runUntil('completed', [step('in', 'noop', { rate_limit_key: key })]);
    const { id } = await putOff(tenant, step('in', 'noop', { rate_limit_key: key }));
    await unlimit(tenant, encodeURIComponent(key));
    await tenant.until(id, 'completed');
  });

  test('per tenant: the limit of another tenant counts nothing', async () => {
    const [tenant, other] = [api.tenant(), api.tenant()];
    await limit(other, HOURLY(1));
    for (let index = 0; index < 3; index++) await tenant.runUntil('completed', [limited('in')]);
    await limit(tenant, HOURLY(1));
    await tenant.runUntil('completed', [limited('in')]);
    await other.runUntil('completed', [limited('in')]);
    assert.equal((await api.tenant().delete('/rate-limits/k')).status, 404);
    await putOff(tenant);
    await putOff(other);
  });

  test('a key without a limit is unlimited', async () => {
    const tenant = api.tenant();
    await limit(tenant, HOURLY(1), 'other');
    const sequence = await tenant.sequence([limited('in1'), limited('in2')]);
    const ids = await Promise.all(Array.from({ length: 20 }, () => tenant.create(sequence)));
    await untilAll(tenant, ids, 'completed');
  });

  test('each retry takes one, too', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    await limit(tenant, HOURLY(2));
    const retry = { max_attempts: 3, initial_backoff: 1 };
    const id = await tenant.run([limited('a', handler, { retry })]);
    for (const attempt of [0, 1]) {
      const task = await tenant.task(handler);
      assert.equal(task.attempt, attempt);
      await tenant.fail(task, 'busy', true);
    }
    await eventually(async () => {
      const { state, next_fire_at } = await tenant.instance(id);
      assert.equal(state, 'scheduled');
      assert.ok(Date.parse(next_fire_at ?? '') > Date.now() + HOUR_MS / 2);
    });
    await limit(tenant, HOURLY(3));
    const last = await tenant.task(handler);
    assert.equal(last.attempt, 2);
    await tenant.complete(last);
    await tenant.until(id, 'completed');
  });

  for (const [how, change, freed] of [
    ['raised', (tenant: Tenant) => limit(tenant, HOURLY(3)), 2],
    ['deleted', (tenant: Tenant) => unlimit(tenant), 4],
  ] as const) {
    test(`when it is ${how}, as many as it lets pass go on at once`, async () => {
      const tenant = api.tenant();
      await limit(tenant, HOURLY(1));
      await tenant.runUntil('completed', [limited('in')]);
      const ids: string[] = [];
      for (let index = 0; index < 4; index++) ids.push((await putOff(tenant)).id);
      await change(tenant);
      const states = () => Promise.all(ids.map(async (id) => (await tenant.instance(id)).state));
      const left = Array<string>(4 - freed).fill('scheduled');
      await eventually(async () => {
        assert.deepEqual((await states()).sort(), [...Array(freed).fill('completed'), ...left]);
      });
      // Nobody is lost: the others were put off again.
      await tenant.delete('/rate-limits/k');
      await untilAll(tenant, ids, 'completed');
    });
  }

  test('when it is lowered, what was begun before counts', async () => {
    const tenant = api.tenant();
    await limit(tenant, HOURLY(5));
    for (let index = 0; index < 3; index++) await tenant.runUntil('completed', [limited('in')]);
    await limit(tenant, HOURLY(2));
    await putOff(tenant);
  });

  const wrong: readonly [string, unknown, RegExp][] = [
    ['no body', undefined, /./],
    ['a list', [], /object/],
    ['no max_count', { window_seconds: 1 }, /max_count/],
    ['no window_seconds', { max_count: 1 }, /window_seconds/],
    ['a max_count of 0', { max_count: 0, window_seconds: 1 }, /max_count/],
    ['half a max_count', { max_count: 1.5, window_seconds: 1 }, /max_count/],
    ['a max_count beyond 100,000', { max_count: 100_001, window_seconds: 1 }, /max_count/],
    ['a text as max_count', { max_count: '5', window_seconds: 1 }, /max_count/],
    ['a window of 0', { max_count: 1, window_seconds: 0 }, /window_seconds/],
    ['a window of more than a day', { max_count: 1, window_seconds: 86_401 }, /window_seconds/],
    ['null as a window', { max_count: 1, window_seconds: null }, /window_seconds/],
  ];
  for (const [what, body, says] of wrong) {
    test(`${what} is 400, says so and sets nothing`, async () => {
      const tenant = api.tenant();
      const reply = await tenant.put<{ error: string }>('/rate-limits/k', body);
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, says);
      assert.equal((await tenant.delete('/rate-limits/k')).status, 404);
    });
  }

  for (const key of ['%20', 'x'.repeat(10_000)]) {
    test(`a key ${key === '%20' ? 'of nothing' : 'that is too long'} is 400 and says so`, async () => {
      const reply = await api.tenant().put<{ error: string }>(`/rate-limits/${key}`, HOURLY(1));
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, /key/);
    });
  }
});

describe('the list', () => {
  const list = async (tenant: Tenant) =>
    expectStatus(await tenant.get<RateLimit[]>('/rate-limits'), 200);

  test('has the own limits in the order of their keys, as they were put', async () => {
    const [tenant, other] = [api.tenant(), api.tenant()];
    assert.deepEqual(await list(tenant), []);
    const minutely = { max_count: 1, window_seconds: 60 };
    const b = await limit(tenant, { max_count: 5, window_seconds: 10 }, 'b');
    const a = await limit(tenant, { ...minutely, max_count: 7 }, 'a%2Fb%20c');
    const z = await limit(tenant, minutely, 'Z');
    const umlaut = await limit(tenant, minutely, '%C3%A4');
    const theirs = await limit(other, minutely, 'theirs');
    assert.deepEqual(await list(tenant), [z, a, b, umlaut]);
    assert.deepEqual(await list(other), [theirs]);
  });

  test('shows a limit as it was changed, and none that was deleted', async () => {
    const tenant = api.tenant();
    await limit(tenant, HOURLY(1), 'kept');
    await limit(tenant, HOURLY(1), 'gone');
    const changed = await limit(tenant, HOURLY(9), 'kept');
    await unlimit(tenant, 'gone');
    assert.deepEqual(await list(tenant), [changed]);
  });
});
