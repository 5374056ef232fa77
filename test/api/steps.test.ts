/** Single steps over HTTP: what they do, requests that they send, and their logs. */

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { StepLogLine } from '../../schema/edits.js';
import type { LogLine } from '../../schema/log.js';
import type { WorkerTask } from '../../schema/worker.js';
import type { Json, Tenant } from '../helpers/api.js';
import { loop, newHandler, sleep, step, transform, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { listen } from '../helpers/http-handler.js';

const DAY_MS = 86_400_000;

const api = useSharedApi();
const tenant = api.tenant();

test('noop outputs `{}`; log outputs its message, or `no message`; sleep outputs `{slept_ms}` and lasts at least that long', async () => {
  const id = await tenant.runUntil('completed', [
    step('empty', 'noop', { params: { x: 1 } }),
    step('said', 'log', { params: { message: 'good morning', level: 'debug' } }),
    step('silent', 'log'),
    sleep('nap', 200),
  ]);
  assert.deepEqual(await tenant.outputsOf(id), {
    empty: {},
    said: { message: 'good morning' },
    silent: { message: 'no message' },
    nap: { slept_ms: 200 },
  });
  const { nap } = await tenant.tree(id);
  assert.ok(Date.parse(nap?.completed_at ?? '') - Date.parse(nap?.started_at ?? '') >= 200);
});

describe('when takes comparisons, booleans, ternaries, functions and earlier outputs; a falsy or empty result skips the step; an unparseable text ends in a terminal state', () => {
  const data = { n: 5, plan: 'pro', tags: ['a', 'b'], off: false, none: null };
  const guarded = (when: string) => [
    transform('first', { ok: true, n: 7 }),
    step('guarded', 'noop', { when }),
    step('last', 'noop'),
  ];
  const expressions: readonly [string, string, string][] = [
    ['comparisons', 'n >= 5', 'n < 5'],
    ['boolean operators', 'n > 1 && !off', 'n > 9 || off'],
    ['a ternary', 'n > 1 ? true : false', 'n > 1 ? false : true'],
    ['functions', 'contains(tags, "a") && len(tags) == 2', 'starts_with(plan, "x")'],
    ['outputs of earlier steps', 'outputs.first.n == 7', 'outputs.first.n == 8'],
  ];
  test('expressions that hold let their steps run, falsy and empty ones skip theirs', async () => {
    const first = transform('first', { ok: true, n: 7 });
    const blocks = expressions.flatMap(([what, holds, fails]) => [
      step(what, 'noop', { when: holds }),
      step(`not ${what}`, 'noop', { when: fails }),
    ]);
    const falsy = ['', 'off', 'none', '0', '""', '[]'];
    const more = falsy.map((when, at) => step(`b${at}`, 'noop', { when }));
    const id = await tenant.runUntil('completed', [first, ...blocks, ...more], data);
    assert.deepEqual(await tenant.rowsOf(id), ['first', ...column(expressions, 0)]);
    assert.equal((await tenant.nodeStates(id))['not functions'], 'skipped');
  });

  test('one that does not parse fails the step, and so the instance', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', guarded('n > > 1'), data);
    assert.deepEqual(await tenant.rowsOf(id), ['first', 'guarded']);
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });
});

describe('retry_if: truthy retries, falsy fails at once; permanent failures ignore it; a blank retry_if or code is rejected at creation', () => {
  const retry = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
  const isBusy = 'contains(_error.message, "busy")';
  for (const [title, retry_if, params, last] of [
    ['truthy retries, then fails', isBusy, { message: 'busy', retryable: true }, 2],
    ['falsy fails at once', isBusy, { message: 'gone', retryable: true }, 0],
    ['a permanent failure does not consult it', 'true', { retryable: false }, 0],
  ] as const) {
    test(title, async () => {
      const block = step('a', 'fail', { params, retry: { ...retry, retry_if } });
      const rows = await tenant.outputs(await tenant.runUntil('failed', [block]));
      assert.deepEqual(column(rows, 'attempt'), [last]);
    });
  }

  test('a blank retry_if or a blank code is 400 at creation', async () => {
    const tenant = api.tenant();
    for (const more of [{ retry_if: ' ' }, { non_retryable_codes: ['E1', ' '] }]) {
      const blocks = [step('a', 'fail', { retry: { ...retry, ...more } })];
      expectStatus(await tenant.post('/sequences', tenant.definition(blocks)), 400);
    }
    assert.deepEqual((await tenant.get('/sequences')).body, []);
  });
});

