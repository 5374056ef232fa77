/**
 * Worker endpoints: the engine delivers tasks to a real HTTP server, which answers by the handler of the client
 * library or as the test says.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { ACCEPTED, createHandler, FatalError, type Receive } from '../../client/src/push/index.js';
import type { InstanceExplanation } from '../../schema/explanation.js';
import type { Queues } from '../../schema/statistics.js';
import type { WorkerInfo, WorkerTask } from '../../schema/worker.js';
import type { WorkerEndpoint } from '../../schema/worker-endpoint.js';
import { eventually, type Json, step, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { listen } from '../helpers/http-handler.js';

const tenant = useTenant();
const SECRET = `whsec_${Buffer.from('a key of thirty-two random bytes').toString('base64')}`;

const newName = () => `e-${randomUUID()}`;

interface Served {
  readonly name: string;
  readonly handler: string;
  readonly put: (more?: Json) => Promise<WorkerEndpoint>;
  readonly get: () => Promise<WorkerEndpoint>;
  /** What was received, in order. */
  readonly received: { readonly headers: IncomingMessage['headers']; readonly body: string }[];
}

type Answer = (task: WorkerTask, response: ServerResponse, request: IncomingMessage) => void;

/** An endpoint for a handler of its own; the function answers each request. */
async function endpoint(t: TestContext, answer: Answer, more: Json = {}): Promise<Served> {
  const received: Served['received'] = [];
  const { origin } = await listen(t, (request, response) => {
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => {
      received.push({ headers: request.headers, body });
      answer(JSON.parse(body) as WorkerTask, response, request);
    });
  });
  const name = newName();
  const handler = `push-${randomUUID()}`;
  const path = `/worker-endpoints/${name}`;
  const base = { handlers: [handler], url: `${origin}/tasks`, secret: SECRET, ...more };
  const put = async (changed: Json = {}) =>
    expectStatus(await tenant.put<WorkerEndpoint>(path, { ...base, ...changed }), 200);
  await put();
  t.after(() => tenant.delete(path));
  const get = async () => expectStatus(await tenant.get<WorkerEndpoint>(path), 200);
  return { name, handler, put, get, received };
}

const say = (response: ServerResponse, status: number, body?: unknown, headers = {}) => {
  response.writeHead(status, headers);
  response.end(body === undefined ? '' : JSON.stringify(body));
};

/** Passes the request on to a handler of the client library. */
const by =
  (receive: Receive): Answer =>
  async (task, response, { method, headers }) => {
    const request = new Request('http://here/tasks', {
      method: method ?? 'POST',
      headers: headers as Record<string, string>,
      body: JSON.stringify(task),
    });
    const answered = await receive(request);
    response.writeHead(answered.status);
    response.end(await answered.text());
  };

const RETRY = { retry: { max_attempts: 2, initial_backoff: 1 } };

