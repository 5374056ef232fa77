/** What single steps do, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Json, newHandler, sleep, step, transform, useSharedApi } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

const DAY_MS = 86_400_000;

const api = useSharedApi();

describe('noop output `{}`; log echoes the message, missing message gives `no message`; sleep output `{slept_ms}` and really waits at least that long', () => {
  test('noop', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', [step('a', 'noop', { params: { x: 1 } })]);
    assert.deepEqual(await tenant.outputsOf(id), { a: {} });
  });

  test('log', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', [
      step('said', 'log', { params: { message: 'good morning', level: 'debug' } }),
      step('silent', 'log'),
    ]);
    const outputs = await tenant.outputsOf(id);
    assert.deepEqual(outputs.said, { message: 'good morning' });
    assert.deepEqual(outputs.silent, { message: 'no message' });
  });

  test('sleep', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', [sleep('a', 200)]);
    assert.deepEqual(await tenant.outputsOf(id), { a: { slept_ms: 200 } });
    const { a } = await tenant.tree(id);
    assert.ok(Date.parse(a?.completed_at ?? '') - Date.parse(a?.started_at ?? '') >= 200);
  });
});

describe('when: comparisons, boolean, ternary, functions, outputs of earlier steps; falsy or empty skips without output and without blocking; unparseable ends in a terminal state', () => {
  const data = { n: 5, plan: 'pro', tags: ['a', 'b'], off: false, none: null };
  const guarded = (when: string) => [
    transform('first', { ok: true, n: 7 }),
    step('guarded', 'noop', { when }),
    step('last', 'noop'),
  ];
  const expressions: readonly [string, string, string][] = [
    ['comparisons', 'n >= 5', 'n < 5'],
    ['equality', 'plan == "pro"', 'plan != "pro"'],
    ['boolean operators', 'n > 1 && !off', 'n > 9 || off'],
    ['a ternary', 'n > 1 ? true : false', 'n > 1 ? false : true'],
    ['functions', 'contains(tags, "a") && len(tags) == 2', 'starts_with(plan, "x")'],
    ['outputs of earlier steps', 'outputs.first.n == 7', 'outputs.first.n == 8'],
    ['a path', 'plan', 'nothing.here'],
  ];
  for (const [what, holds, fails] of expressions) {
    test(what, async () => {
      const tenant = api.tenant();
      const ran = await tenant.runUntil('completed', guarded(holds), data);
      assert.deepEqual(await tenant.rowsOf(ran), ['first', 'guarded', 'last']);
      const skipped = await tenant.runUntil('completed', guarded(fails), data);
      assert.deepEqual(await tenant.rowsOf(skipped), ['first', 'last']);
      assert.equal((await tenant.nodeStates(skipped)).guarded, 'skipped');
    });
  }

  for (const when of ['', 'off', 'none', '0', '""', '[]']) {
    test(`${JSON.stringify(when)} is falsy or empty, and skips`, async () => {
      const tenant = api.tenant();
      const id = await tenant.runUntil('completed', guarded(when), data);
      assert.deepEqual(await tenant.rowsOf(id), ['first', 'last']);
    });
  }

  test('one that does not parse fails the step, and so the instance', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', guarded('n > > 1'), data);
    assert.deepEqual(await tenant.rowsOf(id), ['first', 'guarded']);
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });
});

describe('retry_if truthy retries then fails, falsy fails at once; permanent failures never consult it; blank retry_if or blank code rejected at creation', () => {
  const retry = { max_attempts: 3, initial_backoff: 1, max_backoff: 1 };
  /** Fails, and gives the number of the last try. */
  async function lastTry(retry_if: string, params: Json): Promise<unknown> {
    const tenant = api.tenant();
    const block = step('a', 'fail', { params, retry: { ...retry, retry_if } });
    const id = await tenant.runUntil('failed', [block]);
    return (await tenant.outputs(id)).map((row) => row.attempt);
  }

  test('truthy retries, then fails', async () => {
    const condition = 'contains(_error.message, "busy")';
    assert.deepEqual(await lastTry(condition, { message: 'busy', retryable: true }), [2]);
  });

  test('falsy fails at once', async () => {
    const condition = 'contains(_error.message, "busy")';
    assert.deepEqual(await lastTry(condition, { message: 'gone', retryable: true }), [0]);
  });

  test('a permanent failure does not consult it', async () => {
    assert.deepEqual(await lastTry('true', { retryable: false }), [0]);
  });

  for (const [what, more] of [
    ['a blank retry_if', { retry_if: ' ' }],
    ['an empty retry_if', { retry_if: '' }],
    ['a blank code', { non_retryable_codes: ['E1', ' '] }],
    ['an empty code', { non_retryable_codes: [''] }],
  ] as const) {
    test(`${what} is 400 at creation`, async () => {
      const tenant = api.tenant();
      const blocks = [step('a', 'fail', { retry: { ...retry, ...more } })];
      const reply = await tenant.post('/sequences', tenant.definition(blocks));
      assert.equal(reply.status, 400, reply.text);
      assert.deepEqual((await tenant.get('/sequences')).body, []);
    });
  }
});