describe('Templates: context and outputs by deep paths, dot indexes, unicode and quotes; a template that is the whole text keeps its type, others become text; missing is null; fallbacks work; bracket indexes are not resolved; an unknown root fails the step', () => {
  const data = {
    name: 'Ada',
    n: 3,
    yes: true,
    deep: { er: { list: [10, { x: 'found' }] } },
    größe: 'ü ✓ 東京',
    quoted: 'she said "hi" and \'bye\'',
  };
  // `template.test.ts` has the rest.
  const cases: readonly (readonly [string, unknown, unknown])[] = [
    ['context: data', '{{ context.data.name }}', 'Ada'],
    ['context: config', '{{ context.config.region }}', 'eu'],
    ['unicode', '→ {{ data.größe }}', '→ ü ✓ 東京'],
    ['quotes', '<{{ data.quoted }}>', `<${data.quoted}>`],
    ['whole-string keeps an array', '{{ data.deep.er.list }}', data.deep.er.list],
    [
      'inline coerces',
      '{{ data.n }} {{ data.yes }} {{ data.deep.er.list }}',
      '3 true [10,{"x":"found"}]',
    ],
    ['missing is `null` inline', 'got {{ data.absent }}', 'got null'],
    ['fallback literal', '{{ data.absent | "nobody" }}', 'nobody'],
    ['bracket index is unresolved', '{{ data.deep.er.list[0] }}', null],
    ['no prototype is reached', '{{ data.__proto__ }}', null],
  ];
  test('every kind of expression, as it is documented', async () => {
    const params = Object.fromEntries(cases.map(([what, template]) => [what, template]));
    const context = { data, config: { region: 'eu' } };
    const id = await tenant.run([transform('a', params)], { context });
    await tenant.until(id, 'completed');
    const expected = Object.fromEntries(cases.map(([what, _template, value]) => [what, value]));
    assert.deepEqual((await tenant.outputsOf(id)).a, expected);
  });

  test('outputs chain', async () => {
    const id = await tenant.runUntil('completed', [
      transform('one', { list: [1, 2] }),
      transform('two', { taken: '{{ outputs.one.list }}' }),
      transform('three', { taken: '{{ outputs.two.taken.1 }}' }),
    ]);
    assert.deepEqual((await tenant.outputsOf(id)).three, { taken: 2 });
  });
});

describe('output_schema: an output that violates it fails the instance; a schema that is not an object is rejected at creation', () => {
  const output_schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
  const checked = (params: Json) => [{ ...transform('a', params), output_schema }];

  test('a violation fails it, by a step of the process and by a worker', async () => {
    const tenant = api.tenant();
    const own = await tenant.runUntil('failed', checked({ n: 'text' }));
    assert.equal((await tenant.outputsOf(own)).a?.retryable, false);
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { output_schema })]);
    await tenant.complete(await tenant.task(handler), { n: 'text' });
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.deadLetters(), [id, own]);
  });

  test('conforming', async () => {
    const id = await tenant.runUntil('completed', checked({ n: 1 }));
    assert.deepEqual(await tenant.outputsOf(id), { a: { n: 1 } });
  });

  test('a schema that is no object is 400', async () => {
    const blocks = [step('a', 'noop', { output_schema: [] })];
    const reply = await tenant.post<{ error: string }>('/sequences', tenant.definition(blocks));
    assert.match(expectStatus(reply, 400).error, /output_schema/);
  });
});

