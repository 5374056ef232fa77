/** Outputs, contexts, expressions and times, over HTTP. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AuditEntry } from '../../schema/instance.js';
import {
  type Json,
  loop,
  newHandler,
  router,
  sleep,
  step,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';

/** Never over within a test. */
const LONG_MS = 600_000;

const api = useSharedApi();

describe('Output rows: The outputs route never shows in-progress or retry markers. A finally failed in-process step leaves its `__error__` row; the error of an external step stands on its task and in the audit, not in the outputs', () => {
  const flaky = (max_attempts: number) =>
    step('a', 'fail', {
      params: { message: 'out of paper', retryable: true },
      retry: {
        max_attempts,
        initial_backoff: max_attempts === 2 ? 1 : LONG_MS,
        max_backoff: LONG_MS,
      },
    });

  test('no markers of steps in progress, nor of tries to come', async () => {
    const tenant = api.tenant();
    assert.deepEqual(await tenant.outputs(await tenant.run([sleep('a', LONG_MS)])), []);
    assert.deepEqual(await tenant.outputs(await tenant.run([step('a', newHandler())])), []);
    const retried = await tenant.run([flaky(3)]);
    assert.equal((await tenant.instance(retried)).state, 'scheduled');
    assert.deepEqual(await tenant.outputs(retried), []);
  });

  test('a finally failed step of the process leaves its `__error__` row', async () => {
    const tenant = api.tenant();
    const id = await tenant.runUntil('failed', [flaky(2)]);
    const rows = await tenant.outputs(id);
    assert.deepEqual(
      rows.map((row) => [row.block_id, row.attempt, row.output_ref, row.output]),
      [['a', 1, '__error__', { __error__: true, retryable: true, message: 'out of paper' }]],
    );
  });

  test('the error of an external step stands on its task and in the audit', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.run([step('a', handler)]);
    await tenant.fail(await tenant.task(handler), 'out of ink');
    await tenant.until(id, 'failed');
    assert.deepEqual(await tenant.outputs(id), []);
    const [task] = await tenant.tasks(handler);
    assert.deepEqual([task?.state, task?.error_message], ['failed', 'out of ink']);
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    const entry = audit.find((item) => item.event_type === 'step_failed');
    assert.deepEqual([entry?.block_id, entry?.details], ['a', { message: 'out of ink' }]);
  });
});

test('`update_context` payload: Merged as it is into context.data, never unwrapped', async () => {
  const tenant = api.tenant();
  const id = await tenant.run([step('a', newHandler())], {
    context: { data: { kept: 1, old: { a: 1 } } },
  });
  for (const [payload, expected] of [
    [{ old: { b: 2 } }, { kept: 1, old: { b: 2 } }],
    [{ data: { x: 1 } }, { kept: 1, old: { b: 2 }, data: { x: 1 } }],
    [
      { context: { data: { y: 1 } } },
      { kept: 1, old: { b: 2 }, data: { x: 1 }, context: { data: { y: 1 } } },
    ],
  ]) {
    await tenant.signal(id, 'update_context', payload);
    assert.deepEqual((await tenant.instance(id)).context.data, expected);
  }
});

describe('Conditions: Two short forms come first: the text as a path, or `path == value`, with hyphens allowed in names, resolved in context.data before the roots (`data`, `outputs`, `config` …); a root alone is a key of context.data; what stands behind `==` without quotes is a text, and a path only when it begins with a root and a dot. Otherwise the expression language', () => {
  const cases: readonly [string, Json, string[], string[]][] = [
    [
      'the text as a path',
      { user: { plan: 'pro' }, zero: 0, none: null, list: [], full: [0], text: 'false' },
      ['user', 'user.plan', 'full', 'full.length == 0 || true', 'text'],
      ['zero', 'none', 'list', 'user.trial', 'no.such.thing', 'full.0'],
    ],
    [
      'path == value',
      { n: 3, plan: 'pro', yes: true, none: null, deep: { er: [{ x: 'y' }] } },
      [
        'n == 3',
        'plan == "pro"',
        "plan == 'pro'",
        'yes == true',
        'none == null',
        'deep.er.0.x == y',
      ],
      ['n == 4', 'n == "3"', 'plan == "free"', 'yes == false', 'deep.er.1.x == y'],
    ],
    [
      'hyphens in names',
      { 'plan-name': 'pro-plus', a: { 'b-c': 1 } },
      ['plan-name', 'plan-name == pro-plus', 'plan-name == "pro-plus"', 'a.b-c == 1'],
      ['plan-name == pro', 'a.b-d'],
    ],
    [
      'context.data before the roots',
      { data: { x: 1 }, outputs: 'mine', config: { region: 'own' } },
      ['data.x == 1', 'outputs == mine', 'config.region == own'],
      ['data.x == 2', 'config.region == eu'],
    ],
    [
      'the roots after it',
      { x: 1 },
      ['data.x == 1', 'config.region == eu', 'outputs.before.n == 7'],
      ['data.y', 'config.zone', 'outputs.nothing'],
    ],
    [
      'a root alone is a key of context.data',
      { steps: 'mine' },
      ['steps', 'steps == mine', '!runtime.nothing'],
      ['outputs', 'config', 'data', 'runtime', '{{ outputs }}', 'config == eu'],
    ],
    [
      'what stands behind == without quotes is a text, whatever keys there are',
      { plan: 'pro', pro: 'gold', limit: 'pro', state: 'in progress', at: '12:30', dir: 'a/b' },
      ['plan == pro', 'state == in progress', 'at == 12:30', 'dir == a/b', 'plan == pro && at'],
      ['plan == gold', 'plan == limit', 'limit == plan', 'state == progress'],
    ],
    [
      'and a path when it begins with a root and a dot',
      { plan: 'pro', limit: 'pro', region: 'eu', n: 7 },
      ['plan == data.limit', 'region == config.region', 'n == outputs.before.n'],
      ['plan == data.region', 'plan == outputs.before', 'plan == config.nothing'],
    ],
    [
      'otherwise the expression language',
      { count: 6, threshold: 11, tags: ['a', 'b'], plan: 'pro' },
      ['count * 2 > threshold', 'len(tags) == 2 && plan in ["pro", "max"]', '!(count < 6)'],
      ['count + 1 > threshold', 'contains(tags, "c")', 'plan in ["free"]', 'count > > 1'],
    ],
  ];
  for (const [what, data, hold, fail] of cases) {
    test(what, async () => {
      const tenant = api.tenant();
      const conditions = [...hold, ...fail];
      const blocks = conditions.map((condition, index) =>
        router(`r${index}`, { [condition]: [step(`yes${index}`, 'noop')] }),
      );
      const before = transform('before', { n: 7 });
      const context = { data, config: { region: 'eu' } };
      const id = await tenant.run([before, ...blocks], { context });
      await tenant.until(id, 'completed');
      const held = new Set(await tenant.rowsOf(id));
      assert.deepEqual(
        conditions.filter((_condition, index) => held.has(`yes${index}`)),
        hold,
      );
    });
  }

  test('loops read them in the same way', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const data = { 'next-step': 'go-on' };
    const id = await tenant.run([loop('l', 'next-step == go-on', [step('a', handler)])], {
      context: { data },
    });
    await tenant.complete(await tenant.task(handler), { other: 1 });
    await tenant.complete(await tenant.task(handler), { 'next-step': 'stop' });
    await tenant.until(id, 'completed');
    assert.deepEqual(await tenant.rowsOf(id), ['a', 'l', 'a', 'l']);
  });
});

