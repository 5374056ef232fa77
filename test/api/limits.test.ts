/**
 * What protects the writer: sizes of bodies and contexts, the depth of JSON, and characters and
 * numbers that cannot be stored. Each limit is tried at, below and above it.
 */

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { ROUTES, type Route, type RouteId } from '../../schema/routes.js';
import type { WorkerTask } from '../../schema/worker.js';
import {
  beforeWith,
  eventually,
  type Json,
  newHandler,
  step,
  type Tenant,
  useSharedApi,
} from '../helpers/api.js';
import type { Reply } from '../helpers/client.js';
import { byDepth, isDeep } from '../helpers/depth.js';
import { noThings, requestTo } from '../helpers/route-requests.js';

const BODY_BYTES_MAX = { small: 64 * 1024, usual: 1024 * 1024, large: 10 * 1024 * 1024 };
const CONTEXT_BYTES_MAX = 256 * 1024;

let sequence: string;
let handler: string;
let instance: string;
let task: WorkerTask;

const api = useSharedApi();
const tenant = api.tenant();

beforeWith(api, async () => {
  handler = newHandler();
  sequence = await tenant.sequence([step('a', handler)]);
  instance = await tenant.create(sequence);
  task = await tenant.task(handler);
});

interface Ask {
  readonly method: string;
  readonly path: string;
  readonly body: Json;
}

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
  'workers.poll',
  'workers.heartbeat',
  'instances.bulkState',
  'instances.create',
  'instances.createBatch',
  'workers.complete',
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
  const { body } = await tenant.get<{ event: string }[]>(`/workers/tasks/${task.id}/attempts`);
  return [sequences.body.length, instances.body.length, text, body.length];
};

describe('every route with a body', () => {
  test('takes JSON of depth 255 and 256 and refuses 257 and more with 400', async () => {
    for (const [id, ask] of asks()) {
      const status = await usualStatus(ask);
      for (const depth of [255, 256]) {
        const reply = await send(ask, nested(depth));
        assert.equal(reply.status, status, `${id} ${depth}: ${reply.text}`);
      }
      const before = await stored();
      const deeper = [257, ...byDepth([20_000], [5_000, 30_000, 450_000])];
      for (const depth of deeper.filter((levels) => 2 * levels < bytesMaxOf(id) - 1_000)) {
        const reply = await send(ask, nested(depth));
        assert.equal(reply.status, 400, `${id} ${depth}`);
        assert.match(reply.body.error, /nested deeper than 256 levels.* at pad\[0\]\[0\]/);
      }
      assert.deepEqual(await stored(), before, id);
    }
  });

  const hostile: readonly [string, string, RegExp][] = [
    ['NUL', '{"x":["a\\u0000b"]}', /U\+0000.* at pad\.x\[0\]/],
    ['NUL in a key', '{"a\\u0000b":1}', /U\+0000.* at pad/],
    ['a lone high surrogate', '["\\ud83d"]', /surrogate.* at pad\[0\]/],
    ['a lone low surrogate', '["\\udc00x"]', /surrogate.* at pad\[0\]/],
    ['a reversed pair', '["\\udc00\\ud83d"]', /surrogate.* at pad\[0\]/],
    ['2^53 + 1', '{"n":9007199254740993}', /number|integer/i],
    ['a negative integer beyond 2^53', '[-90071992547409930]', /at pad\[0\]/],
    ['1e400', '{"n":1e400}', /at pad\.n/],
    ['-1e200000', '{"n":-1e200000}', /at pad\.n/],
    ['a number of 500 digits', `[0.${'1'.repeat(500)}]`, /at pad\[0\]/],
  ];
  for (const [what, pad, says] of hostile) {
    test(`refuses ${what} with 400 that names the place, and stores nothing`, async () => {
      const before = await stored();
      for (const [id, ask] of asks()) {
        const reply = await send(ask, pad);
        assert.equal(reply.status, 400, `${id}: ${reply.text}`);
        assert.match(reply.body.error, says, id);
      }
      assert.deepEqual(await stored(), before);
    });
  }

  test('takes a body of its size (10 MiB, 1 MiB, or 64 KiB of a poll), and one byte more is 413 and changes nothing', async () => {
    const some = asks().filter(([id]) => isDeep || OF_EACH_SIZE.includes(id));
    for (const [id, ask] of some) {
      const status = await usualStatus(ask);
      const around = JSON.stringify(ask.body).length + ',"pad":""'.length;
      const bytes = bytesMaxOf(id) - around;
      const fits = await send(ask, `"${'x'.repeat(bytes)}"`);
      assert.equal(fits.status, status, id);
      const before = await stored();
      const beyond = await send(ask, `"${'x'.repeat(bytes + 1)}"`);
      assert.equal(beyond.status, 413, id);
      assert.deepEqual(await stored(), before, id);
    }
  });
});

describe('the largest and the deepest that is stored comes back', () => {
  const deepest = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

  test('a context of depth 256 goes through create, outputs, signals and completions', async () => {
    const own = newHandler();
    // The body, context, data and x are four levels.
    const value = deepest(252);
    const id = await tenant.run([step('a', own)], { context: { data: { x: value } } });
    assert.deepEqual((await tenant.instance(id)).context.data.x, value);
    const claimed = await tenant.task(own);
    await tenant.complete(claimed, { y: deepest(254) });
    await tenant.until(id, 'completed');
    assert.deepEqual((await tenant.instance(id)).context.data.y, deepest(254));
    assert.deepEqual((await tenant.outputs(id))[0]?.output, { y: deepest(254) });
  });

  test('exact integers, pairs of surrogates and long fractions are kept', async () => {
    const raw = `{"a":9007199254740992,"b":-9007199254740992,"c":1e308,"d":"\\ud83d\\ude00","e":0.1}`;
    const data = JSON.parse(raw) as Json;
    const body = JSON.stringify(tenant.creation(sequence)).replace(
      /}$/,
      `,"context":{"data":${raw}}}`,
    );
    const reply = await tenant.request<{ id: string }>('POST', '/instances', { raw: body });
    assert.equal(reply.status, 201, reply.text);
    assert.deepEqual((await tenant.instance(reply.body.id)).context.data, data);
  });
});

