/** Limits of sizes and values, at each and one beyond it, and the limits of tenants. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeyMinted } from '../../schema/api-key.js';
import { ROUTES, type Route, type RouteId } from '../../schema/routes.js';
import type { TenantLimits } from '../../schema/tenant-limits.js';
import {
  beforeWith,
  eventually,
  type Json,
  loop,
  newHandler,
  parallel,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus, type Reply } from '../helpers/client.js';
import { byDepth, isDeep } from '../helpers/depth.js';
import { HOSTILE, whole } from '../helpers/hostile.js';
import { noThings, requestTo } from '../helpers/route-requests.js';

const BODY_BYTES_MAX = { small: 64 * 1024, usual: 1024 * 1024, large: 10 * 1024 * 1024 };
const CONTEXT_BYTES_MAX = 256 * 1024;

let sequence: string;
let instance: string;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  sequence = await tenant.sequence([step('a', newHandler())]);
  instance = await tenant.create(sequence);
});

type Ask = { readonly method: string; readonly path: string; readonly body: Json };

/**
 * A request to each route that takes a body, about things that are not there. One that is signed
 * says nothing of its body before it knows who sent it.
 */
function asks(): [id: string, Ask][] {
  const routes = Object.values<Route>(ROUTES).filter((route) => route.body && !route.isRaw);
  const { name } = tenant;
  return routes.map((route) => {
    const { method, path, body = {} } = requestTo(route, noThings(name), name, name);
    return [route.id, { method, path, body }];
  });
}

const bytesMaxOf = (id: string) => BODY_BYTES_MAX[ROUTES[id as RouteId].bodySize ?? 'usual'];

/** The request with one more field, whose JSON text is given. */
const send = ({ method, path, body }: Ask, pad: string) =>
  tenant.request<{ error: string }>(method, path, {
    raw: JSON.stringify(body).replace(/}$/, `,"pad":${pad}}`),
  });

/** Of each size, and of each owner that reads bodies: a front thread, and a shard. */
const OF_EACH_SIZE = [
  ...['workers.poll', 'workers.heartbeat', 'workers.complete'],
  ...['instances.bulkState', 'instances.create', 'instances.createBatch'],
];

/** How the body as it is is answered, when it has been sent before. */
async function usualStatus(ask: Ask): Promise<number> {
  await send(ask, '1');
  return (await send(ask, '1')).status;
}

/** An array in arrays: with the object around it the body is `depth` levels deep. */
const nested = (depth: number) => '['.repeat(depth - 1) + ']'.repeat(depth - 1);

const stored = async () => {
  const sequences = await tenant.get<unknown[]>('/sequences');
  const instances = await tenant.get<unknown[]>('/instances');
  const { text } = await tenant.get(`/instances/${instance}`);
  return [sequences.body.length, instances.body.length, text];
};

describe('every route with a body', () => {
  test('takes JSON of depth 256 and refuses 257 and more with 400', async () => {
    for (const [id, ask] of asks()) {
      const status = await usualStatus(ask);
      const fits = await send(ask, nested(256));
      assert.equal(fits.status, status, `${id}: ${fits.text}`);
    }
    const before = await stored();
    for (const [id, ask] of asks()) {
      const deeper = [257, ...byDepth([20_000], [5_000, 30_000, 450_000])];
      for (const depth of deeper.filter((levels) => 2 * levels < bytesMaxOf(id) - 1_000)) {
        const reply = await send(ask, nested(depth));
        assert.equal(reply.status, 400, `${id} ${depth}`);
        assert.match(reply.body.error, /nested deeper than 256 levels.* at pad\[0\]\[0\]/);
      }
    }
    assert.deepEqual(await stored(), before);
  });

  // Each route gets one of them; those are left out that are only looked for in what is JSON otherwise.
  const hostile = HOSTILE.refused.filter(({ is_text }) => !is_text);
  test('refuses what cannot be stored with 400 that names the place, and stores nothing', async () => {
    const before = await stored();
    for (const [at, [id, ask]] of asks().entries()) {
      const { json, told } = hostile[at % hostile.length]!;
      const reply = await send(ask, whole(json));
      assert.equal(reply.status, 400, `${id}: ${reply.text}`);
      assert.match(reply.body.error, new RegExp(`${told}.* is not accepted, at pad`), id);
    }
    assert.deepEqual(await stored(), before);
  });

  test('takes a body of its size (10 MiB, 1 MiB, or 64 KiB of a poll), and one byte more is 413 and changes nothing', async () => {
    const some = asks().filter(([id]) => isDeep || OF_EACH_SIZE.includes(id));
    for (const [id, ask] of some) {
      const status = await usualStatus(ask);
      const around = JSON.stringify(ask.body).length + ',"pad":""'.length;
      const bytes = bytesMaxOf(id) - around;
      assert.equal((await send(ask, `"${'x'.repeat(bytes)}"`)).status, status, id);
      const before = await stored();
      assert.equal((await send(ask, `"${'x'.repeat(bytes + 1)}"`)).status, 413, id);
      assert.deepEqual(await stored(), before, id);
    }
  });
});

