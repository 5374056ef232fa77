/** Instances: their creation, one by one and in batches, moves of their state, and reads. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import type { TaskInstance, Timeline } from '../../schema/instance.js';
import { INSTANCE_STATES, type InstanceState } from '../../schema/states.js';
import type { Json, Tenant } from '../helpers/api.js';
import {
  beforeWith,
  eventually,
  FAR,
  newHandler,
  step,
  testsOf,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column, columns } from '../helpers/columns.js';
import { byDepth } from '../helpers/depth.js';

type Created = { readonly id: string; readonly deduplicated: boolean };

let sequence: string;

const api = useSharedApi();
const test = testsOf(api);
const tenant = api.tenant();

beforeWith(api, async () => {
  sequence = await tenant.sequence([step('a', newHandler())]);
});

const create = (more?: Json) => tenant.post<Created>('/instances', tenant.creation(sequence, more));
const count = async (of: Tenant) => (await of.get<unknown[]>('/instances')).body.length;

describe('The default priority is `Normal` and the default timezone `UTC`; metadata and timezone are returned unchanged', () => {
  test('a creation with nothing optional has the defaults', async () => {
    const reply = await create();
    assert.deepEqual([reply.status, reply.body.deduplicated], [201, false]);
    const { id, created_at, updated_at, context, ...rest } = await tenant.instance(reply.body.id);
    assert.deepEqual(rest, {
      sequence_id: sequence,
      tenant_id: tenant.name,
      namespace: 'test',
      state: 'waiting',
      next_fire_at: null,
      failure: null,
      priority: 'Normal',
      timezone: 'UTC',
      metadata: {},
    });
    assert.deepEqual([context.data, context.config, context.audit], [{}, {}, []]);
    assert.match(created_at, /^\d{4}-\d\d-\d\dT.*Z$/);
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 10_000);
    assert.ok(updated_at >= created_at);
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  });

  test('everything that a creation says reads back', async () => {
    const said = {
      priority: 'critical',
      timezone: 'Europe/Berlin',
      metadata: { order: 'é🙂', nested: { list: [1, null, 2.5] }, '': 'empty key' },
      context: { data: { total: 12.5, big: 9007199254740991 }, config: { limit: 3 } },
      concurrency_key: 'k',
      max_concurrency: 2,
      idempotency_key: `key-${randomUUID()}`,
      next_fire_at: '2100-01-01T02:00:00.5+02:00',
    };
    const { body } = await create(said);
    const instance = await tenant.instance(body.id);
    assert.equal(instance.priority, 'Critical');
    assert.equal(instance.timezone, said.timezone);
    assert.deepEqual(instance.metadata, said.metadata);
    assert.deepEqual(instance.context.data, said.context.data);
    assert.deepEqual(instance.context.config, said.context.config);
    assert.deepEqual([instance.concurrency_key, instance.max_concurrency], ['k', 2]);
    assert.equal(instance.idempotency_key, said.idempotency_key);
    assert.equal(instance.next_fire_at, '2100-01-01T00:00:00.500Z');
    assert.equal(instance.state, 'scheduled');
  });
});

describe('refusals', () => {
  test('an unknown sequence is 404', async () => {
    assert.equal((await tenant.post('/instances', tenant.creation(randomUUID()))).status, 404);
  });

  test('context.data against the input_schema is 422, alone and in a batch', async () => {
    const strict = await tenant.sequence([step('a', 'noop')], {
      input_schema: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
    });
    const before = await count(tenant);
    for (const context of [undefined, {}, { data: { n: 'x' } }]) {
      const body = tenant.creation(strict, { context });
      assert.equal((await tenant.post('/instances', body)).status, 422);
      const batch = await tenant.post<{ error: string }>('/instances/batch', { instances: [body] });
      assert.equal(batch.status, 422);
      assert.match(batch.body.error, /instances\[0\]/);
    }
    assert.equal(await count(tenant), before);
    const right = await tenant.create(strict, { context: { data: { n: 1 } } });
    const instance: TaskInstance = await tenant.until(right, 'completed');
    assert.deepEqual(instance.context.data, { n: 1 });
  });
});

// ---------------------------------------------------------------- batches

type Count = { readonly count: number; readonly created: number };

const batch = (tenant: Tenant, instances: unknown[]) =>
  tenant.post<Count & { error: string }>('/instances/batch', { instances });

async function total(tenant: Tenant, query = ''): Promise<number> {
  let sum = 0;
  for (;;) {
    const page = await tenant.get<unknown[]>(`/instances?limit=1000&offset=${sum}${query}`);
    sum += page.body.length;
    if (page.body.length < 1000) return sum;
  }
}

const MANY = byDepth(1_200, 10_000);

test(`${MANY} instances are created, and all of them run to their end`, async (tenant) => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const reply = await batch(tenant, Array(MANY).fill(tenant.creation(sequence)));
  assert.deepEqual([reply.status, reply.body], [201, { count: MANY, created: MANY }]);
  await eventually(async () => assert.equal(await total(tenant, '&state=completed'), MANY));
});

test('one bad item refuses all of them and is named', async (tenant) => {
  const good = tenant.creation(await tenant.sequence([step('a', 'noop')]));
  const unknown = randomUUID();
  const bad: [Json, number, RegExp][] = [
    [{ ...good, namespace: '' }, 400, /instances\[2\]\.namespace/],
    [{ ...good, context: 'x' }, 400, /instances\[2\]\.context must be an object/],
    [{ ...good, context: { config: 1 } }, 400, /instances\[2\]\.context\.config must be/],
    [{ ...good, tenant_id: 'other' }, 403, /instances\[2\]/],
    [{ ...good, sequence_id: unknown }, 404, new RegExp(`instances\\[2\\].*${unknown}`)],
    [{ ...good, context: { data: { x: 'x'.repeat(262_144) } } }, 413, /instances\[2\]/],
  ];
  for (const [item, status, says] of bad) {
    const reply = await batch(tenant, [good, good, item, good]);
    assert.equal(reply.status, status, reply.text);
    assert.match(reply.body.error, says);
  }
  assert.equal(await total(tenant), 0);
});

test('items whose key matches are deduplicated each and counted as accepted', async (tenant) => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const keyed = (idempotency_key: string) => tenant.creation(sequence, { idempotency_key });
  const existing = await tenant.create(sequence, { idempotency_key: 'a' });
  const reply = await batch(tenant, [keyed('a'), keyed('b'), keyed('b'), keyed('c'), keyed('')]);
  assert.deepEqual(reply.body, { count: 5, created: 3 });
  const again = await batch(tenant, [keyed('a'), keyed('b'), keyed('c')]);
  assert.deepEqual(again.body, { count: 3, created: 0 });
  assert.equal(await total(tenant), 4);
  const single = await tenant.post<{ id: string; deduplicated: boolean }>('/instances', keyed('b'));
  assert.equal(single.body.deduplicated, true);
  assert.notEqual(single.body.id, existing);
});

test('batches and single creations with the same keys at once make one instance each', async (tenant) => {
  const sequence = await tenant.sequence([step('a', 'noop')]);
  const items = Array.from({ length: 50 }, (_, index) =>
    tenant.creation(sequence, { idempotency_key: `k${index}` }),
  );
  const batches = Array.from({ length: 4 }, () => batch(tenant, items));
  const singles = items.map((item) =>
    tenant.post<{ id: string; deduplicated: boolean }>('/instances', item),
  );
  const counts = await Promise.all(batches);
  const replies = await Promise.all(singles);
  assert.ok(
    counts.every((reply) => reply.body.count === 50),
    JSON.stringify(counts[0]?.text),
  );
  const born = counts.reduce((sum, reply) => sum + reply.body.created, 0);
  assert.equal(born + replies.filter((reply) => !reply.body.deduplicated).length, 50);
  assert.equal(await total(tenant), 50);
});

// ---------------------------------------------------------------- states

/** Every other move is 400. */
const ALLOWED: Readonly<Record<InstanceState, readonly InstanceState[]>> = {
  scheduled: ['running', 'paused', 'cancelled'],
  running: ['scheduled', 'waiting', 'completed', 'failed', 'paused', 'cancelled'],
  waiting: ['running', 'scheduled', 'cancelled', 'failed'],
  paused: ['scheduled', 'cancelled'],
  failed: ['scheduled'],
  completed: [],
  cancelled: [],
};

