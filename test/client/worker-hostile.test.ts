/** What handlers log, throw and return at their worst: nothing of it loses a result, or holds others back. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { FatalError, type TaskContext } from '../../client/src/index.js';
import { eventually, step, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { ROOT } from '../helpers/docs.js';
import { DEFAULT_API_KEY } from '../helpers/engine.js';
import { HOSTILE, whole } from '../helpers/hostile.js';
import { type Between, reportsOf, runWorker } from '../helpers/workers.js';

const api = useSharedApi();

const handler = 'work';

/** Runs one instance for each row, all of them by one worker whose handler is given the row. */
async function runEach<Row>(
  t: TestContext,
  rows: readonly Row[],
  state: 'completed' | 'failed',
  work: (row: Row, ctx: TaskContext) => unknown,
  between?: Between,
) {
  const tenant = api.tenant();
  const place = { url: api.url, tenant: tenant.name, ...(between && { between }) };
  const { exchanges } = await runWorker(t, place, {
    handlers: {
      [handler]: ({ params }, ctx) => work(rows[Number(params.row)] as Row, ctx) as object,
    },
  });
  const ends = rows.map(async (row, n) => {
    // By its name, a sequence is another one for each.
    const id = await tenant.run([step(`s${n}`, handler, { params: { row: n } })]);
    return { row, id, instance: await tenant.until(id, state) };
  });
  const ended = [];
  // One after the other: the lists of a tenant are, when the server is busy.
  for (const { row, id, instance } of await Promise.all(ends)) {
    const path = `/instances/${id}/logs?limit=20`;
    const logs = expectStatus(await tenant.get<{ message: string }[]>(path), 200);
    ended.push({ row, instance, lines: column(logs, 'message') });
  }
  return { exchanges, ended };
}

test('no log line loses the output, whatever it contains', async (t) => {
  const work = (_: unknown, { log }: TaskContext) => {
    for (const { text } of HOSTILE.lines) log.info(whole(text));
    // What is no text is logged all the same.
    for (const odd of [new TextEncoder().encode('bytes'), 123, null, Symbol('s')]) {
      log.info(odd as never);
    }
    return { isDone: true };
  };
  const { ended } = await runEach(t, ['all'], 'completed', work);
  const stored = HOSTILE.lines.map(({ stored }) => whole(stored));
  assert.deepEqual(ended[0]?.lines, [...stored, 'bytes', '123', 'null', 'Symbol(s)']);
});

for (const { name, lines, text, bodyBytes } of HOSTILE.floods) {
  test(`of log lines beyond the body limit the oldest are dropped: ${name}`, async (t) => {
    /** A server that accepts so much, and says so. */
    const between: Between = async (_, forward) => {
      const response = await forward();
      const answer = { ...((await response.json()) as object), max_body_bytes: bodyBytes };
      return Response.json(answer, { headers: response.headers });
    };
    const work = (_: unknown, { log }: TaskContext) => {
      for (let n = 0; n < lines; n += 1) log.info(whole(text));
      log.info('the last one');
      return { isDone: true };
    };
    const { exchanges } = await runEach(t, [name], 'completed', work, between);
    const [{ sent } = assert.fail()] = reportsOf(exchanges);
    const bytes = Buffer.byteLength(JSON.stringify(sent));
    const [result] = sent.results ?? [];
    assert.ok(result?.kind === 'complete' && bytes <= bodyBytes, `${bytes} bytes`);
    const [first = '', ...others] = column(result.logs ?? [], 'message');
    assert.match(first, /^\d+ earlier lines were dropped$/);
    assert.equal(Number.parseInt(first, 10) + others.length, lines + 1);
    assert.equal(others.at(-1), 'the last one');
    // No more than have to be.
    const line = Buffer.byteLength(whole(text));
    assert.ok(bytes > bodyBytes - line - 500, `${bytes} bytes`);
  });
}

test('every failure is reported, whatever its message and details contain', async (t) => {
  const thrown = [
    ...HOSTILE.lines.map(({ text, stored }) => ({
      error: () => new FatalError(whole(text)),
      told: [...whole(stored)].slice(0, 500).join('') || 'FatalError',
    })),
    ...HOSTILE.errors.map(({ kind, told }) => ({
      error: ODD_ERRORS[kind],
      told: new RegExp(told),
    })),
  ];
  const { ended } = await runEach(t, thrown, 'failed', ({ error }) => {
    throw error?.();
  });
  for (const { row, instance } of ended) {
    const message = instance.failure?.message ?? '';
    // The server shortens it once more.
    const begun = (text: string) => text.slice(0, 400);
    if (typeof row.told === 'string') assert.equal(begun(message), begun(row.told));
    else assert.match(message, row.told);
    assert.equal(instance.failure?.attempt, 0);
  }
});

const fatal = (message: unknown, details?: unknown) =>
  Object.assign(new Error('told'), { retryable: false, message, details });

const boom = () => {
  throw new Error('boom');
};

const circle: { self?: object } = {};
circle.self = circle;