describe('Templates: context, outputs chain, deep paths, dot index, unicode, quotes; whole-string keeps type; inline coerces; missing = null / `null`; fallback literal; bracket index unresolved; unknown root fails the step', () => {
  const data = {
    name: 'Ada',
    n: 3,
    yes: true,
    deep: { er: { list: [10, { x: 'found' }] } },
    größe: 'ü ✓ 東京',
    quoted: 'she said "hi" and \'bye\'',
  };
  async function rendered(value: unknown): Promise<unknown> {
    const tenant = api.tenant();
    const id = await tenant.run([transform('a', { value })], {
      context: { data, config: { region: 'eu' } },
    });
    await tenant.until(id, 'completed');
    return (await tenant.outputsOf(id)).a?.value;
  }
  const cases: readonly [string, unknown, unknown][] = [
    ['context: data', '{{ context.data.name }}', 'Ada'],
    ['context: config', '{{ context.config.region }}', 'eu'],
    ['deep paths', '{{ data.deep.er }}', data.deep.er],
    ['dot index', '{{ data.deep.er.list.1.x }}', 'found'],
    ['unicode', '→ {{ data.größe }}', '→ ü ✓ 東京'],
    ['quotes', '<{{ data.quoted }}>', `<${data.quoted}>`],
    ['whole-string keeps a number', '{{ data.n }}', 3],
    ['whole-string keeps a boolean', '{{ data.yes }}', true],
    ['whole-string keeps an array', '{{ data.deep.er.list }}', data.deep.er.list],
    [
      'inline coerces',
      '{{ data.n }} {{ data.yes }} {{ data.deep.er.list }}',
      '3 true [10,{"x":"found"}]',
    ],
    ['missing is null', '{{ data.absent.here }}', null],
    ['missing is `null` inline', 'got {{ data.absent }}', 'got null'],
    ['fallback literal', '{{ data.absent | "nobody" }}', 'nobody'],
    ['bracket index is unresolved', '{{ data.deep.er.list[0] }}', null],
  ];
  for (const [what, template, expected] of cases) {
    test(what, async () => assert.deepEqual(await rendered(template), expected));
  }

  test('outputs chain', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', [
      transform('one', { list: [1, 2] }),
      transform('two', { taken: '{{ outputs.one.list }}' }),
      transform('three', { taken: '{{ outputs.two.taken.1 }}' }),
    ]);
    assert.deepEqual((await tenant.outputsOf(id)).three, { taken: 2 });
  });

  test('an external task has its parameters filled in', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const params = { who: '{{ data.name }}', at: ['{{ data.n }}'] };
    await tenant.run([step('a', handler, { params })], { context: { data } });
    assert.deepEqual((await tenant.task(handler)).params, { who: 'Ada', at: [3] });
  });

  for (const path of ['__proto__', 'constructor', 'name.length', 'deep.er.list.map']) {
    test(`data.${path} is missing: no prototype is reached`, async () => {
      assert.equal(await rendered(`{{ data.${path} }}`), null);
    });
  }

  test('an unknown root fails the step', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', [transform('a', { v: '{{ vault.key }}' })]);
    assert.equal((await tenant.outputsOf(id)).a?.__error__, true);
  });
});

describe('output_schema violation fails the instance; conforming output passes; non-object schema rejected at creation', () => {
  const output_schema = { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } };
  const checked = (params: Json) => [{ ...transform('a', params), output_schema }];

  test('violation', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', checked({ n: 'text' }));
    assert.equal((await tenant.outputsOf(id)).a?.retryable, false);
    assert.deepEqual(await tenant.deadLetters(), [id]);
  });

  test('violation by a worker', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler, { output_schema })]);
    await tenant.complete(await tenant.task(handler), { n: 'text' });
    await tenant.until(id, 'failed');
  });

  test('conforming', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('completed', checked({ n: 1 }));
    assert.deepEqual(await tenant.outputsOf(id), { a: { n: 1 } });
  });

  for (const schema of [[], 'object', 5, true]) {
    test(`${JSON.stringify(schema)} is no object`, async () => {
      const tenant = api.tenant();
      const blocks = [step('a', 'noop', { output_schema: schema })];
      const reply = await tenant.post<{ error: string }>('/sequences', tenant.definition(blocks));
      assert.match(expectStatus(reply, 400).error, /output_schema/);
    });
  }
});

test('outputs of steps of the process are not merged into context.data', async () => {
  const tenant = api.tenant();
  const id = await tenant.runUntil('completed', [transform('a', { x: 1 })]);
  assert.deepEqual((await tenant.instance(id)).context.data, {});
});