interface Deferred {
  /** Unix milliseconds: when the step was reached, and when it is due. */
  readonly from: number;
  readonly due: number;
}

/** An instance whose only step is deferred. */
async function deferred(block: Json, more: Json = {}): Promise<Deferred> {
  const tenant = api.tenant();
  const id = await tenant.run([step('a', 'noop', block)], more);
  const { state, next_fire_at } = await tenant.instance(id);
  assert.equal(state, 'scheduled');
  assert.deepEqual(await tenant.outputs(id), []);
  const from = Date.parse((await tenant.tree(id)).a?.started_at ?? '');
  return { from, due: Date.parse(next_fire_at ?? '') };
}

describe('send_window: outside it the instance stays scheduled with a future next_fire_at; inside it runs', () => {
  const hourOf = (at: number) => new Date(at).getUTCHours();
  const HOUR_MS = 3_600_000;
  /** Tokyo is nine hours ahead, the whole year. */
  for (const [timezone, ahead] of [
    ['UTC', 0],
    ['Asia/Tokyo', 9 * HOUR_MS],
  ] as const) {
    test(`outside of the hours in ${timezone}`, async () => {
      // Two hours ahead: outside of it, also when the hour changes in the meantime.
      const opening = Math.floor((Date.now() + ahead) / HOUR_MS) * HOUR_MS + 2 * HOUR_MS;
      const hours = { start_hour: hourOf(opening), end_hour: hourOf(opening + HOUR_MS) };
      const { due } = await deferred({ send_window: hours }, { timezone });
      assert.equal(due, opening - ahead);
    });
  }

  test('a wide window runs', async () => {
    const now = Date.now();
    const hours = { start_hour: hourOf(now - 9 * HOUR_MS), end_hour: hourOf(now + 9 * HOUR_MS) };
    await tenant.runUntil('completed', [step('a', 'noop', { send_window: hours })]);
  });
});

describe('Delays skip weekends and holidays with business_days_only, spread within plus/minus jitter, and keep wall-clock time over DST changes', () => {
  /** The next such day of the week at noon, UTC; 0 is Sunday. At least a day ahead. */
  function next(weekday: number): { at: number; duration: number } {
    const tomorrow = Math.ceil(Date.now() / DAY_MS) * DAY_MS;
    const wait = (weekday - new Date(tomorrow).getUTCDay() + 7) % 7;
    const at = tomorrow + wait * DAY_MS + DAY_MS / 2;
    return { at, duration: at - Date.now() };
  }
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);

  test('a Saturday, a Sunday, and holidays of the delay and of the config are passed over', async () => {
    const { at, duration } = next(6);
    const [monday, tuesday] = [day(at + 2 * DAY_MS), day(at + 3 * DAY_MS)];
    const { from, due } = await deferred(
      { delay: { duration, business_days_only: true, holidays: [monday] } },
      { context: { config: { holidays: [tuesday] } } },
    );
    assert.equal(due - from - duration, 4 * DAY_MS);
  });

  test('jitter spreads next_fire_at within plus/minus jitter', async () => {
    const offsets: number[] = [];
    for (let index = 0; index < 6; index++) {
      const { from, due } = await deferred({ delay: { duration: 600_000, jitter: 300_000 } });
      offsets.push(due - from);
    }
    assert.ok(
      offsets.every((offset) => offset >= 300_000 && offset <= 900_000),
      `${offsets}`,
    );
    assert.ok(new Set(offsets).size > 1);
    const { from, due } = await deferred({ delay: { duration: 600_000, jitter: 0 } });
    assert.equal(due - from, 600_000, 'zero jitter is exact');
  });

  // `unit/timing` has the other hours, and `unit/evaluator-waits` the zones.
  test('DST wall clock honoured: in the hour that is skipped it is an hour later', async () => {
    const delay = { fire_at_local: '2040-03-11T02:30:00' };
    const { due } = await deferred({ delay }, { timezone: 'America/New_York' });
    assert.equal(due, Date.parse('2040-03-11T07:30:00Z'));
  });
});