describe('Templates: Every root resolves; an unknown root fails the step with a message that names it', () => {
  test('every root that templates have', async () => {
    const tenant = api.tenant();
    const params = {
      both: '{{ context.data.n }} {{ context.config.region }}',
      short: '{{ data.n }} {{ config.region }}',
      earlier: ['{{ outputs.one.v }}', '{{ steps.one.v }}'],
      input: '{{ input.who }}',
      run: '{{ runtime.current_step }}',
      id: '{{ instance_id }}',
      filtered: '{{ data.none | data.name | upper }}',
      sized: '{{ len(data.name) }}',
    };
    const id = await tenant.run([transform('one', { v: 'first' }), transform('two', params)], {
      context: { data: { n: 3, name: 'Ada', input: { who: 'me' } }, config: { region: 'eu' } },
    });
    await tenant.until(id, 'completed');
    const { run, ...rest } = (await tenant.outputsOf(id)).two ?? {};
    assert.match(String(run), /^(one|two)$/);
    assert.deepEqual(rest, {
      both: '3 eu',
      short: '3 eu',
      earlier: ['first', 'first'],
      input: 'me',
      id,
      filtered: 'ADA',
      sized: 3,
    });
  });

  for (const [template, root] of [
    ['{{ vault.key }}', 'vault'],
    ['a {{ item }} b', 'item'],
    ['{{ context.audit }}', 'audit'],
  ] as const) {
    test(`${template} names ${root}`, async () => {
      const tenant = api.tenant();
      const id = await tenant.runUntil('failed', [transform('a', { v: template })]);
      const { a } = await tenant.outputsOf(id);
      assert.equal(a?.retryable, false);
      assert.match(String(a?.message), new RegExp(root));
    });
  }

  test('an external step fails before there is a task', async () => {
    const tenant = api.tenant();
    const handler = newHandler();
    const id = await tenant.runUntil('failed', [
      step('a', handler, { params: { v: '{{ vault.key }}' } }),
    ]);
    assert.deepEqual(await tenant.tasks(handler), []);
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    assert.match(JSON.stringify(audit), /vault/);
  });
});

describe('Step times: Integers, milliseconds; a non-integer is 400', () => {
  const retry = (times: Json) => ({ retry: { max_attempts: 2, ...times } });
  const fields: readonly [string, (value: unknown) => Json][] = [
    ['timeout', (timeout) => ({ timeout })],
    ['duration', (duration) => ({ delay: { duration } })],
    ['jitter', (jitter) => ({ delay: { duration: 1_000, jitter } })],
    ['initial_backoff', (initial_backoff) => retry({ initial_backoff })],
    ['max_backoff', (max_backoff) => retry({ initial_backoff: 1, max_backoff })],
  ];
  for (const [field, more] of fields) {
    test(field, async () => {
      const tenant = api.tenant();
      for (const value of [1.5, 0.001, -1, '1000', '1s', true, [1]]) {
        const body = tenant.definition([step('a', 'noop', more(value))]);
        const reply = await tenant.post<{ error: string }>('/sequences', body);
        assert.match(expectStatus(reply, 400).error, new RegExp(field), String(value));
      }
      const id = await tenant.sequence([step('a', 'noop', more(1_000))]);
      const stored = await tenant.get<{ blocks: unknown[] }>(`/sequences/${id}`);
      assert.deepEqual(stored.body.blocks, [step('a', 'noop', more(1_000))]);
    });
  }

  test('milliseconds', async () => {
    const tenant = api.tenant();
    const id = await tenant.run([step('a', 'noop', { delay: { duration: 90_000 } })]);
    const { next_fire_at } = await tenant.instance(id);
    const from = Date.parse((await tenant.tree(id)).a?.started_at ?? '');
    assert.equal(Date.parse(next_fire_at ?? '') - from, 90_000);
  });
});
