/** How a worker asks and reports: places, batches, and what it does with servers that answer late, badly or not at all. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import type { Between, Exchange } from '../helpers/workers.js';
import { reportsOf, runWorker, signalled, testWorker } from '../helpers/workers.js';

const api = useSharedApi();

const handler = 'work';

function world() {
  const tenant = api.tenant();
  return { tenant, place: { url: api.url, tenant: tenant.name } };
}

async function createMany(tenant: Tenant, handler: string, count: number): Promise<void> {
  const sequence = await tenant.sequence([step('a', handler)]);
  const instances = Array.from({ length: count }, () => tenant.creation(sequence));
  expectStatus(await tenant.post('/instances/batch', { instances }), 201);
}

async function untilAllCompleted(tenant: Tenant, handler: string, count: number): Promise<void> {
  await eventually(async () => {
    const states = column(await tenant.tasks(handler), 'state');
    assert.equal(states.filter((state) => state === 'completed').length, count);
  });
}

const ask = ({ sent }: Exchange) => sent.poll?.limit ?? 0;

test('never more is claimed than there are places, and all are taken when there is work', async (t) => {
  const { tenant, place } = world();
  const concurrency = 5;
  const tasks = 60;
  await createMany(tenant, handler, tasks);
  let running = 0;
  let most = 0;
  let asked = 0;
  let mostAsked = 0;
  const between: Between = async (exchange, forward) => {
    asked += ask(exchange);
    mostAsked = Math.max(mostAsked, running + asked);
    try {
      return await forward();
    } finally {
      asked -= ask(exchange);
    }
  };
  const { worker } = testWorker(
    t,
    { ...place, between },
    {
      concurrency,
      handlers: {
        [handler]: async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
          running -= 1;
        },
      },
    },
  );
  await worker.start();
  await untilAllCompleted(tenant, handler, tasks);
  assert.deepEqual([most, mostAsked], [concurrency, concurrency]);
});

test('results under load go in batches, together with the next poll', async (t) => {
  const { tenant, place } = world();
  const tasks = 200;
  await createMany(tenant, handler, tasks);
  const { exchanges } = await runWorker(t, place, {
    concurrency: 50,
    handlers: { [handler]: () => ({}) },
  });
  await untilAllCompleted(tenant, handler, tasks);
  const reports = reportsOf(exchanges);
  assert.ok(reports.length <= tasks / 5, `${reports.length} requests for ${tasks} results`);
  assert.ok(reports.some((exchange) => ask(exchange) > 0));
  assert.ok(
    exchanges.every(({ sent }) => !(sent.results && sent.poll?.wait_ms)),
    'no outcome waits for a task',
  );
});

test('one result of a worker with nothing else to do is reported at once, beside the poll that waits', async (t) => {
  const { tenant, place } = world();
  const { exchanges } = await runWorker(t, place, {
    pollWaitMs: 60_000,
    handlers: { [handler]: () => ({}) },
  });
  await eventually(() => assert.ok(exchanges.some(({ sent }) => sent.poll?.wait_ms === 60_000)));
  await tenant.runUntil('completed', [step('a', handler), step('b', handler)]);
  const seen = reportsOf(exchanges).map(({ sent }) => sent.results?.length);
  assert.deepEqual(seen, [1, 1]);
});

test('a free place is filled while a report waits for its answer', async (t) => {
  const { tenant, place } = world();
  const [held, answered, filled] = [signalled(), signalled(), signalled()];
  let begun = 0;
  const between: Between = async ({ sent }, forward) => {
    if (sent.results === undefined) return forward();
    held.resolve();
    await answered.promise;
    return forward();
  };
  const { exchanges } = await runWorker(
    t,
    { ...place, between },
    {
      concurrency: 2,
      handlers: {
        [handler]: () => {
          begun += 1;
          if (begun === 3) filled.resolve();
        },
      },
    },
  );
  await eventually(() => assert.ok(exchanges.some(({ sent }) => sent.poll?.wait_ms)));
  await createMany(tenant, handler, 1);
  await held.promise;
  await createMany(tenant, handler, 2);
  await filled.promise;
  answered.resolve();
  await untilAllCompleted(tenant, handler, 3);
});

test('a report is sent again, word for word, until it is answered, and taken once', async (t) => {
  const { tenant, place } = world();
  let isLost = false;
  const refusals = [
    () => Promise.reject(new TypeError('fetch failed')),
    () => answerOf(503, 'busy'),
    () => answerOf(429, 'too many requests'),
    () => answerOf(502, ''),
  ];
  const between: Between = async ({ sent }, forward) => {
    if (sent.results === undefined) return forward();
    const refuse = refusals.shift();
    if (refuse !== undefined) return refuse();
    // Taken, and not told so.
    if (!isLost) {
      isLost = true;
      await (await forward()).arrayBuffer();
      throw new TypeError('the connection broke');
    }
    return forward();
  };
  const { exchanges, warnings } = await runWorker(
    t,
    { ...place, between },
    { handlers: { [handler]: () => ({ n: 1 }) } },
  );
  const id = await tenant.runUntil('completed', [step('a', handler)]);
  await eventually(() => assert.ok(reportsOf(exchanges).at(-1)?.answer));
  const texts = reportsOf(exchanges).map(({ sent }) => JSON.stringify(sent.results));
  assert.equal(texts.length, 6);
  assert.equal(new Set(texts).size, 1);
  assert.deepEqual(reportsOf(exchanges).at(-1)?.answer?.outcomes[0]?.status, 409);
  assert.ok(!warnings.some((line) => line.includes('its claim is lost')), warnings.join('\n'));
  assert.deepEqual(await tenant.outputsOf(id), { a: { n: 1 } });
});

test('a batch that is too large as a whole is sent in parts', async (t) => {
  const { tenant, place } = world();
  const tasks = 8;
  await createMany(tenant, handler, tasks);
  const ready = signalled();
  let begun = 0;
  const { exchanges } = await runWorker(
    t,
    {
      ...place,
      between: ({ sent }, forward) =>
        (sent.results?.length ?? 0) > 2 ? answerOf(413, 'too large') : forward(),
    },
    {
      handlers: {
        [handler]: async () => {
          begun += 1;
          if (begun === tasks) ready.resolve();
          await ready.promise;
        },
      },
    },
  );
  await untilAllCompleted(tenant, handler, tasks);
  const sizes = reportsOf(exchanges).map(({ sent }) => sent.results?.length);
  assert.deepEqual(sizes, [8, 1, 2, 4, 1, 2, 2]);
});

test('a server without the exchange is served by single requests', async (t) => {
  const { tenant, place } = world();
  const [first, second] = ['first', 'second'];
  const statuses = new Map<string, number>();
  const between: Between = async ({ route }, forward) => {
    if (route.endsWith('/exchange')) return answerOf(404, 'no such route');
    const answer = await forward();
    statuses.set(route.slice(route.lastIndexOf('/')), answer.status);
    // An old server ignores the preference, and answers with the task.
    return route.endsWith('/complete')
      ? Response.json({ state: 'completed' }, { headers: { 'x-request-id': '1' } })
      : answer;
  };
  const { exchanges } = await runWorker(
    t,
    { ...place, between },
    {
      heartbeatMs: 50,
      handlers: {
        [first]: async (task, ctx) => {
          await ctx.checkpoint({ page: 1 });
          if (task.attempt === 0) throw new Error('again');
          return { from: task.checkpoint };
        },
        [second]: () => ({ done: true }),
      },
    },
  );
  const retry = { retry: { max_attempts: 2, initial_backoff: 1 } };
  const id = await tenant.runUntil('completed', [step('a', first, retry), step('b', second)]);
  assert.deepEqual(await tenant.outputsOf(id), { a: { from: { page: 1 } }, b: { done: true } });
  assert.equal(exchanges.filter(({ route }) => route.endsWith('/exchange')).length, 1);
  assert.deepEqual(
    ['/fail', '/complete', '/heartbeat'].map((kind) => statuses.get(kind)),
    [204, 204, 200],
  );
  for (const kind of ['poll', 'heartbeat', 'fail', 'complete']) {
    assert.ok(
      exchanges.some(({ route }) => route.endsWith(kind)),
      kind,
    );
  }
});

/** As a server that is not to be had answers. */
async function answerOf(status: number, error: string): Promise<Response> {
  const headers = { 'x-request-id': 'r1', 'x-error-code': 'ENG_TEST', 'retry-after': '0' };
  return new Response(JSON.stringify({ error }), { status, headers });
}