const deepest = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

test('a context of depth 256 goes through create, outputs, signals and completions', async () => {
  const own = newHandler();
  // The body, context, data and x are four levels.
  const value = deepest(252);
  const id = await tenant.run([step('a', own)], { context: { data: { x: value } } });
  assert.deepEqual((await tenant.instance(id)).context.data.x, value);
  await tenant.complete(await tenant.task(own), { y: deepest(254) });
  await tenant.until(id, 'completed');
  assert.deepEqual((await tenant.instance(id)).context.data.y, deepest(254));
  assert.deepEqual((await tenant.outputs(id))[0]?.output, { y: deepest(254) });
});

/** A context whose sections together are so many bytes of compact JSON. */
const contextOf = (bytes: number, around: object) => {
  const rest = Buffer.byteLength(JSON.stringify(around)) + '"x":""'.length;
  return { data: { x: 'x'.repeat(bytes - rest) } };
};
const patched = { data: {}, config: {}, audit: [] };

test('the context of 256 KiB can be set by PATCH, one byte more is 413 and changes nothing', async () => {
  const patch = (bytes: number) =>
    tenant.patch(`/instances/${instance}/context`, { context: contextOf(bytes, patched) });
  assert.equal((await patch(CONTEXT_BYTES_MAX)).status, 200);
  const before = await stored();
  assert.equal((await patch(CONTEXT_BYTES_MAX + 1)).status, 413);
  const merge = await tenant.post(`/instances/${instance}/signals`, {
    signal_type: 'update_context',
    payload: { more: 1 },
  });
  assert.equal(merge.status, 413);
  assert.deepEqual(await stored(), before);
  const reset = await tenant.patch(`/instances/${instance}/context`, { context: { data: {} } });
  assert.equal(reset.status, 200);
});

test('a list stops at 8 MiB, and links to the rest', async () => {
  const crowded = api.tenant();
  const id = await crowded.sequence([step('a', newHandler())]);
  const large = { context: { data: { x: 'x'.repeat(250_000) } } };
  const instances = Array(20).fill(crowded.creation(id, large));
  for (const _ of [1, 2]) await crowded.post('/instances/batch', { instances });
  const first = await crowded.get<unknown[]>('/instances');
  assert.ok(first.text.length <= 8 * 1024 * 1024 + 1_000 && first.body.length < 40);
  const next = /<([^>]+)>; rel="next"/.exec(String(first.headers.link))?.[1] ?? '';
  const rest = await crowded.get<unknown[]>(next.replace(/^\/api\/v1/, ''));
  assert.equal(first.body.length + rest.body.length, 40);
});

// ---------------------------------------------------------------- edges

type Sized = (size: number) => Promise<Reply<{ error?: string }>>;

/** What is limited, its most, the request that has so much of it, and the status of what is taken. */
type Limit = readonly [what: string, max: number, ask: Sized, served?: number];

const text = (size: number) => 'x'.repeat(size);
const many = <T>(size: number, make: (at: number) => T): T[] =>
  Array.from({ length: size }, (_, at) => make(at));

const storing = (
  blocks: (size: number) => Json[],
  more: (size: number) => Json = () => ({}),
): Sized => {
  return (size) => tenant.post('/sequences', tenant.definition(blocks(size), more(size)));
};
const creating = (more: (size: number) => Json): Sized => {
  return (size) => tenant.post('/instances', tenant.creation(sequence, more(size)));
};
const oneStep = () => [step('a', 'noop')];

const limiting = (key: string, more: Json = {}) =>
  tenant.put<{ error?: string }>(`/rate-limits/${key}`, {
    max_count: 1,
    window_seconds: 1,
    ...more,
  });
