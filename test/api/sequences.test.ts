/** Sequences: stored or refused, found, listed, deprecated, deleted. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe } from 'node:test';
import type { SequenceDefinition, SequenceListed } from '../../schema/sequence.js';
import {
  eventually,
  FAR,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  router,
  step,
  type Tenant,
  testsOf,
  tryCatch,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';

const noop = (id = 'x'): Json => step(id, 'noop');

const api = useSharedApi();
const test = testsOf(api);
const tenant = api.tenant();

const definition = (more: Json = {}): Json => ({
  tenant_id: tenant.name,
  namespace: 'test',
  name: 'order',
  version: 1,
  blocks: [step('a', 'noop')],
  ...more,
});
const byName = (more = '') =>
  tenant.get<SequenceDefinition>(
    `/sequences/by-name?tenant_id=${tenant.name}&namespace=test&name=order${more}`,
  );
const versions = () =>
  tenant.get<SequenceDefinition[]>('/sequences/versions?namespace=test&name=order');

describe('creation', () => {
  test('a definition of all seven block kinds reads back as it was given', async () => {
    const blocks = [
      step('s', 'charge', {
        params: { amount: 3, nested: { list: [1, 'x', null, true] } },
        delay: { duration: 5, business_days_only: false, jitter: 2 },
        retry: { max_attempts: 3, initial_backoff: 10, max_backoff: 100, backoff_multiplier: 1.5 },
        timeout: 1000,
        rate_limit_key: 'k',
        queue_name: 'q',
      }),
      parallel('p', [noop('p1')], []),
      race('r', [[noop('r1')], [noop('r2')]], 'first_to_succeed'),
      router('ro', { 'plan == pro': [noop('ro1')] }, [noop('ro2')]),
      tryCatch('t', [noop('t1')], [noop('t2')], [noop('t3')]),
      loop('l', 'more', [noop('l1')], 7),
      forEach('f', 'items', [noop('f1')], { item_var: 'it' }),
    ];
    const id = randomUUID();
    const created_at = '2024-02-29T12:00:00.123Z';
    const reply = await tenant.post<Json>(
      '/sequences',
      definition({ id, name: 'kinds', blocks, created_at }),
    );
    assert.equal(reply.status, 201, reply.text);
    assert.equal(reply.body.id, id);
    const stored = await tenant.get<SequenceDefinition>(`/sequences/${id}`);
    assert.deepEqual(stored.body, {
      ...definition({ id, name: 'kinds', blocks }),
      deprecated: false,
      hold: false,
      status: 'production',
      created_at,
    });
  });

  test('Duplicate sequence id is 409, and so is a name with a version that exists already', async () => {
    const id = await tenant.sequence([step('a', 'noop')], { name: 'twice', version: 3 });
    for (const by of [tenant, api.tenant()]) {
      const sameId = by.definition([step('a', 'noop')], { id });
      assert.equal((await by.post('/sequences', sameId)).status, 409);
    }
    const sameName = await tenant.post('/sequences', definition({ name: 'twice', version: 3 }));
    assert.equal(sameName.status, 409);
    assert.match(sameName.text, /version 3 of sequence twice in namespace test exists already/);
    const elsewhere = definition({ name: 'twice', version: 3, namespace: 'elsewhere' });
    assert.equal((await tenant.post('/sequences', elsewhere)).status, 201);
  });

  test('of 16 equal creations at once exactly one succeeds', async () => {
    const body = definition({ name: 'herd' });
    const replies = await Promise.all(Array.from(Array(16), () => tenant.post('/sequences', body)));
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [201, ...Array(15).fill(409)]);
  });
});

describe('reading', () => {
  test('by-name gives the newest version, and versions all of them, the newest first', async () => {
    assert.equal((await byName()).status, 404);
    for (const version of [2, 10, 9]) {
      await tenant.sequence([step('a', 'noop')], { name: 'order', version });
    }
    assert.equal((await byName()).body.version, 10);
    assert.deepEqual(column((await versions()).body, 'version'), [10, 9, 2]);
  });

  test('the list goes by namespace, name and descending version, in pages', async () => {
    const lister = api.tenant();
    const wanted = [
      ['a', 'x', 2],
      ['a', 'x', 1],
      ['a', 'y', 1],
      ['b', 'a', 1],
    ] as const;
    for (const [namespace, name, version] of [...wanted].reverse()) {
      await lister.sequence([step('a', 'noop')], { namespace, name, version });
    }
    const names = (items: SequenceDefinition[]) =>
      items.map((item) => [item.namespace, item.name, item.version]);
    assert.deepEqual(names((await lister.get<SequenceDefinition[]>('/sequences')).body), wanted);
    const first = await lister.get<SequenceDefinition[]>('/sequences?limit=3');
    assert.match(String(first.headers.link), /rel="next"/);
    const second = await lister.get<SequenceDefinition[]>('/sequences?limit=3&offset=3');
    assert.deepEqual(names([...first.body, ...second.body]), wanted);
    const one = await lister.get<SequenceDefinition[]>('/sequences?namespace=b');
    assert.deepEqual(names(one.body), [['b', 'a', 1]]);
    const x = await lister.get<SequenceDefinition[]>('/sequences?name=x');
    assert.deepEqual(names(x.body), wanted.slice(0, 2));
    const withY = await lister.get<SequenceDefinition[]>('/sequences?name_contains=Y');
    assert.deepEqual(names(withY.body), [['a', 'y', 1]]);
  });

  test('the list can leave definitions out, and all but the newest version of each name', async () => {
    const lister = api.tenant();
    for (const version of [1, 2, 3]) {
      await lister.sequence([step('a', 'noop')], { namespace: 'a', name: 'x', version });
    }
    await lister.sequence([step('a', 'noop')], { namespace: 'b', name: 'x', version: 7 });
    const known = (items: SequenceListed[]) =>
      items.map(({ namespace, version, versions }) => [namespace, version, versions]);
    const brief = await lister.get<SequenceListed[]>('/sequences?include_definition=false');
    assert.equal(brief.body.length, 4);
    assert.ok(brief.body.every((item) => !('blocks' in item) && !('versions' in item)));
    const newest = await lister.get<SequenceListed[]>('/sequences?newest_only=true');
    assert.deepEqual(known(newest.body), [
      ['a', 3, 3],
      ['b', 7, 1],
    ]);
    assert.equal(newest.body[0]?.blocks?.length, 1);
    const asked = '/sequences?newest_only=true&include_definition=false&limit=1';
    const first = await lister.get<SequenceListed[]>(asked);
    const cursor = first.headers['x-next-cursor'];
    const second = await lister.get<SequenceListed[]>(`${asked}&cursor=${cursor}`);
    assert.deepEqual(known([...first.body, ...second.body]), known(newest.body));
  });
});

describe('A sequence with live instances cannot be deleted: 409; a finished or unused one can; an unknown one is 404', () => {
  test('it takes its ended instances with outputs and tasks along', async () => {
    const handler = newHandler();
    const id = await tenant.sequence([step('a', handler)]);
    const instance = await tenant.create(id);
    const task = await tenant.task(handler);
    await tenant.complete(task, { done: true });
    await tenant.until(instance, 'completed');
    const failed = await tenant.create(id);
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(failed, 'failed');

    const refusal = await tenant.delete<{ error: string }>(`/sequences/${id}`);
    assert.equal(refusal.status, 409);
    assert.match(refusal.body.error, /has 0 live and 1 failed instances/);
    assert.equal((await tenant.instance(failed)).state, 'failed');

    const foreseen = await tenant.delete<object>(`/sequences/${id}?cascade=true&dry_run=true`);
    const counts = { count: 2, ended: 1, failed: 1, dry_run: true };
    assert.deepEqual([foreseen.status, foreseen.body], [200, counts]);
    assert.equal((await tenant.delete(`/sequences/${id}?dry_run=true`)).status, 409);
    assert.equal((await tenant.instance(instance)).state, 'completed');
    const late = await tenant.create(id);
    await tenant.move(late, 'cancelled');

    assert.equal((await tenant.delete(`/sequences/${id}?cascade=true`)).status, 204);
    assert.equal((await tenant.delete(`/sequences/${id}`)).status, 404);
    for (const gone of [instance, failed, late]) {
      assert.equal((await tenant.get(`/instances/${gone}`)).status, 404);
      assert.equal((await tenant.post(`/instances/${gone}/retry`)).status, 404);
    }
    for (const path of [
      `/sequences/${id}`,
      `/instances/${instance}/outputs`,
      `/instances/${instance}/checkpoints`,
      `/workers/tasks/${task.id}/attempts`,
    ]) {
      assert.equal((await tenant.get(path)).status, 404, path);
    }
    assert.deepEqual((await tenant.get(`/instances?sequence_id=${id}`)).body, []);
    assert.deepEqual((await tenant.get(`/instances/dlq?sequence_id=${id}`)).body, []);
    assert.deepEqual((await tenant.get(`/workers/tasks?handler_name=${handler}`)).body, []);
  });

  test('cascading takes no live instance, and is a boolean', async () => {
    const id = await tenant.sequence([step('a', newHandler())]);
    await tenant.create(id);
    const reply = await tenant.delete<{ error: string }>(`/sequences/${id}?cascade=true`);
    assert.equal(reply.status, 409);
    assert.match(reply.body.error, /has 1 live and 0 failed instances/);
    assert.equal((await tenant.delete(`/sequences/${id}?cascade=yes`)).status, 400);
  });

  test('creations that race with it are answered, and none survives its sequence', async () => {
    for (let round = 0; round < 3; round++) {
      const id = await tenant.sequence([step('a', newHandler())]);
      const creations = Array.from(Array(20), () => tenant.post('/instances', tenant.creation(id)));
      const deletion = await tenant.delete(`/sequences/${id}`);
      const statuses = (await Promise.all(creations)).map((reply) => reply.status);
      const left = await tenant.get<unknown[]>(`/instances?sequence_id=${id}`);
      const created = statuses.filter((status) => status === 201).length;
      assert.ok(statuses.every((status) => [201, 404, 503].includes(status)));
      assert.equal(deletion.status, created === 0 ? 204 : 409);
      assert.equal(left.body.length, created);
    }
  });
});

const refusing = api.tenant();
const of = (block: Json): Json => ({ blocks: [block] });
const inStep = (more: Json): Json => of(step('x', 'noop', more));
const asking = (wait_for_input: Json): Json => inStep({ wait_for_input });
const waiting = (params: Json): Json => inStep({ handler: 'wait_for_event', params });
const breached = (on_deadline_breach: Json): Json => inStep({ deadline: 5, on_deadline_breach });
const inEach = (more: Json): Json => of(forEach('f', 'a', [noop()], more));
const many = (count: number) => Array.from({ length: count }, (_, index) => noop(`s${index}`));
const saga = (...steps: Json[]): Json => of({ type: 'saga', id: 's', steps });
const split = (...variants: Json[]): Json => of({ type: 'ab_split', id: 's', variants });
const variant = (name: string, weight: number) => ({ name, weight, blocks: [noop(name)] });
const onFailure = (more: Json): Json => ({ on_failure: [step('h', 'noop', more)] });
const CHOICE = { label: 'A', value: 'a' };

// `unit/schema.test.ts` and `unit/definitions.test.ts` have the others, `limits.test.ts` has the sizes.
/** What the answer must say, and the definition's difference from a right one. */
const REFUSED: readonly [string, Json][] = [
  ['namespace is required', { namespace: undefined }],
  ['id must be a UUID', { id: 'x' }],
  ['block id x is not unique', of(parallel('p', [noop()], [noop()]))],
  ['blocks[0].when must be a string', of({ ...parallel('p', []), when: 1 })],
  ['blocks[0].timeout must be >= 0', of({ ...parallel('p', []), timeout: -1 })],
  ['queue_timeout must be an integer', inStep({ queue_timeout: '1s' })],
  ['on_deadline_breach.handler must be a built-in handler', breached({ handler: 'page' })],
  ['on_deadline_breach.params.url', breached({ handler: 'http_request' })],
  ['delay.jitter must be >= 0', inStep({ delay: { duration: 1, jitter: -1 } })],
  ['collection is required', inEach({ collection: undefined })],
  ['item_var must not be blank', inEach({ item_var: '' })],
  ['index_var x is the name of the item', inEach({ item_var: 'x', index_var: 'x' })],
  ['index_var must not be __proto__', inEach({ index_var: '__proto__' })],
  ['concurrency must be >= 1', inEach({ concurrency: 0 })],
  ['concurrency must be <= 256', inEach({ concurrency: 257 })],
  [
    'for_each f: with its concurrency the sequence has more than 20000 blocks',
    inEach({ concurrency: 256, body: many(90) }),
  ],
  ['input_schema', { input_schema: { type: 'nothing' } }],
  ['must not use pattern', inStep({ output_schema: { pattern: '^(a+)+$' } })],
  ['choices must not be empty', asking({ choices: [] })],
  ['choices must not have the value a twice', asking({ choices: [CHOICE, CHOICE] })],
  ['value is required', asking({ choices: [{ label: 'A' }] })],
  ['store_as', asking({ store_as: ' ' })],
  ['wait_for_input.timeout', asking({ timeout: 0.5 })],
  ['params.name', waiting({})],
  ['params.key', waiting({ name: 'n', key: [] })],
  ['params.timeout_ms', waiting({ name: 'n', timeout_ms: 0 })],
  ['params.schema', waiting({ name: 'n', schema: { const: '{{ data.x }}' } })],
  ['blocks[0].blocks must not be empty', of({ type: 'cancellation_scope', id: 's', blocks: [] })],
  ['blocks[0].steps[0].action is required', saga({ id: '1' })],
  [
    'blocks[0].steps[0].compensation[0].type is an unknown block type: stp',
    saga({ id: '1', action: noop(), compensation: [{ type: 'stp', id: 'y' }] }),
  ],
  ['step id 1 is not unique', saga({ id: '1', action: noop() }, { id: '1', action: noop('y') })],
  [
    'blocks[0] must have a variant whose weight is above 0',
    split(variant('x', 0), variant('y', 0)),
  ],
  [
    'must have variants of different names, and has x twice',
    split(variant('x', 1), variant('x', 1)),
  ],
  ['on_failure[0].handler must be one of noop', onFailure({ handler: 'charge_card' })],
  ['on_cancel[1].type must be step', { on_cancel: [noop('h'), parallel('p')] }],
  ['on_failure[0].retry is not supported', onFailure({ retry: { max_attempts: 2 } })],
  ['id x is not unique', onFailure({ id: 'x' })],
  ['on_failure[0].params.url is required', onFailure({ handler: 'http_request', params: {} })],
];