describe('a worker endpoint', () => {
  test('an endpoint gets each task by a signed POST, and its answer is the output of the step', async (t) => {
    const handler = `push-${randomUUID()}`;
    const receive = createHandler({
      handlers: { [handler]: (task) => ({ doubled: Number(task.params.n) * 2, key: task.id }) },
      secret: SECRET,
    });
    const { received, name } = await endpoint(t, by(receive), { handlers: [handler] });
    const id = await tenant.runUntil('completed', [step('a', handler, { params: { n: 21 } })]);
    const { a } = await tenant.outputsOf(id);
    assert.equal(a?.doubled, 42);
    assert.equal(received.length, 1);
    const { headers, body } = received[0]!;
    const task = JSON.parse(body) as WorkerTask;
    assert.equal(headers['webhook-id'], `${task.id}_${task.claim_epoch}`);
    assert.equal(headers['idempotency-key'], task.idempotency_key);
    assert.equal(task.worker_id, `endpoint:${name}`);
    assert.equal(task.state, 'claimed');
    assert.deepEqual(await tenant.attempts(task.id), [
      ['claimed', 1],
      ['completed', 1],
    ]);
  });

  test('completes a step without an output by 204', async (t) => {
    const { handler } = await endpoint(t, (_, response) => say(response, 204));
    const id = await tenant.runUntil('completed', [step('a', handler)]);
    assert.deepEqual((await tenant.outputsOf(id)).a, {});
  });

  test('an endpoint keeps the claim by 202 until the API has the result', async (t) => {
    const handler = `push-${randomUUID()}`;
    const receive = createHandler({ handlers: { [handler]: () => ACCEPTED }, secret: SECRET });
    const { received } = await endpoint(t, by(receive), { handlers: [handler] });
    const id = await tenant.run([step('a', handler)]);
    const task = await eventually(async () => {
      const [{ body } = { body: '' }] = received;
      return JSON.parse(body) as WorkerTask;
    });
    assert.equal(await tenant.call('heartbeat', task), 200);
    await tenant.complete(task, { later: true });
    await tenant.until(id, 'completed');
    assert.equal(received.length, 1);
  });

  test('an endpoint fails a step for good by 4xx with retryable false, and says why', async (t) => {
    const handler = `push-${randomUUID()}`;
    const receive = createHandler({
      handlers: {
        [handler]: () => {
          throw new FatalError(`the card was declined, and ${SECRET} was logged`);
        },
      },
      secret: SECRET,
    });
    const { received } = await endpoint(t, by(receive), { handlers: [handler] });
    const id = await tenant.runUntil('failed', [step('a', handler, RETRY)]);
    assert.equal(received.length, 1);
    const { failure } = await tenant.instance(id);
    assert.match(
      String(failure?.message),
      /answered 422: the card was declined, and \[REDACTED\] was logged$/,
    );
  });

  for (const [what, answer] of Object.entries<Answer>({
    'a 500': (_, response) => say(response, 500, { message: 'broken' }),
    'a 4xx that does not say that it is final': (_, response) => say(response, 404, 'no'),
    'a redirect': (_, response) => say(response, 307, '', { location: 'http://127.0.0.1:1/' }),
    'a body that is no JSON': (_, response) => response.end('<html>'),
    'a body that is no object': (_, response) => say(response, 200, [1]),
    'a connection that breaks': (_, response) => response.destroy(),
    'an output over the limit': (_, response) => say(response, 200, { a: 'x'.repeat(1_100_000) }),
  })) {
    test(`follows the retry of the step after ${what}`, async (t) => {
      let tries = 0;
      const { handler, received } = await endpoint(t, (task, response, request) => {
        tries += 1;
        if (tries === 1) answer(task, response, request);
        else say(response, 200, { tries });
      });
      await tenant.runUntil('completed', [step('a', handler, RETRY)]);
      assert.equal(received.length, 2);
      const [first, second] = received.map(({ body }) => JSON.parse(body) as WorkerTask);
      assert.deepEqual([first?.attempt, second?.attempt], [0, 1]);
      assert.equal(first?.idempotency_key, second?.idempotency_key);
    });
  }

  test('follows the retry of the step when it does not answer in time', async (t) => {
    const { handler, received } = await endpoint(
      t,
      (task, response) => {
        if (task.attempt > 0) say(response, 200, {});
      },
      { timeout_ms: 200 },
    );
    await tenant.runUntil('completed', [step('a', handler, RETRY)]);
    assert.equal(received.length, 2);
  });

  test('an endpoint that asks for a pause gets the task again later, without a counted attempt', async (t) => {
    let tries = 0;
    const { handler, received, get } = await endpoint(t, (_, response) => {
      tries += 1;
      if (tries === 1) say(response, 503, '', { 'retry-after': '1' });
      else say(response, 200, { tries });
    });
    const id = await tenant.run([step('a', handler)]);
    const paused = await eventually(async () => {
      const { status } = await get();
      assert.equal(status?.state, 'paused');
      return status;
    });
    assert.match(String(paused?.last_error), /answered 503/);
    assert.ok(Date.parse(String(paused?.paused_until)) > 0);
    await tenant.until(id, 'completed');
    const [first, second] = received.map(({ body }) => JSON.parse(body) as WorkerTask);
    assert.deepEqual([first?.attempt, second?.attempt], [0, 0]);
    assert.deepEqual([first?.lost_claims, second?.lost_claims], [0, 0]);
  });

  test('a change of its settings ends the pause that an endpoint has asked for', async (t) => {
    let tries = 0;
    const { handler, put, get } = await endpoint(t, (_, response) => {
      tries += 1;
      if (tries === 1) say(response, 503, '', { 'retry-after': '3600' });
      else say(response, 200, {});
    });
    const id = await tenant.run([step('a', handler)]);
    await eventually(async () => assert.equal((await get()).status?.state, 'paused'));
    await put({});
    await tenant.until(id, 'completed');
    assert.equal((await get()).status?.paused_until, null);
  });

  test('an endpoint that cannot be reached costs no attempt', async (t) => {
    const { handler, put, get } = await endpoint(t, (_, response) => say(response, 200, {}));
    const { url } = await get();
    await put({ url: 'http://127.0.0.1:9/' });
    const id = await tenant.run([step('a', handler)]);
    await eventually(async () => assert.equal((await get()).status?.state, 'paused'));
    await put({ url });
    await tenant.until(id, 'completed');
    const [task] = await tenant.tasks(handler);
    assert.equal(task?.attempt, 0);
    assert.equal((await get()).status?.state, 'idle');
  });

  test('an endpoint gets no more tasks at a time than its concurrency', async (t) => {
    let now = 0;
    let most = 0;
    const { handler } = await endpoint(
      t,
      (_, response) => {
        now += 1;
        most = Math.max(most, now);
        setImmediate(() => {
          now -= 1;
          say(response, 200, {});
        });
      },
      { concurrency: 2 },
    );
    const sequence = await tenant.sequence([step('a', handler)]);
    const ids = await Promise.all(Array.from({ length: 20 }, () => tenant.create(sequence)));
    for (const id of ids) await tenant.until(id, 'completed');
    assert.ok(most <= 2, `${most} at a time`);
  });

  test('ignores the answer of a request whose instance was cancelled', async (t) => {
    let finish: (() => void) | undefined;
    const { handler, received, get } = await endpoint(t, (_, response) => {
      finish = () => say(response, 200, { late: true });
    });
    const id = await tenant.run([step('a', handler)]);
    await eventually(async () => assert.equal(received.length, 1));
    await tenant.signal(id, 'cancel');
    await tenant.until(id, 'cancelled');
    finish?.();
    await eventually(async () => assert.equal((await get()).status?.in_flight, 0));
    assert.deepEqual(await tenant.outputs(id), []);
  });

  test('is listed as a worker of its handlers', async (t) => {
    const { handler, name, put } = await endpoint(t, (_, response) => say(response, 200, {}), {
      enabled: false,
    });
    const workers = async () => expectStatus(await tenant.get<WorkerInfo[]>('/workers'), 200);
    const queue = async () => {
      const { queues } = expectStatus(await tenant.get<Queues>('/queues'), 200);
      return queues.find((it) => it.handler === handler);
    };
    const own = (all: WorkerInfo[]) =>
      all.find(({ worker_id }) => worker_id === `endpoint:${name}`);
    const id = await tenant.run([step('a', handler)]);
    assert.equal(own(await workers()), undefined);
    assert.equal((await queue())?.workers, 0);
    await put({ enabled: true, url: 'http://127.0.0.1:9/' });
    assert.deepEqual(own(await workers())?.handlers, [handler]);
    assert.equal((await queue())?.workers, 1);
    // Claimed while a delivery is tried.
    const next = await eventually(async () => {
      const path = `/instances/${id}/explain`;
      const explained = expectStatus(await tenant.get<InstanceExplanation>(path), 200);
      assert.match(explained.summary, /the worker endpoint e-.* gets tasks/);
      return explained.next.find(({ action }) => action === 'look_at_endpoint');
    });
    const looked = await tenant.get<WorkerEndpoint>(next!.path);
    assert.equal(expectStatus(looked, 200).name, name);
  });
});

