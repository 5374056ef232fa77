/** Creation of single instances: defaults, what is stored, idempotency keys, refusals. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { TaskInstance } from '../../schema/instance.js';
import {
  beforeWith,
  type Json,
  newHandler,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';

interface Created {
  readonly id: string;
  readonly deduplicated: boolean;
}

let sequence: string;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  sequence = await tenant.sequence([step('a', newHandler())]);
});

const create = (more?: Json) => tenant.post<Created>('/instances', tenant.creation(sequence, more));
const count = async (of: Tenant) => (await of.get<unknown[]>('/instances')).body.length;

describe('what is stored', () => {
  test('a creation with nothing optional has the defaults', async () => {
    const reply = await create();
    assert.equal(reply.status, 201);
    assert.equal(reply.body.deduplicated, false);
    const instance = await tenant.instance(reply.body.id);
    const { id, created_at, updated_at, context, ...rest } = instance;
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
    assert.equal(instance.concurrency_key, 'k');
    assert.equal(instance.max_concurrency, 2);
    assert.equal(instance.idempotency_key, said.idempotency_key);
    assert.equal(instance.next_fire_at, '2100-01-01T00:00:00.500Z');
    assert.equal(instance.state, 'scheduled');
  });

  test('priorities are taken in any case and shown capitalised', async () => {
    for (const word of ['low', 'Normal', 'HIGH', 'criTical']) {
      const { body } = await create({ priority: word });
      const shown = word.charAt(0).toUpperCase() + word.slice(1).toLowerCase();
      assert.equal((await tenant.instance(body.id)).priority, shown);
    }
  });

  test('an instance with a future next_fire_at stays scheduled, one with a past one runs', async () => {
    const future = await create({ next_fire_at: '2100-01-01T00:00:00Z' });
    const past = await create({ next_fire_at: '1999-01-01T00:00:00Z' });
    await tenant.until(past.body.id, 'waiting');
    assert.equal((await tenant.instance(future.body.id)).state, 'scheduled');
    assert.deepEqual(await tenant.outputs(future.body.id), []);
  });

  test('fields of the engine that a client sends are ignored', async () => {
    const id = randomUUID();
    const { body } = await create({ id, state: 'completed', created_at: 'x', session_id: 4 });
    assert.notEqual(body.id, id);
    assert.equal((await tenant.instance(body.id)).state, 'waiting');
  });

  test('hostile keys are data like any other', async () => {
    const raw = JSON.stringify(tenant.creation(sequence)).replace(
      /}$/,
      ',"metadata":{"__proto__":{"a":1},"constructor":1},"context":{"data":{"__proto__":{"x":1}}}}',
    );
    const reply = await tenant.request<Created>('POST', '/instances', { raw });
    assert.equal(reply.status, 201, reply.text);
    const { text } = await tenant.get(`/instances/${reply.body.id}`);
    assert.ok(text.includes('"__proto__":{"x":1}'), text);
    assert.ok(text.includes('"__proto__":{"a":1}'), text);
  });
});

describe('idempotency keys', () => {
  test('the same key twice is one instance: 201 and deduplicated true', async () => {
    const idempotency_key = randomUUID();
    const first = await create({ idempotency_key, metadata: { n: 1 } });
    const second = await create({ idempotency_key, metadata: { n: 2 }, priority: 'low' });
    assert.equal(second.status, 201);
    assert.deepEqual(second.body, { id: first.body.id, deduplicated: true });
    const instance = await tenant.instance(first.body.id);
    assert.deepEqual(instance.metadata, { n: 1 });
    assert.equal(instance.priority, 'Normal');
  });

  test('a key belongs to its tenant', async () => {
    const other = api.tenant();
    const theirs = await other.sequence([step('a', 'noop')]);
    const idempotency_key = randomUUID();
    const first = await create({ idempotency_key });
    const second = await other.post<Created>(
      '/instances',
      other.creation(theirs, { idempotency_key }),
    );
    assert.equal(second.body.deduplicated, false);
    assert.notEqual(second.body.id, first.body.id);
  });
});

describe('refusals', () => {
  /** What is wrong, the field, and what the answer must say. */
  const refused: readonly [string, Json, RegExp][] = [
    [
      'no sequence_id',
      { sequence_id: undefined },
      /must have exactly one of sequence_id and sequence/,
    ],
    [
      'a null sequence_id',
      { sequence_id: null },
      /must have exactly one of sequence_id and sequence/,
    ],
    ['a bad sequence_id', { sequence_id: 'x' }, /sequence_id must be a UUID/],
    ['a sequence_id in braces', { sequence_id: `{${randomUUID()}}` }, /sequence_id must be a UUID/],
    ['no tenant_id', { tenant_id: undefined }, /tenant_id is required/],
    ['a tenant_id that is a number', { tenant_id: 7 }, /tenant_id must be a string/],
    ['no namespace', { namespace: undefined }, /namespace is required/],
    ['a blank namespace', { namespace: '\t ' }, /namespace must not be blank/],
    ['a new priority', { priority: 'urgent' }, /priority must be one of low, normal, high, cr/],
    ['a priority that is a number', { priority: 1 }, /priority must be a string/],
    ['an unknown timezone', { timezone: 'Mars/Base' }, /timezone must be a known IANA time zone/],
    ['an offset as timezone', { timezone: '+02:00' }, /timezone must be a known IANA time zone/],
    ['an empty timezone', { timezone: '' }, /timezone must be a known IANA time zone/],
    ['metadata that is a list', { metadata: [] }, /metadata must be an object/],
    ['metadata that is text', { metadata: 'x' }, /metadata must be an object/],
    ['a context that is text', { context: 'x' }, /context must be an object/],
    ['context.data that is a list', { context: { data: [] } }, /context\.data must be an object/],
    ['context.config that is a number', { context: { config: 1 } }, /context\.config must be/],
    ['next_fire_at soon', { next_fire_at: 'soon' }, /next_fire_at must be an RFC 3339/],
    ['a next_fire_at without offset', { next_fire_at: '2030-01-01T00:00:00' }, /next_fire_at must/],
    ['30 February', { next_fire_at: '2030-02-30T00:00:00Z' }, /next_fire_at must/],
    ['a next_fire_at that is a number', { next_fire_at: 5 }, /next_fire_at must be a string/],
    ['a numeric concurrency_key', { concurrency_key: 5 }, /concurrency_key must be a string/],
    ['a concurrency_key of 513', { concurrency_key: 'x'.repeat(513) }, /concurrency_key must have/],
    ['max_concurrency 0', { max_concurrency: 0 }, /max_concurrency must be > 0/],
    ['a negative max_concurrency', { max_concurrency: -1 }, /max_concurrency must be > 0/],
    ['1.5 max_concurrency', { max_concurrency: 1.5 }, /max_concurrency must be an integer/],
    ['max_concurrency as text', { max_concurrency: '2' }, /max_concurrency must be an integer/],
    ['a list as idempotency_key', { idempotency_key: [] }, /idempotency_key must be a string/],
    ['513 idempotency_key', { idempotency_key: 'x'.repeat(513) }, /idempotency_key must have/],
    ['a budget', { budget: { max_steps: 3 } }, /budget is not supported/],
  ];

  for (const [what, more, says] of refused) {
    test(`a creation with ${what} is 400 and stores nothing, alone and in a batch`, async () => {
      const before = await count(tenant);
      const reply = await tenant.post<{ error: string }>(
        '/instances',
        tenant.creation(sequence, more),
      );
      assert.equal(reply.status, 400, reply.text);
      assert.match(reply.body.error, says);
      const batch = await tenant.post<{ error: string }>('/instances/batch', {
        instances: [tenant.creation(sequence), tenant.creation(sequence, more)],
      });
      assert.equal(batch.status, 400, batch.text);
      assert.match(batch.body.error, says);
      assert.match(batch.body.error, /instances\[1\]/);
      assert.equal(await count(tenant), before);
    });
  }

  test('dry_run false and a null budget are no request for anything', async () => {
    assert.equal((await create({ dry_run: false, budget: null })).status, 201);
  });

  test('an unknown sequence is 404', async () => {
    const reply = await tenant.post('/instances', tenant.creation(randomUUID()));
    assert.equal(reply.status, 404);
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