// ---------------------------------------------------------------- http_request

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly key: unknown;
  readonly body: string;
}

/** A server outside, and the requests that it has seen. */
async function outside(
  t: TestContext,
  answer: (response: ServerResponse, seen: readonly Seen[]) => void,
): Promise<{ origin: string; seen: readonly Seen[] }> {
  const seen: Seen[] = [];
  const { origin } = await listen(t, async (request: IncomingMessage, response) => {
    const { method, url, headers } = request;
    const body = Buffer.concat(await request.toArray()).toString();
    seen.push({ method, url, key: headers['idempotency-key'], body });
    answer(response, seen);
  });
  return { origin, seen };
}

test('5xx answers are retried by the policy, with the same idempotency key each time', async (t) => {
  const { origin, seen } = await outside(t, (response, { length }) =>
    response.writeHead([500, 503][length - 1] ?? 200).end('made it'),
  );
  const retry = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
  const params = { url: origin, method: 'POST' };
  const id = await tenant.runUntil('completed', [step('a', 'http_request', { params, retry })]);
  const { a } = await tenant.outputsOf(id);
  assert.deepEqual([a?.status, a?.body], [200, 'made it']);
  assert.equal(seen.length, 3);
  assert.equal(new Set(seen.map(({ key }) => key)).size, 1);
  assert.match(String(seen[0]?.key), /^[0-9a-f-]{36}$/);
});

// ---------------------------------------------------------------- logs

const logs = async (tenant: Tenant, id: string, query = '') =>
  expectStatus(await tenant.get<StepLogLine[]>(`/instances/${id}/logs${query}`), 200);

/** The lines as [block, level, message]. */
const said = async (tenant: Tenant, id: string, query = '') =>
  (await logs(tenant, id, query)).map((line) => [line.block_id, line.level, line.message]);

const log = (id: string, message?: unknown, level?: string) =>
  step(id, 'log', { params: { ...(message === undefined ? {} : { message }), level } });

/** Ends the task with lines; resolves with the status. */
async function end(
  tenant: Tenant,
  task: WorkerTask,
  how: 'complete' | 'fail',
  lines: unknown,
  more: Json = {},
): Promise<number> {
  const { worker_id, claim_epoch } = task;
  const body = how === 'complete' ? { output: {} } : { message: 'no' };
  const reply = await tenant.post(`/workers/tasks/${task.id}/${how}`, {
    worker_id,
    claim_epoch,
    ...body,
    logs: lines,
    ...more,
  });
  return reply.status;
}

/** An instance that waits for a worker, and its task. */
async function claimed(tenant: Tenant, more: Json = {}): Promise<[id: string, task: WorkerTask]> {
  const handler = newHandler();
  return [await tenant.run([step('work', handler, more)]), await tenant.task(handler)];
}