const polling = (worker_id: string) =>
  tenant.post<{ error?: string }>('/workers/tasks/poll', { handler_name: 'h', worker_id });
const minting = (more: Json) =>
  api.root.post<{ error?: string }>('/api-keys', {
    tenant_id: tenant.name,
    capabilities: ['worker'],
    ...more,
  });

// `unit/definitions` has how deep and how many blocks may be.
const LIMITS: readonly Limit[] = [
  ['branches of a parallel', 256, storing((n) => [parallel('p', ...many(n, () => []))])],
  ['iterations of a loop', 100_000, storing((n) => [loop('l', 'no', oneStep(), n)])],
  ['the condition of a loop', 16_384, storing((n) => [loop('l', text(n), oneStep())])],
  ['when of a step', 16_384, storing((n) => [step('a', 'noop', { when: text(n) })])],
  ['the id of a block', 255, storing((n) => [step(text(n), 'noop')])],
  ['the name of a handler', 255, storing((n) => [step('a', text(n))])],
  ['the name of a sequence', 255, storing(oneStep, (n) => ({ name: text(n) }))],
  ['a rate limit key', 512, storing((n) => [step('a', 'noop', { rate_limit_key: text(n) })])],
  ['the namespace of an instance', 255, creating((n) => ({ namespace: text(n) }))],
  ['an idempotency key', 512, creating((n) => ({ idempotency_key: text(n) }))],
  ['the key of a rate limit', 512, (n) => limiting(text(n)), 200],
  ['the count of a rate limit', 100_000, (n) => limiting('count', { max_count: n }), 200],
  ['the window of a rate limit', 86_400, (n) => limiting('window', { window_seconds: n }), 200],
  ['the id of a worker', 255, (n) => polling(text(n)), 200],
  ['the name of a key', 255, (n) => minting({ name: text(n) })],
  ['the tenant of a key', 255, (n) => minting({ tenant_id: text(n) })],
  ['the tenant in the header', 255, (n) => api.tenant(text(n)).get('/instances'), 200],
];

const counts = async () => {
  const lengths = [];
  const sequences = '/sequences?include_definition=false&limit=1000';
  for (const path of [sequences, '/instances?limit=1000', '/rate-limits?limit=1000']) {
    lengths.push((await tenant.get<unknown[]>(path)).body.length);
  }
  const keys = await api.root.get<unknown[]>(`/api-keys?tenant_id=${tenant.name}`);
  return [...lengths, keys.body.length];
};

for (const [what, max, ask, served = 201] of LIMITS) {
  test(`${what}: ${max} is taken, ${max + 1} is 400 and leaves nothing`, async () => {
    const taken = await ask(max);
    assert.equal(taken.status, served, taken.text.slice(0, 300));
    const start = await counts();
    const reply = await ask(max + 1);
    assert.equal(reply.status, 400, reply.text.slice(0, 300));
    assert.match(reply.body.error ?? '', new RegExp(`${max}`));
    assert.deepEqual(await counts(), start);
  });
}

test('a page has 100 entries by default, as many as are asked for, and at most 1,000', async () => {
  const crowded = api.tenant();
  const id = await crowded.sequence([step('a', 'noop')]);
  const later = { next_fire_at: '2099-01-01T00:00:00Z' };
  const instances = many(1_002, () => crowded.creation(id, later));
  const created = await crowded.post('/instances/batch', { instances });
  assert.equal(created.status, 201, created.text);
  for (const [query, got] of [
    ['', 100],
    ['?limit=999', 999],
    ['?limit=1001', 1_000],
  ] as const) {
    const reply = await crowded.get<unknown[]>(`/instances${query}`);
    assert.deepEqual([reply.status, reply.body.length], [200, got], query);
    assert.match(String(reply.headers.link), /rel="next"/);
  }
  assert.deepEqual((await crowded.get<unknown[]>('/instances?limit=0')).body, []);
});

// ---------------------------------------------------------------- tenants

const pathOf = ({ name }: Tenant) => `/tenants/${name}/limits`;

const put = async (tenant: Tenant, limits: Json): Promise<TenantLimits> =>
  expectStatus(await api.root.put<TenantLimits>(pathOf(tenant), limits), 200);