for (const [says, more] of REFUSED) {
  test(`a wrong definition is 400, told why, and not stored: ${says}`, async () => {
    const definition = refusing.definition([noop()], more);
    const reply = await refusing.post<{ error: string }>('/sequences', definition);
    assert.equal(reply.status, 400, reply.text);
    assert.ok(reply.body.error.includes(says), reply.text);
    assert.ok(!reply.body.error.includes('is not valid'), reply.text);
    assert.deepEqual((await refusing.get('/sequences')).body, []);
  });
}

// ---------------------------------------------------------------- definitions

const blocks = [step('a', 'noop')];

const named = async (tenant: Tenant, route: 'by-name' | 'versions', name: string) =>
  tenant.get<unknown>(`/sequences/${route}?tenant_id=${tenant.name}&namespace=test&name=${name}`);

const countOf = async (tenant: Tenant) =>
  expectStatus(await tenant.get<unknown[]>('/instances?limit=1000'), 200).length;

describe('A deprecated version is hidden from by-name and versions but readable by id; deprecating twice succeeds; an unknown id is 404', () => {
  test('Deprecating hides a version from by-name and the list, keeps it readable by id as deprecated, and is idempotent; an unknown id is 404', async (tenant) => {
    const first = await tenant.sequence(blocks, { name: 'order', version: 1 });
    const second = await tenant.sequence(blocks, { name: 'order', version: 2 });
    for (const time of ['once', 'twice']) {
      const reply = await tenant.post(`/sequences/${second}/deprecate`);
      assert.deepEqual([reply.status, reply.text], [204, ''], time);
    }
    const found = async (query: string) => {
      const reply = await named(tenant, 'by-name', `order${query}`);
      return expectStatus(reply, 200) as SequenceDefinition;
    };
    assert.equal((await found('')).id, first);
    assert.equal((await found('&version=2')).id, second);
    assert.equal((await named(tenant, 'by-name', 'order&version=3')).status, 404);
    const versions = expectStatus(await named(tenant, 'versions', 'order'), 200);
    assert.deepEqual(column(versions as SequenceDefinition[], 'id'), [first]);
    const { status, body } = await tenant.get<SequenceDefinition>(`/sequences/${second}`);
    assert.deepEqual([status, body.deprecated], [200, true]);
    // Instances of it can be created.
    await tenant.until(await tenant.create(second), 'completed');
    assert.equal((await tenant.post(`/sequences/${randomUUID()}/deprecate`)).status, 404);
    assert.equal((await api.tenant().post(`/sequences/${first}/deprecate`)).status, 404);
    await tenant.post(`/sequences/${first}/deprecate`);
    assert.equal((await named(tenant, 'by-name', 'order')).status, 404);
    assert.deepEqual((await named(tenant, 'versions', 'order')).body, []);
  });
});

