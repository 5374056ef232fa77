/**
 * Every limit that a client can meet in one request, one below it, at it, and one beyond it: what is
 * within is taken as it is, what is beyond gets the documented answer that names the limit, and
 * leaves nothing. `limits.test.ts` has those of every body alike, such as the depth of JSON.
 */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import {
  beforeWith,
  forEach,
  type Json,
  loop,
  newHandler,
  parallel,
  race,
  router,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import type { Reply } from '../helpers/client.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';

let sequence: string;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  sequence = await tenant.sequence([step('a', newHandler())]);
});

type Ask = (size: number) => Promise<Reply<{ error?: string }>>;

interface Rest {
  readonly served?: number;
  readonly refused?: number;
}

/** What is limited, its most, and the request that has so much of it. */
type Limit = readonly [what: string, max: number, ask: Ask, rest?: Rest];

const text = (size: number) => 'x'.repeat(size);
const many = <T>(size: number, make: (at: number) => T): T[] =>
  Array.from({ length: size }, (_, at) => make(at));

const storing = (
  blocks: (size: number) => Json[],
  more: (size: number) => Json = () => ({}),
): Ask => {
  return (size) => tenant.post('/sequences', tenant.definition(blocks(size), more(size)));
};
const creating = (more: (size: number) => Json): Ask => {
  return (size) => tenant.post('/instances', tenant.creation(sequence, more(size)));
};
const oneStep = () => [step('a', 'noop')];

/** So many levels, the innermost one a step. */
function nested(levels: number): Json[] {
  let blocks = [step('leaf', 'noop')];
  for (let level = 1; level < levels; level++) blocks = [parallel(`p${level}`, blocks)];
  return blocks;
}

/** A context whose JSON has so many bytes. */
function contextOf(bytes: number): Json {
  const rest = JSON.stringify({ data: { x: '' }, config: {} }).length;
  return { data: { x: text(bytes - rest) } };
}

/** A creation whose body has so many bytes. */
function bodyOf(bytes: number): string {
  const body = JSON.stringify(tenant.creation(sequence, { pad: '' }));
  return body.replace('"pad":""', `"pad":"${text(bytes - body.length)}"`);
}

const batchOf = (items: readonly Json[]) =>
  tenant.post<{ error?: string }>('/instances/batch', {
    instances: items.map((more) => tenant.creation(sequence, more)),
  });
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

/** A request of which line and headers, as they are counted, have so many bytes. */
async function statusWithHeaders(bytes: number): Promise<number> {
  const path = '/api/v1/instances';
  const headers = {
    host: 'h',
    'x-api-key': DEFAULT_API_KEY,
    'x-tenant-id': tenant.name,
    'x-pad': '',
  };
  const used = path.length + Object.entries(headers).flat().join('').length;
  const lines = Object.entries({ ...headers, 'x-pad': text(bytes - used) });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
  try {
    socket.write(`GET ${path} HTTP/1.1\r\n${head}\r\n`);
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    return Number(/^HTTP\/1\.1 (\d{3}) /.exec(chunk.toString('latin1'))?.[1]);
  } finally {
    socket.destroy();
  }
}

const TAKEN = { served: 200 };
const TOO_LARGE = { refused: 413 };