test('a creation beyond the depth of the queue is 429, until a task has ended', async () => {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const body = tenant.creation(await tenant.sequence([step('a', handler)]));
  const create = () => tenant.post<{ error: string }>('/instances', body);
  await put(tenant, { queue_depth_max: 2 });
  for (let n = 0; n < 2; n += 1) assert.equal((await create()).status, 201);
  const refused = await create();
  assert.equal(refused.status, 429, refused.text);
  assert.match(refused.body.error, /may have 2 open tasks \(queue_depth_max\)/);
  assert.equal(refused.headers['retry-after'], '1');
  await tenant.complete(await tenant.task(handler));
  assert.equal((await create()).status, 201);
  expectStatus(await api.root.delete(pathOf(tenant)), 204);
  assert.equal((await create()).status, 201);
});

test('at a full queue a repeated creation is answered by the instance that is there', async () => {
  const tenant = api.tenant();
  const sequence = await tenant.sequence([step('a', newHandler())]);
  const item = (idempotency_key: string) => tenant.creation(sequence, { idempotency_key });
  const create = (key: string) => tenant.post<{ id: string }>('/instances', item(key));
  const batch = async (...keys: string[]) =>
    (await tenant.post('/instances/batch', { instances: keys.map(item) })).status;
  const first = expectStatus(await create('one'), 201);
  expectStatus(await create('two'), 201);
  await put(tenant, { queue_depth_max: 2 });
  assert.equal((await create('three')).status, 429);
  const again = await create('one');
  assert.deepEqual([again.status < 300, again.body.id], [true, first.id], again.text);
  assert.ok((await batch('one', 'two')) < 300);
  assert.equal(await batch('one', 'four'), 429);
  const dry = await tenant.post('/instances', { ...item('one'), dry_run: true });
  assert.equal(dry.status, 429, 'a dry run has keys of its own');
  await put(tenant, { queue_depth_max: 3 });
  assert.ok((await batch('one', 'two', 'four')) < 300, 'one of them is new');
  assert.ok((await batch('one', 'two', 'four')) < 300);
  // Items with keys become tasks after the answer.
  let number = 0;
  await eventually(async () => {
    number += 1;
    assert.equal((await create(`five ${number}`)).status, 429);
  });
});

test('a unit that is used up is 429 with its bound and the wait, for one tenant', async () => {
  const [tenant, other] = [api.tenant(), api.tenant()];
  await put(tenant, { blocks_per_second: 1, blocks_burst: 2 });
  const blocks = ['a', 'b'].map((id) => step(id, 'noop'));
  await tenant.sequence(blocks);
  const refused = await tenant.post<{ error: string }>('/sequences', tenant.definition(blocks));
  assert.equal(refused.status, 429, refused.text);
  assert.match(refused.body.error, /its blocks: 1 a second, at most 2 at once; this takes 2/);
  assert.match(String(refused.headers['retry-after']), /^[12]$/);
  await other.sequence(blocks);
});

test('only the root key reads and changes limits, and all of them have to be right', async () => {
  const tenant = api.tenant();
  const path = pathOf(tenant);
  const mint = { tenant_id: tenant.name, capabilities: ['operator'] };
  const { secret } = expectStatus(await api.root.post<KeyMinted>('/api-keys', mint), 201);
  const own = tenant.with({ apiKey: secret });
  for (const reply of [await own.get(path), await own.put(path, {}), await own.delete(path)]) {
    assert.equal(reply.status, 403, reply.text);
  }
  const none = expectStatus(await api.root.get<TenantLimits>(path), 200);
  const { rows_per_second, queue_depth_max, updated_at } = none;
  assert.deepEqual([rows_per_second, queue_depth_max, updated_at], [null, null, null]);
  for (const [name, value] of [
    ['rows_per_second', 0],
    ['schedules_max', -1],
    ['bytes_burst', 'x'],
    ['row', 1],
  ] as const) {
    const reply = await api.root.put<{ error: string }>(path, { [name]: value });
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.body.error, new RegExp(name));
  }
  assert.deepEqual(expectStatus(await api.root.get(path), 200), none);
  assert.equal((await api.root.delete(path)).status, 404);
  await put(tenant, { rows_per_second: 5 });
  const replaced = await put(tenant, { queue_depth_max: 0 });
  assert.deepEqual([replaced.rows_per_second, replaced.queue_depth_max], [null, 0]);
});