test('a sequence with a live instance is kept, whatever the instance does', async (tenant) => {
  for (const state of ['scheduled', 'waiting', 'paused']) {
    const id = await tenant.inState(state);
    const path = `/sequences/${(await tenant.instance(id)).sequence_id}`;
    assert.equal((await tenant.delete(path)).status, 409);
    assert.equal((await tenant.get(path)).status, 200);
    await tenant.signal(id, 'cancel');
    assert.equal((await tenant.delete(path)).status, 204);
  }
});

test('The versions of an unknown name are an empty array', async () => {
  const reply = await named(api.tenant(), 'versions', 'nobody');
  assert.deepEqual([reply.status, reply.body], [200, []]);
});

describe('The same idempotency key gives one instance and the same id, also after a failure and a retry; different or missing keys give different instances', () => {
  const create = async (tenant: Tenant, sequence: string, key?: string) => {
    const body = tenant.creation(sequence, key === undefined ? {} : { idempotency_key: key });
    const reply = await tenant.post<{ id: string; deduplicated: boolean }>('/instances', body);
    return expectStatus(reply, 201);
  };

  test('the same key twice gives one instance and the same id, at the same time, too', async (tenant) => {
    const sequence = await tenant.sequence(blocks);
    const replies = await Promise.all(Array.from(Array(20), () => create(tenant, sequence, 'k')));
    const [{ id } = { id: '' }] = replies;
    assert.deepEqual(new Set(column(replies, 'id')), new Set([id]));
    assert.equal(replies.filter(({ deduplicated }) => !deduplicated).length, 1);
    assert.deepEqual(await create(tenant, sequence, 'k'), { id, deduplicated: true });
    assert.equal(await countOf(tenant), 1);
  });

  test('also after it failed and was retried', async (tenant) => {
    const sequence = await tenant.sequence([step('a', 'assert', { params: { condition: 'ok' } })]);
    const { id } = await create(tenant, sequence, 'k');
    await tenant.until(id, 'failed');
    assert.deepEqual(await create(tenant, sequence, 'k'), { id, deduplicated: true });
    await tenant.signal(id, 'update_context', { ok: true });
    expectStatus(await tenant.post(`/instances/${id}/retry`), 200);
    await tenant.until(id, 'completed');
    assert.deepEqual(await create(tenant, sequence, 'k'), { id, deduplicated: true });
    assert.equal(await countOf(tenant), 1);
  });

  test('different or absent keys give distinct instances', async (tenant) => {
    const sequence = await tenant.sequence(blocks);
    const keys = ['k', 'l', 'K', 'k ', undefined, undefined, '', ''];
    const replies = [];
    for (const key of keys) replies.push(await create(tenant, sequence, key));
    const other = api.tenant();
    replies.push(await create(other, await other.sequence(blocks), 'k'));
    assert.equal(new Set(column(replies, 'id')).size, keys.length + 1);
    assert.ok(replies.every(({ deduplicated }) => !deduplicated));
  });
});