test('names of other families are external handlers', async () => {
  const tenant = api.tenant();
  for (const handler of ['set_state', 'human_review', 'llm_call', 'wait_for_input', 'NOOP']) {
    const id = await tenant.run([step('a', handler)]);
    assert.equal((await tenant.task(handler)).instance_id, id);
  }
});

test('1,000 steps of the process run to their end', async () => {
  const tenant = api.tenant();
  const blocks = Array.from({ length: 1_000 }, (_, index) => step(`s${index}`, 'noop'));
  const id = await tenant.runUntil('completed', blocks);
  assert.equal(Object.keys(await tenant.tree(id)).length, 1_000);
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

describe('send_window outside: instance stays scheduled with a future next_fire_at; wide window runs', () => {
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

  test('outside of the days', async () => {
    const opening = Math.ceil(Date.now() / DAY_MS) * DAY_MS + 3 * DAY_MS + 9 * HOUR_MS;
    // 0 is Monday here.
    const days = [(new Date(opening).getUTCDay() + 6) % 7];
    const { due } = await deferred({ send_window: { start_hour: 9, end_hour: 17, days } });
    assert.equal(due, opening);
  });

  test('a wide window runs', async () => {
    const tenant = api.tenant();
    const now = Date.now();
    const hours = { start_hour: hourOf(now - 9 * HOUR_MS), end_hour: hourOf(now + 9 * HOUR_MS) };
    await tenant.runUntil('completed', [step('a', 'noop', { send_window: hours })]);
  });
});

describe('business_days_only moves next_fire_at past weekends and configured holidays; jitter spreads next_fire_at within plus/minus jitter; zero jitter is exact; DST wall clock honoured', () => {
  /** The next such day of the week at noon, UTC; 0 is Sunday. At least a day ahead. */
  function next(weekday: number): { at: number; duration: number } {
    const tomorrow = Math.ceil(Date.now() / DAY_MS) * DAY_MS;
    const wait = (weekday - new Date(tomorrow).getUTCDay() + 7) % 7;
    const at = tomorrow + wait * DAY_MS + DAY_MS / 2;
    return { at, duration: at - Date.now() };
  }
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);

  for (const [name, weekday, daysOn] of [
    ['Friday', 5, 0],
    ['Saturday', 6, 2],
    ['Sunday', 0, 1],
  ] as const) {
    test(`a ${name} is moved on by ${daysOn} days`, async () => {
      const { duration } = next(weekday);
      const { from, due } = await deferred({ delay: { duration, business_days_only: true } });
      assert.equal(due - from - duration, daysOn * DAY_MS);
    });
  }

  test('holidays of the delay and of the config are passed over too', async () => {
    const { at, duration } = next(6);
    const [monday, tuesday] = [day(at + 2 * DAY_MS), day(at + 3 * DAY_MS)];
    const { from, due } = await deferred(
      { delay: { duration, business_days_only: true, holidays: [monday] } },
      { context: { config: { holidays: [tuesday] } } },
    );
    assert.equal(due - from - duration, 4 * DAY_MS);
  });

  test('without business_days_only a weekend is as good as any day', async () => {
    const { duration } = next(6);
    const { from, due } = await deferred({ delay: { duration } });
    assert.equal(due - from, duration);
  });

  test('jitter spreads next_fire_at within plus/minus jitter', async () => {
    const offsets: number[] = [];
    for (let index = 0; index < 12; index++) {
      const { from, due } = await deferred({ delay: { duration: 600_000, jitter: 300_000 } });
      offsets.push(due - from);
    }
    assert.ok(
      offsets.every((offset) => offset >= 300_000 && offset <= 900_000),
      `${offsets}`,
    );
    assert.ok(new Set(offsets).size > 1);
  });

  test('zero jitter is exact', async () => {
    const { from, due } = await deferred({ delay: { duration: 600_000, jitter: 0 } });
    assert.equal(due - from, 600_000);
  });

  describe('DST wall clock honoured', () => {
    const newYork = { timezone: 'America/New_York' };
    const at = (fire_at_local: string, more: Json = {}) => ({ delay: { fire_at_local, ...more } });
    for (const [what, block, more, due] of [
      ['in winter', at('2040-01-10T09:00:00'), newYork, '2040-01-10T14:00:00Z'],
      ['in summer', at('2040-07-02T09:00:00'), newYork, '2040-07-02T13:00:00Z'],
      [
        'in the hour that is skipped: an hour later',
        at('2040-03-11T02:30:00'),
        newYork,
        '2040-03-11T07:30:00Z',
      ],
      [
        'in the hour that comes twice: the first',
        at('2040-11-04T01:30:00'),
        newYork,
        '2040-11-04T05:30:00Z',
      ],
      [
        'in the zone of the delay',
        at('2040-07-02T09:00:00', { timezone: 'Europe/Berlin' }),
        newYork,
        '2040-07-02T07:00:00Z',
      ],
    ] as const) {
      test(what, async () => assert.equal((await deferred(block, more)).due, Date.parse(due)));
    }
  });
});