let external: string;
let handler: string;
let sleeping: string;
let failing: string;

beforeWith(api, async () => {
  handler = newHandler();
  external = await tenant.sequence([step('a', handler), step('b', 'noop')]);
  failing = await tenant.sequence([step('a', 'fail')]);
  sleeping = await tenant.sequence([step('a', 'sleep', { params: { duration_ms: 600_000 } })]);
});

const patch = (id: string, state: string, more = {}) =>
  tenant.patch<TaskInstance & { error: string }>(`/instances/${id}/state`, { state, ...more });

async function instanceIn(state: InstanceState): Promise<string> {
  const id = await tenant.create(
    state === 'running' ? sleeping : state === 'failed' ? failing : external,
    state === 'scheduled' ? { next_fire_at: FAR } : {},
  );
  if (state === 'paused') await tenant.post(`/instances/${id}/signals`, { signal_type: 'pause' });
  if (state === 'cancelled') expectStatus(await patch(id, 'cancelled'), 200);
  if (state === 'completed') await tenant.complete(await taskOf(id));
  await tenant.until(id, state);
  return id;
}

/** The task of one instance: others of this file wait in the same queue. */
async function taskOf(id: string) {
  return eventually(async () => {
    const tasks = await tenant.poll(handler, { limit: 1_000 });
    const task = tasks.find((candidate) => candidate.instance_id === id);
    assert.ok(task);
    return task;
  });
}