const ODD_ERRORS: Readonly<Record<string, () => unknown>> = {
  'the message is a list': () => fatal(['a', 'b']),
  'the message is an object': () => fatal({ code: 7 }),
  'the message is a number': () => fatal(7),
  'the text throws': () => {
    const error = Object.assign(new FatalError('no'), { name: 'Odd' });
    return Object.defineProperty(error, 'message', { get: boom });
  },
  'every member throws': () =>
    new Proxy(
      { retryable: false },
      {
        get: (_, name) => (name === 'retryable' ? false : boom()),
        getPrototypeOf: boom,
        ownKeys: boom,
      },
    ),
  'details contain themselves': () => new FatalError('told', { details: circle }),
  'details have odd names': () =>
    new FatalError('told', { details: { [Symbol('s')]: 1n, big: 1n } }),
  'details throw': () => new FatalError('told', { details: { toJSON: boom, toString: boom } }),
};

test('an output that cannot be stored fails its step permanently, with the reason', async (t) => {
  const odd = HOSTILE.outputs.map(({ kind, told }) => ({ output: ODD_OUTPUTS[kind], told }));
  const refused = HOSTILE.refused.filter(({ is_text }) => !is_text);
  const others = refused.map(({ json, told }) => {
    return {
      output: { kept: JSON.parse(whole(json)) },
      told: `${told}.* is not accepted, at .*kept`,
    };
  });
  const { ended } = await runEach(t, [...odd, ...others], 'failed', ({ output }, { log }) => {
    log.info('a line');
    return output;
  });
  for (const { row, instance, lines } of ended) {
    assert.match(instance.failure?.message ?? '', new RegExp(row.told));
    assert.equal(instance.failure?.attempt, 0, row.told);
    assert.deepEqual(lines, ['a line'], row.told);
  }
});

const ODD_OUTPUTS: Readonly<Record<string, unknown>> = {
  'not a number': { n: Number.NaN },
  'it contains itself': circle,
  'a list': [1],
  'larger than a body': { text: 'x'.repeat(11_000_000) },
};

for (const [name, answer] of Object.entries({
  'the connection is reset': () => Promise.reject(new TypeError('fetch failed')),
  'a firewall answers in place of the server': () => new Response('<h1>No</h1>', { status: 403 }),
  'a gateway gives up on it': () => new Response('', { status: 504 }),
})) {
  test(`a report that cannot be delivered does not delay the others: ${name}`, async (t) => {
    const tenant = api.tenant();
    let isOpen = false;
    let runs = 0;
    const between: Between = ({ sent }, forward) =>
      !isOpen && JSON.stringify(sent.results ?? []).includes('unwanted') ? answer() : forward();
    const place = { url: api.url, tenant: tenant.name, between };
    const { warnings } = await runWorker(t, place, {
      handlers: {
        [handler]: ({ params }) => {
          runs += 1;
          return { text: params.n === 0 ? 'unwanted' : 'x'.repeat(1_000) };
        },
      },
    });
    const sequence = await tenant.sequence([step('a', handler, { params: { n: '{{ data.n }}' } })]);
    const instances = Array.from({ length: 40 }, (_, n) => ({
      ...tenant.creation(sequence),
      context: { data: { n } },
    }));
    expectStatus(await tenant.post('/instances/batch', { instances }), 201);
    const completed = async (count: number) =>
      eventually(async () => {
        const states = column(await tenant.tasks(handler), 'state');
        assert.equal(states.filter((state) => state === 'completed').length, count);
      });
    await completed(39);
    isOpen = true;
    await completed(40);
    assert.equal(runs, 40, 'none was done again');
    assert.ok(warnings.length < 10, warnings.join('\n'));
  });
}

/** A program with a worker, whose handler is `work`. */
const program = (work: string) => `
import { Client, Worker } from '${ROOT}/dist/client/src/index.js';
const { URL, KEY, TENANT } = process.env;
const client = new Client({ url: URL, apiKey: KEY, tenant: TENANT });
const handlers = { ${handler}: async () => { ${work} } };
await new Worker(client, { handlers, handleSignals: true }).run();
`;

function started(t: TestContext, tenant: string, work: string) {
  const env = { ...process.env, URL: api.url, KEY: DEFAULT_API_KEY, TENANT: tenant };
  const args = ['--input-type=module', '-e', program(work)];
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  return { child, exit: once(child, 'exit') };
}

test('a worker survives an unhandled rejection of its handler', async (t) => {
  const tenant = api.tenant();
  const work = 'void Promise.reject(new Error("nobody waits")); return { isDone: true };';
  const { child, exit } = started(t, tenant.name, work);
  await tenant.runUntil('completed', [step('a', handler)]);
  await tenant.runUntil('completed', [step('a', handler)]);
  child.kill('SIGTERM');
  assert.deepEqual(await exit, [0, null]);
});

test('a process that dies of an uncaught error releases its tasks first', async (t) => {
  const tenant = api.tenant();
  const work =
    'setTimeout(() => { throw new Error("nobody catches") }); await new Promise(() => {});';
  const { exit } = started(t, tenant.name, work);
  await tenant.run([step('a', handler)]);
  assert.deepEqual(await exit, [1, null]);
  const [task] = await tenant.tasks(handler);
  assert.deepEqual([task?.state, task?.lost_claims], ['pending', 0]);
});