describe('the settings of a worker endpoint', () => {
  const body = () => ({ handlers: ['h'], url: 'https://tasks.example/', secret: SECRET });
  const path = () => `/worker-endpoints/${newName()}`;

  test('have defaults, and its secret is never returned', async () => {
    const at = path();
    const set = expectStatus(await tenant.put<WorkerEndpoint>(at, body()), 200);
    assert.deepEqual(
      [set.concurrency, set.timeout_ms, set.enabled, set.receives_secrets],
      [10, 30_000, true, false],
    );
    const { secret: _, ...rest } = body();
    const again = expectStatus(
      await tenant.put<WorkerEndpoint>(at, { ...rest, concurrency: 3 }),
      200,
    );
    assert.equal(again.concurrency, 3);
    assert.equal(again.created_at, set.created_at);
    const shown = JSON.stringify((await tenant.get(at)).body);
    assert.ok(!shown.includes('secret"') && !shown.includes(SECRET));
    const listed = expectStatus(await tenant.get<WorkerEndpoint[]>('/worker-endpoints'), 200);
    assert.ok(listed.some(({ name }) => at.endsWith(name)));
    expectStatus(await tenant.delete(at), 204);
    expectStatus(await tenant.get(at), 404);
    expectStatus(await tenant.delete(at), 404);
  });

  test('are refused with the member that is wrong', async () => {
    for (const [changed, names] of [
      [{ secret: undefined }, /secret is required/],
      [{ secret: 'whsec_no base64' }, /secret must have base64/],
      [{ url: 'ftp://tasks.example/' }, /url: /],
      [{ url: 'https://a:b@tasks.example/' }, /url: /],
      [{ handlers: [] }, /handlers/],
      [{ handlers: ['a', 'b', 'a'] }, /handlers must not have an item twice: \[2\] is .* \[0\]/],
      [{ handlers: ['a', 'http_request'] }, /handlers\[1\] must not be http_request, a built-in/],
      [{ concurrency: 0 }, /concurrency/],
      [{ timeout_ms: 5 }, /timeout_ms/],
      [{ surprise: 1 }, /surprise/],
    ] as const) {
      const reply = await tenant.put<{ error: string }>(path(), { ...body(), ...changed });
      assert.equal(reply.status, 400);
      assert.match(reply.body.error, names);
    }
    expectStatus(await tenant.put('/worker-endpoints/a%20b', body()), 400);
  });

  test('leave the names of endpoints as workers to the engine', async () => {
    const worker_id = 'endpoint:billing';
    for (const [path, claim] of [
      ['/workers/tasks/poll', { worker_id, handler_name: 'h' }],
      ['/workers/tasks/poll/queue', { worker_id, handler_name: 'h', queue_name: 'q' }],
      ['/workers/tasks/exchange', { worker_id, poll: { handlers: ['h'] } }],
    ] as const) {
      const reply = await tenant.post<{ error: string }>(path, claim);
      assert.equal(reply.status, 400, path);
      assert.match(reply.body.error, /: worker_id must not begin with endpoint:/);
    }
  });
});