describe('PATCH state pauses a scheduled instance; an invalid move of a terminal instance is 4xx; an unknown instance 404', () => {
  test('an unknown instance is 404', async () => {
    assert.equal((await patch(randomUUID(), 'paused')).status, 404);
  });

  for (const from of INSTANCE_STATES) {
    for (const to of INSTANCE_STATES) {
      const allowed = ALLOWED[from].includes(to);
      test(`${from} → ${to} is ${allowed ? 200 : 400}`, async () => {
        const id = await instanceIn(from);
        const before = await tenant.instance(id);
        const reply = await patch(id, to);
        if (!allowed) {
          assert.equal(reply.status, 400, reply.text);
          assert.match(reply.body.error, new RegExp(`${from}.*${to}`));
          assert.deepEqual(await tenant.instance(id), before);
          return;
        }
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.body.id, id);
        assert.equal(reply.body.state, to);
        // To `running` and `scheduled` it goes on at once; the others stay where they were put.
        if (to !== 'running' && to !== 'scheduled') {
          assert.equal((await tenant.instance(id)).state, to);
        }
        // A retried instance may fail anew between the two reads.
        await eventually(async () => {
          const dlq = await tenant.get<TaskInstance[]>('/instances/dlq?limit=1000');
          const isDead = dlq.body.some((item) => item.id === id);
          assert.equal(isDead, (await tenant.instance(id)).state === 'failed');
        });
      });
    }
  }
});

test('an instance that is moved with a past or null next_fire_at is due now', async () => {
  for (const next_fire_at of ['2001-01-01T00:00:00Z', null]) {
    const id = await instanceIn('paused');
    await patch(id, 'scheduled', { next_fire_at });
    await tenant.until(id, 'waiting');
  }
});

test('a retry with a later next_fire_at waits for it', async () => {
  const id = await instanceIn('failed');
  const reply = expectStatus(await patch(id, 'scheduled', { next_fire_at: FAR }), 200);
  assert.deepEqual([reply.state, reply.next_fire_at], ['scheduled', FAR]);
  assert.deepEqual((await tenant.instance(id)).next_fire_at, FAR);
  assert.deepEqual(await tenant.outputs(id), []);
});

// ---------------------------------------------------------------- reads

test('outputs are listed oldest first, with size, attempt and no markers', async () => {
  const id = await tenant.run([
    step('first', 'transform', { params: { text: 'é' } }),
    step('second', 'noop'),
  ]);
  await tenant.until(id, 'completed');
  const reply = await tenant.get<Record<string, unknown>[]>(`/instances/${id}/outputs`);
  const rows = reply.body.map(({ id: _, created_at: __, ...rest }) => rest);
  assert.deepEqual(rows, [
    {
      instance_id: id,
      block_id: 'first',
      output: { text: 'é' },
      output_ref: null,
      output_size: Buffer.byteLength('{"text":"é"}'),
      attempt: 0,
    },
    { ...rows[0], block_id: 'second', output: {}, output_size: 2 },
  ]);
});

test('the timeline tells transitions and outputs in order, in pages, without outputs on demand', async () => {
  const id = await tenant.run(['a', 'b', 'c'].map((name) => step(name, 'noop')));
  await tenant.until(id, 'completed');
  const get = async (query: string) =>
    (await tenant.get<Timeline>(`/instances/${id}/timeline${query}`)).body;
  const whole = await get('');
  assert.equal(whole.instance.id, id);
  assert.equal(whole.instance.state, 'completed');
  assert.deepEqual(column(whole.entries, 'block_id'), ['a', 'b', 'c']);
  assert.deepEqual([whole.has_more, whole.limit], [false, 200]);
  assert.equal(whole.state_transitions.at(-1)?.to_state, 'completed');
  const page = await get('?limit=2&include_outputs=false');
  assert.equal(page.has_more, true);
  assert.ok(page.entries.every((entry) => entry.output === undefined));
  const rest = await get('?limit=2&offset=2');
  assert.deepEqual(columns(rest.entries, 'block_id', 'output'), [['c', {}]]);
  assert.equal(rest.has_more, false);
  for (const query of ['?limit=0', '?limit=x', '?include_outputs=maybe', '?offset=-1']) {
    assert.equal((await tenant.get(`/instances/${id}/timeline${query}`)).status, 400, query);
  }
});