// `instances-create.test.ts` has the unknown sequence, `auth-and-tenants.test.ts` the empty batch.
const post = (tenant: Tenant, instances: Json[]) =>
  tenant.post<{ count: number; error: string }>('/instances/batch', { instances });

test('A batch of 0 returns count 0, 10000 items are accepted, 10001 are 400; an unknown sequence is 404 and writes nothing', async () => {
  const itemOf = async (tenant: Tenant) =>
    tenant.creation(await tenant.sequence(blocks), { next_fire_at: FAR });
  // A server with too much work under way refuses it for now, or answers before it is done.
  const tenant = await eventually(async () => {
    const fresh = api.tenant();
    const all = Array(10_000).fill(await itemOf(fresh));
    assert.equal(expectStatus(await post(fresh, all), 201).count, 10_000);
    return fresh;
  });
  const item = await itemOf(tenant);
  const beyond = await eventually(async () =>
    expectStatus(await post(tenant, Array(10_001).fill(item)), 400),
  );
  assert.match(beyond.error, /instances/);
  assert.equal((await tenant.get<unknown[]>('/instances?offset=9999&limit=10')).body.length, 1);
});

const LIMIT = 256 * 1024;
/** A context whose text has as many bytes as this. */
const contextOf = (bytes: number) => {
  const frame = JSON.stringify({ data: { text: '' }, config: {} }).length;
  return { data: { text: 'x'.repeat(bytes - frame) }, config: {} };
};
const large = { context: contextOf(LIMIT + 1) };