const LIMITS: readonly Limit[] = [
  ['nesting of blocks', 64, storing(nested)],
  ['blocks of a sequence', 5_000, storing((n) => many(n, (at) => step(`s${at}`, 'noop')))],
  ['branches of a parallel', 256, storing((n) => [parallel('p', ...many(n, () => []))])],
  [
    'branches of a race',
    256,
    storing((n) => [
      race(
        'r',
        many<Json[]>(n, () => []),
      ),
    ]),
  ],
  ['iterations of a loop', 100_000, storing((n) => [loop('l', 'no', oneStep(), n)])],
  [
    'iterations of a for_each',
    100_000,
    storing((n) => [forEach('f', 'items', oneStep(), { max_iterations: n })]),
  ],
  ['the condition of a loop', 16_384, storing((n) => [loop('l', text(n), oneStep())])],
  ['the condition of a route', 16_384, storing((n) => [router('r', { [text(n)]: oneStep() })])],
  ['when of a step', 16_384, storing((n) => [step('a', 'noop', { when: text(n) })])],
  ['the id of a block', 255, storing((n) => [step(text(n), 'noop')])],
  ['the name of a handler', 255, storing((n) => [step('a', text(n))])],
  ['the name of a sequence', 255, storing(oneStep, (n) => ({ name: text(n) }))],
  ['a namespace', 255, storing(oneStep, (n) => ({ namespace: text(n) }))],
  [
    'a rate limit key of a step',
    512,
    storing((n) => [step('a', 'noop', { rate_limit_key: text(n) })]),
  ],
  ['the namespace of an instance', 255, creating((n) => ({ namespace: text(n) }))],
  ['an idempotency key', 512, creating((n) => ({ idempotency_key: text(n) }))],
  ['a concurrency key', 512, creating((n) => ({ concurrency_key: text(n), max_concurrency: 1 }))],
  ['a context', 256 * 1024, creating((n) => ({ context: contextOf(n) })), TOO_LARGE],
  [
    'a body',
    10 * 1024 * 1024,
    (n) => tenant.request('POST', '/instances', { raw: bodyOf(n) }),
    TOO_LARGE,
  ],
  // Of one idempotency key, since ten thousand instances say no more about the limit than one.
  ['items of a batch', 10_000, (n) => batchOf(many(n, () => ({ idempotency_key: 'once' })))],
  ['the key of a rate limit', 512, (n) => limiting(text(n)), TAKEN],
  ['the count of a rate limit', 100_000, (n) => limiting('count', { max_count: n }), TAKEN],
  ['the window of a rate limit', 86_400, (n) => limiting('window', { window_seconds: n }), TAKEN],
  ['the id of a worker', 255, (n) => polling(text(n)), TAKEN],
  ['the name of a key', 255, (n) => minting({ name: text(n) })],
  ['the tenant of a key', 255, (n) => minting({ tenant_id: text(n) })],
  ['capabilities of a key', 32, (n) => minting({ capabilities: many(n, () => 'worker') })],
  ['the tenant in the header', 255, (n) => api.tenant(text(n)).get('/instances'), TAKEN],
];

const counts = async () => {
  const lengths = [];
  for (const path of ['/sequences', '/instances', '/rate-limits']) {
    lengths.push((await tenant.get<unknown[]>(`${path}?limit=1000`)).body.length);
  }
  const keys = await api.root.get<unknown[]>(`/api-keys?tenant_id=${tenant.name}`);
  return [...lengths, keys.body.length];
};

for (const [what, max, ask, { served = 201, refused = 400 } = {}] of LIMITS) {
  test(`${what}: ${max - 1} and ${max} are taken, ${max + 1} is ${refused} and leaves nothing`, async () => {
    for (const size of [max - 1, max]) {
      const reply = await ask(size);
      assert.equal(reply.status, served, `${size}: ${reply.text.slice(0, 300)}`);
    }
    const start = await counts();
    const reply = await ask(max + 1);
    assert.equal(reply.status, refused, reply.text.slice(0, 300));
    assert.match(reply.body.error ?? '', new RegExp(`${max}`));
    assert.deepEqual(await counts(), start);
  });
}

test('line and headers: 16,383 and 16,384 bytes are taken, 16,385 are 431', async () => {
  assert.equal(await statusWithHeaders(16_383), 200);
  assert.equal(await statusWithHeaders(16_384), 200);
  assert.equal(await statusWithHeaders(16_385), 431);
});

describe('pages', () => {
  let crowded: Tenant;

  before(async () => {
    crowded = api.tenant();
    const id = await crowded.sequence([step('a', 'noop')]);
    const later = { next_fire_at: '2099-01-01T00:00:00Z' };
    const instances = many(1_002, () => crowded.creation(id, later));
    const reply = await crowded.post('/instances/batch', { instances });
    assert.equal(reply.status, 201, reply.text);
  });

  test('of instances have 999 and 1,000 entries as asked, and 1,000 where more is asked', async () => {
    for (const [asked, got] of [
      [999, 999],
      [1_000, 1_000],
      [1_001, 1_000],
      [1_000_000, 1_000],
    ]) {
      const reply = await crowded.get<unknown[]>(`/instances?limit=${asked}`);
      assert.equal(reply.status, 200);
      assert.equal(reply.body.length, got, `limit=${asked}`);
      assert.match(String(reply.headers.link), /rel="next"/);
    }
    assert.equal((await crowded.get<unknown[]>('/instances')).body.length, 100);
    assert.deepEqual((await crowded.get<unknown[]>('/instances?limit=0')).body, []);
    assert.equal((await crowded.get('/instances?limit=-1')).status, 400);
  });
});