describe('the log of a tenant', () => {
  const lineOf = (line: LogLine) => [line.sequence_name, line.block_id, line.level, line.message];
  const all = async (of: Tenant, query = '') =>
    expectStatus(await of.get<LogLine[]>(`/logs?${query}`), 200);

  test('has the lines of all its instances, newest first, and of no other', async () => {
    const [own, other] = [api.tenant(), api.tenant()];
    const first = await own.sequence([log('a', 'Größe 1'), log('b', 'two', 'warn')], {
      name: 'first',
    });
    const second = await own.sequence([log('a', 'three', 'debug')], { name: 'second' });
    for (const sequence of [first, second]) {
      await own.until(await own.create(sequence), 'completed');
    }
    await other.runUntil('completed', [log('a', 'of another')]);
    const lines = await all(own);
    assert.deepEqual(lines.map(lineOf), [
      ['second', 'a', 'debug', 'three'],
      ['first', 'b', 'warn', 'two'],
      ['first', 'a', 'info', 'Größe 1'],
    ]);
    const shown = async (query: string) => (await all(own, query)).map(({ message }) => message);
    assert.deepEqual(await shown('level=warn,debug'), ['three', 'two']);
    assert.deepEqual(await shown('text=GR%C3%96SSE'), ['Größe 1']);
    assert.deepEqual(await shown('sequence=first&block_id=a'), ['Größe 1']);
    assert.deepEqual(await shown(`instance_id=${lines[0]?.instance_id}`), ['three']);
    assert.deepEqual(await shown(`since=${new Date(Date.now() + 60_000).toISOString()}`), []);
    assert.equal((await own.get('/logs?since=yesterday')).status, 400);
    assert.equal((await own.get('/logs?levels=warn')).status, 400);
  });

  test('ends a page early where lines are large, with a cursor that leads to the others', async () => {
    const some = api.tenant();
    const large = Array.from({ length: 100 }, () => ({
      message: randomBytes(6_000).toString('base64'),
    }));
    for (let count = 0; count < 8; count++) {
      const [, task] = await claimed(some);
      const lines = count === 0 ? [{ message: 'the oldest' }, ...large] : large;
      assert.equal(await end(some, task, 'complete', lines), 200);
    }
    let reply = await some.get<LogLine[]>('/logs?text=OLDEST');
    assert.deepEqual(reply.body, []);
    let pages = 1;
    for (; reply.body.length === 0; pages++) {
      const cursor = reply.headers['x-next-cursor'];
      assert.ok(cursor);
      reply = await some.get<LogLine[]>(`/logs?text=OLDEST&cursor=${cursor}`);
    }
    assert.deepEqual(column(reply.body, 'message'), ['the oldest']);
    assert.ok(pages > 1);
  });

  test('of one instance has the same filters, and is read from its end', async () => {
    const id = await tenant.runUntil('completed', [log('a', 'one'), log('b', 'two', 'warn')]);
    assert.deepEqual(await said(tenant, id, '?order=newest&limit=1'), [['b', 'warn', 'two']]);
    assert.deepEqual(await said(tenant, id, '?level=info'), [['a', 'info', 'one']]);
    assert.deepEqual(await said(tenant, id, '?text=TW'), [['b', 'warn', 'two']]);
  });
});

describe('lines of workers', () => {
  test('come with complete, oldest first by their own times, which are given back in UTC', async () => {
    const [id, task] = await claimed(tenant);
    const lines = [
      { ts: '2026-03-01T12:00:02.5Z', level: 'warn', message: 'second' },
      { ts: '2026-03-01T13:00:01+01:00', level: 'debug', message: 'first' },
      { ts: '2026-03-01T12:00:02.500Z', level: 'AUDIT', message: 'third' },
    ];
    assert.equal(await end(tenant, task, 'complete', lines), 200);
    assert.deepEqual(await logs(tenant, id), [
      { block_id: 'work', ts: '2026-03-01T12:00:01.000Z', level: 'debug', message: 'first' },
      { block_id: 'work', ts: '2026-03-01T12:00:02.500Z', level: 'warn', message: 'second' },
      { block_id: 'work', ts: '2026-03-01T12:00:02.500Z', level: 'AUDIT', message: 'third' },
    ]);
  });

  test('come with fail too, for each try', async () => {
    const handler = newHandler();
    const id = await tenant.run([step('work', handler)]);
    // Without a time and a level they get those of the call, and info.
    const lines = (message: string) => [{ message, ts: null }];
    const retryable = { retryable: true };
    assert.equal(await end(tenant, await tenant.task(handler), 'fail', lines('1'), retryable), 200);
    assert.equal(await end(tenant, await tenant.task(handler), 'fail', lines('2')), 200);
    await tenant.until(id, 'failed');
    assert.deepEqual(await said(tenant, id), [
      ['work', 'info', '1'],
      ['work', 'info', '2'],
    ]);
    for (const { ts } of await logs(tenant, id)) {
      assert.ok(Math.abs(Date.parse(ts) - Date.now()) < 60_000, ts);
    }
  });

  test('that are wrong are 400, and the task stays claimed', async () => {
    const [id, task] = await claimed(tenant);
    const wrong: unknown[] = [
      'text',
      [{}],
      [{ message: 'x'.repeat(8_193) }],
      [{ message: 'x', level: 'l'.repeat(33) }],
      [{ message: 'x', ts: 'today' }],
      Array(1_001).fill({ message: 'x' }),
    ];
    for (const lines of wrong) {
      const what = JSON.stringify(lines).slice(0, 80);
      assert.equal(await end(tenant, task, 'complete', lines), 400, what);
      assert.equal(await end(tenant, task, 'fail', lines), 400, what);
    }
    assert.deepEqual(await logs(tenant, id), []);
    assert.equal(await end(tenant, task, 'complete', null), 200);
    assert.deepEqual(await logs(tenant, id), []);
    await tenant.until(id, 'completed');
  });

  test('of a call that does not hold the claim are not kept', async () => {
    const [id, task] = await claimed(tenant);
    const stale = { ...task, claim_epoch: 7 };
    assert.equal(await end(tenant, stale, 'complete', [{ message: 'stale' }]), 409);
    assert.equal(await end(tenant, task, 'complete', [{ message: 'held' }]), 200);
    assert.equal(await end(tenant, task, 'complete', [{ message: 'late' }]), 409);
    assert.deepEqual(await said(tenant, id), [['work', 'info', 'held']]);
  });
});