test('A context above 256 KiB is 413, alone or in a batch, and stores nothing', async (tenant) => {
  const sequence = await tenant.sequence(blocks);
  assert.equal((await tenant.post('/instances', tenant.creation(sequence, large))).status, 413);
  const instances = [tenant.creation(sequence), tenant.creation(sequence, large)];
  assert.equal((await tenant.post('/instances/batch', { instances })).status, 413);
  assert.equal(await countOf(tenant), 0);
  await tenant.create(sequence, { context: contextOf(LIMIT) });
});

test('An instance created with a future next_fire_at stays scheduled until then', async (tenant) => {
  const sequence = await tenant.sequence(blocks);
  const next_fire_at = new Date(Date.now() + 500).toISOString();
  const id = await tenant.create(sequence, { next_fire_at });
  // One that is created later and is due earlier, so that timers are seen to be served.
  const earlier = new Date(Date.parse(next_fire_at) - 300).toISOString();
  await tenant.until(await tenant.create(sequence, { next_fire_at: earlier }), 'completed');
  const done = await tenant.until(id, 'completed');
  assert.ok((done.context.runtime.started_at ?? '') >= next_fire_at);
  const far = await tenant.create(sequence, { next_fire_at: FAR });
  const { state, next_fire_at: due } = await tenant.instance(far);
  assert.deepEqual([state, due], ['scheduled', FAR]);
  assert.deepEqual(await tenant.outputs(far), []);
  const past = await tenant.create(sequence, { next_fire_at: '1999-01-01T00:00:00Z' });
  await tenant.until(past, 'completed');
});