describe('the context', () => {
  /** A context whose sections together are so many bytes of compact JSON. */
  const contextOf = (bytes: number, around: object) => {
    const rest = Buffer.byteLength(JSON.stringify(around)) + '"x":""'.length;
    return { data: { x: 'x'.repeat(bytes - rest) } };
  };
  const created = { data: {}, config: {} };
  const patched = { data: {}, config: {}, audit: [] };

  test('of 256 KiB can be created, one byte more is 413 and stores nothing', async () => {
    const create = (bytes: number) =>
      tenant.post<{ id: string }>(
        '/instances',
        tenant.creation(sequence, { context: contextOf(bytes, created) }),
      );
    const fits = await create(CONTEXT_BYTES_MAX);
    assert.equal(fits.status, 201, fits.text);
    const { context } = await tenant.instance(fits.body.id);
    assert.equal((context.data.x as string).length > 262_000, true);
    const before = await stored();
    assert.equal((await create(CONTEXT_BYTES_MAX + 1)).status, 413);
    const batch = await tenant.post('/instances/batch', {
      instances: [
        tenant.creation(sequence, { context: contextOf(CONTEXT_BYTES_MAX + 1, created) }),
      ],
    });
    assert.equal(batch.status, 413);
    assert.deepEqual(await stored(), before);
  });

  test('of 256 KiB can be set by PATCH, one byte more is 413 and changes nothing', async () => {
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

  test('bytes are counted in UTF-8', async () => {
    const emoji = '🙂'.repeat(CONTEXT_BYTES_MAX / 4);
    const reply = await tenant.post(
      '/instances',
      tenant.creation(sequence, { context: { data: { emoji } } }),
    );
    assert.equal(reply.status, 413);
  });
});

describe('a reply stops at 8 MiB', () => {
  const REPLY_BYTES_MAX = 8 * 1024 * 1024;
  const large = { context: { data: { x: 'x'.repeat(250_000) } } };
  const own = newHandler();
  let crowded: Tenant;

  before(async () => {
    crowded = api.tenant();
    const id = await crowded.sequence([step('a', own)]);
    const instances = Array(20).fill(crowded.creation(id, large));
    for (let index = 0; index < 2; index++) await crowded.post('/instances/batch', { instances });
  });

  test('a list links to the rest', async () => {
    const sizes: number[] = [];
    let path: string | undefined = '/instances';
    while (path !== undefined) {
      const reply: Reply<unknown[]> = await crowded.get(path);
      assert.ok(reply.text.length <= REPLY_BYTES_MAX + 1_000);
      sizes.push(reply.body.length);
      const next: string | undefined = /<([^>]+)>; rel="next"/.exec(
        String(reply.headers.link),
      )?.[1];
      path = next?.replace(/^\/api\/v1/, '');
    }
    assert.ok(sizes.length > 1);
    assert.equal(
      sizes.reduce((sum, size) => sum + size),
      40,
    );
  });

  test('a poll gives fewer tasks, and the others at once to the next poll', async () => {
    const seen = new Set<string>();
    await eventually(async () => {
      const reply = await crowded.post<WorkerTask[]>('/workers/tasks/poll', {
        handler_name: own,
        worker_id: 'w1',
        limit: 100,
      });
      assert.ok(reply.text.length <= REPLY_BYTES_MAX + 1_000);
      for (const { id } of reply.body) {
        assert.ok(!seen.has(id));
        seen.add(id);
      }
      assert.equal(seen.size, 40);
    });
  });
});

test('hostile keys in signals and outputs are data like any other', async () => {
  const own = newHandler();
  const id = await tenant.run([step('a', own)]);
  const { id: taskId } = await tenant.task(own);
  await tenant.request('POST', `/instances/${id}/signals`, {
    raw: '{"signal_type":"update_context","payload":{"__proto__":{"x":1},"constructor":1}}',
  });
  const reply = await tenant.request('POST', `/workers/tasks/${taskId}/complete`, {
    raw: '{"worker_id":"w1","output":{"__proto__":{"z":1},"toString":1}}',
  });
  assert.equal(reply.status, 200);
  const { text } = await tenant.get(`/instances/${id}`);
  assert.ok(text.includes('"data":{"__proto__":{"z":1},"constructor":1,"toString":1}'), text);
});

test('a crowd of hostile bodies among good ones: exactly the hostile ones are refused', async () => {
  const own = api.tenant();
  const id = await own.sequence([step('a', 'noop')]);
  const good = JSON.stringify(own.creation(id));
  const bad = ['"\\u0000"', '"\\ud800"', '1e999', nested(300)];
  const statuses = await Promise.all(
    Array.from({ length: 1_000 }, async (_, index) => {
      const pad = index % 50 === 7 ? bad[((index / 50) % 4) | 0] : '1';
      const raw = good.replace(/}$/, `,"metadata":{"n":${pad}}}`);
      return (await own.request('POST', '/instances', { raw })).status;
    }),
  );
  const refused = statuses.filter((status) => status === 400).length;
  assert.equal(refused, 20);
  assert.equal(statuses.filter((status) => status === 201).length, 980);
});