test('lines of the handler log stand in the order in which they were said, among those of workers, over many commits', async () => {
  const handler = newHandler();
  const id = await tenant.run(
    [
      // What is no text is written as compact JSON.
      log('before', { a: [1, 'x'] }),
      step('work', handler),
      log('after', 'three'),
      loop('l', 'go', [log('again', '{{ runtime.attempt }}')], 300),
    ],
    { context: { data: { go: true } } },
  );
  await end(tenant, await tenant.task(handler), 'complete', [{ message: 'two' }]);
  await tenant.until(id, 'completed');
  const lines = await said(tenant, id);
  assert.deepEqual(lines[0], ['before', 'info', '{"a":[1,"x"]}']);
  assert.deepEqual(
    lines.slice(0, 4).map(([block]) => block),
    ['before', 'work', 'after', 'again'],
  );
  assert.equal(lines.length, 303);
});

test('a page has offset and limit, a block and a size in bytes, and says when there is more', async () => {
  const id = await tenant.runUntil('completed', [log('a', '0'), log('b', '1'), log('c', '2')]);
  const { body, headers } = await tenant.get<StepLogLine[]>(`/instances/${id}/logs?limit=2`);
  assert.deepEqual(column(body, 'message'), ['0', '1']);
  assert.match(String(headers.link), /cursor=\w+>; rel="next"/);
  const cursor = headers['x-next-cursor'];
  assert.deepEqual(await said(tenant, id, `?cursor=${cursor}`), [['c', 'info', '2']]);
  assert.deepEqual(await said(tenant, id, '?offset=2&limit=2'), [['c', 'info', '2']]);
  assert.deepEqual(await said(tenant, id, '?offset=9'), []);
  assert.equal((await tenant.get(`/instances/${id}/logs?limit=-1`)).status, 400);

  const blocks = ['a', 'b', 'a2'].map((block) => log(block, block.repeat(100)));
  const looped = await tenant.runUntil('completed', [loop('again', 'true', blocks, 3)]);
  const path = `/instances/${looped}/logs?block_id=a&max_bytes=300`;
  const first = await tenant.get<StepLogLine[]>(path);
  const second = await tenant.get(`${path}&cursor=${first.headers['x-next-cursor']}`);
  const seen = [...first.body, ...(second.body as StepLogLine[])];
  assert.deepEqual(column(seen, 'block_id'), ['a', 'a']);
});
