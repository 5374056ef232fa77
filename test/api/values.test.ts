/** Outputs, contexts, expressions and times; and what is started by the name of its sequence. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { signatureOf } from '../../actors/trigger/core/trigger-signature.js';
import type { CronSchedule, ScheduleCreated, ScheduleRun } from '../../schema/cron.js';
import type {
  AuditEntry,
  BatchCreated,
  InstanceCreated,
  TaskInstance,
} from '../../schema/instance.js';
import type { Release, ReleaseDecision } from '../../schema/release.js';
import type { SequenceDefinition, SequenceListed } from '../../schema/sequence.js';
import type { TriggerFired, WebhookTaken } from '../../schema/trigger.js';
import {
  eventually,
  type Json,
  LONG_MS,
  newHandler,
  router,
  sleep,
  step,
  type Tenant,
  transform,
  useSharedApi,
} from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import { columns } from '../helpers/columns.js';

const api = useSharedApi();
const tenant = api.tenant();

describe('Outputs never show markers of progress or retries. A failed step of the process leaves an `__error__` row; the error of an external step is on its task and in the audit', () => {
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
    assert.deepEqual(await tenant.outputs(await tenant.run([sleep('a', LONG_MS)])), []);
    assert.deepEqual(await tenant.outputs(await tenant.run([step('a', newHandler())])), []);
    const retried = await tenant.run([flaky(3)]);
    assert.equal((await tenant.instance(retried)).state, 'scheduled');
    assert.deepEqual(await tenant.outputs(retried), []);
  });

  test('a finally failed step of the process leaves its `__error__` row', async () => {
    const rows = await tenant.outputs(await tenant.runUntil('failed', [flaky(2)]));
    assert.deepEqual(columns(rows, 'block_id', 'attempt', 'output_ref', 'output'), [
      ['a', 1, '__error__', { __error__: true, retryable: true, message: 'out of paper' }],
    ]);
  });

  test('the error of an external step stands on its task and in the audit', async () => {
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

test('The payload of `update_context` is merged into context.data as it is', async () => {
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

describe('Conditions: a text is first read as a path or as `path == value`, with hyphens in names, looked up in context.data before the roots; a right side without quotes is text unless it begins with a root and a dot. All else is the expression language', () => {
  // `condition.test.ts` has what each form means in full.
  const cases: readonly [string, Json, string[], string[]][] = [
    [
      'the text as a path, or path == value, with hyphens in names',
      { user: { plan: 'pro' }, zero: 0, none: null, list: [], 'plan-name': 'pro-plus' },
      ['user.plan', 'user.plan == pro', 'none == null', 'plan-name == pro-plus'],
      ['zero', 'list', 'user.trial', 'zero == "0"', 'plan-name == pro'],
    ],
    [
      'context.data before the roots, and a root alone is a key of it',
      { data: { x: 1 }, outputs: 'mine' },
      ['data.x == 1', 'outputs == mine', 'config.region == eu'],
      ['data.x == 2', 'config', 'config.zone', 'runtime', '{{ steps }}'],
    ],
    [
      'otherwise the expression language',
      { count: 6, threshold: 11, tags: ['a', 'b'], plan: 'pro' },
      ['count * 2 > threshold', 'len(tags) == 2 && plan in ["pro", "max"]', '!(count < 6)'],
      ['count + 1 > threshold', 'contains(tags, "c")', 'count > > 1'],
    ],
  ];
  for (const [what, data, hold, fail] of cases) {
    test(what, async () => {
      const conditions = [...hold, ...fail];
      const blocks = conditions.map((condition, index) =>
        router(`r${index}`, { [condition]: [step(`yes${index}`, 'noop')] }),
      );
      const before = transform('before', { n: 7 });
      const context = { data, config: { region: 'eu' } };
      const id = await tenant.run([before, ...blocks], { context });
      await tenant.until(id, 'completed');
      const held = new Set(await tenant.rowsOf(id));
      const seen = conditions.filter((_condition, index) => held.has(`yes${index}`));
      assert.deepEqual(seen, hold);
    });
  }
});

describe('Templates: every root resolves, and an unknown root fails the step with its name in the message', () => {
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

  test('an unknown one is named', async () => {
    const id = await tenant.runUntil('failed', [transform('a', { v: 'a {{ vault.key }} b' })]);
    const { a } = await tenant.outputsOf(id);
    assert.equal(a?.retryable, false);
    assert.match(String(a?.message), /vault/);
  });

  test('an external step fails before there is a task', async () => {
    const handler = newHandler();
    const id = await tenant.runUntil('failed', [
      step('a', handler, { params: { v: '{{ vault.key }}' } }),
    ]);
    assert.deepEqual(await tenant.tasks(handler), []);
    const audit = expectStatus(await tenant.get<AuditEntry[]>(`/instances/${id}/audit`), 200);
    assert.match(JSON.stringify(audit), /vault/);
  });
});

describe('Step times are integers in milliseconds; others are 400', () => {
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
      for (const value of [1.5, -1, '1000']) {
        const body = tenant.definition([step('a', 'noop', more(value))]);
        const reply = await tenant.post<{ error: string }>('/sequences', body);
        assert.match(expectStatus(reply, 400).error, new RegExp(field), String(value));
      }
      const id = await tenant.sequence([step('a', 'noop', more(1_000))]);
      const stored = await tenant.get<{ blocks: unknown[] }>(`/sequences/${id}`);
      assert.deepEqual(stored.body.blocks, [step('a', 'noop', more(1_000))]);
    });
  }
});

// ---------------------------------------------------------------- names

interface Named {
  readonly tenant: Tenant;
  /** Stores the next version; resolves with its id. */
  version(number: number, more?: Json): Promise<string>;
  /** The sequence that a creation by the name gets. */
  started(more?: Json): Promise<string>;
  create(more?: Json): Promise<InstanceCreated>;
  body(more?: Json): Json;
}

function named(name = `name-${randomUUID()}`, tenant = api.tenant()): Named {
  const body = (more: Json = {}): Json => ({
    tenant_id: tenant.name,
    namespace: 'test',
    sequence: name,
    ...more,
  });
  const create = async (more?: Json) =>
    expectStatus(await tenant.post<InstanceCreated>('/instances', body(more)), 201);
  return {
    tenant,
    body,
    create,
    version: (number, more = {}) =>
      tenant.sequence([step('a', 'noop')], { name, version: number, ...more }),
    started: async (more) => (await tenant.instance((await create(more)).id)).sequence_id,
  };
}

/** A name with two versions; `more` is said of the second. */
async function twice(more?: Json) {
  const it = named();
  return { it, first: await it.version(1), second: await it.version(2, more) };
}

/** Not by itself within a test. */
const NEVER_SOON = '0 0 0 1 1 ? 2998';
const SECRET = 'correct horse battery staple';

/** A trigger of the name; resolves with its slug. */
async function trigger({ tenant, body }: Named, { version }: Json, more: Json = {}) {
  const { tenant_id, namespace, sequence: sequence_name } = body();
  const made = { slug: randomUUID(), tenant_id, namespace, sequence_name, version, ...more };
  expectStatus(await tenant.post('/triggers', made), 201);
  return made.slug;
}

const sequenceOf = async ({ tenant }: Named, instance: string) =>
  (await tenant.instance(instance)).sequence_id;

/** Whatever starts an instance by a name: resolves with the sequence that it gets. */
const WAYS: Readonly<Record<string, (it: Named, more: Json) => Promise<string>>> = {
  'a creation': (it, more) => it.started(more),
  'a dry run': (it, more) => it.started({ ...more, dry_run: true }),
  'a batch': async (it, more) => {
    const keyed = { ...more, idempotency_key: randomUUID() };
    expectStatus(await it.tenant.post('/instances/batch', { instances: [it.body(keyed)] }), 201);
    return it.started(keyed);
  },
  'a schedule': async (it, more) => {
    const schedule = it.body({ ...more, cron_expr: NEVER_SOON });
    const { id } = expectStatus(await it.tenant.post<ScheduleCreated>('/cron', schedule), 201);
    const run = await it.tenant.post<ScheduleRun>(`/cron/${id}/run`);
    return sequenceOf(it, expectStatus(run, 201).id);
  },
  'a trigger': async (it, more) => {
    const fire = `/triggers/${await trigger(it, more)}/fire`;
    return sequenceOf(
      it,
      expectStatus(await it.tenant.post<TriggerFired>(fire), 201).instance_id ?? '',
    );
  },
  'a webhook': async (it, more) => {
    const slug = await trigger(it, more, { secret: SECRET });
    const [at, nonce] = [String(Math.floor(Date.now() / 1_000)), randomUUID()];
    const headers = {
      'x-trigger-timestamp': at,
      'x-trigger-nonce': nonce,
      'x-engine-signature': signatureOf(SECRET, at, nonce, Buffer.from('{}')),
    };
    const path = `/webhooks/${slug}`;
    const sent = await it.tenant.request<WebhookTaken>('POST', path, { raw: '{}', headers });
    return sequenceOf(it, expectStatus(sent, 202).instance_id ?? '');
  },
  'an event': async (it, more) => {
    const event_name = randomUUID();
    const slug = await trigger(it, more, { trigger_type: 'event', config: { event_name } });
    const event = { event_name, producer_event_id: event_name };
    expectStatus(await it.tenant.post('/events', event), 201);
    return eventually(async () => {
      const { body: all } = await it.tenant.get<TaskInstance[]>('/instances?limit=1000');
      const fired = all.find(({ metadata }) => metadata._trigger === slug);
      assert.ok(fired);
      return fired.sequence_id;
    });
  },
  'a child': async ({ tenant, body }, { version }) => {
    const child = { type: 'sub_sequence', id: 'child', sequence_name: body().sequence, version };
    const parent = await tenant.runUntil('completed', [child]);
    const { body: children } = await tenant.get<TaskInstance[]>(`/instances/${parent}/children`);
    return children[0]?.sequence_id ?? '';
  },
};

/** The ways that do not lead to this sequence. */
async function straying(it: Named, more: Json, sequence: string): Promise<string[]> {
  const gone: string[] = [];
  for (const [way, started] of Object.entries(WAYS)) {
    if ((await started(it, more)) !== sequence) gone.push(way);
  }
  return gone;
}

const deprecate = async ({ tenant }: Named, id: string) =>
  expectStatus(await tenant.post(`/sequences/${id}/deprecate`), 204);

const refusal = async ({ tenant, body }: Named, more: Json, path = '/instances') => {
  const reply = await tenant.post<{ error: string }>(path, body(more));
  return [reply.status, reply.body.error] as const;
};

describe('a creation by name', () => {
  test('gets the newest version that is not deprecated, from the answer to its storing on', async () => {
    const it = named();
    const first = await it.version(1);
    assert.equal(await it.started(), first);
    for (let version = 2; version <= 4; version += 1) {
      const id = await it.version(version);
      const started = await Promise.all(Array.from({ length: 8 }, () => it.started()));
      assert.deepEqual([...new Set(started)], [id], `version ${version}`);
    }
  });

  test('gets no version whose deprecation is answered', async () => {
    const it = named();
    const ids: string[] = [];
    for (let version = 1; version <= 3; version += 1) ids.push(await it.version(version));
    while (ids.length > 1) {
      await deprecate(it, ids.pop() as string);
      const started = await Promise.all(Array.from({ length: 8 }, () => it.started()));
      assert.deepEqual([...new Set(started)], [ids.at(-1)]);
    }
    await deprecate(it, ids[0] as string);
    const [status, error] = await refusal(it, {});
    assert.equal(status, 404);
    assert.match(error, /sequence name-.* in namespace test/);
  });

  test('with a version gets that one, deprecated or not', async () => {
    const { it, first, second } = await twice();
    await deprecate(it, first);
    assert.deepEqual(
      [await it.started({ version: 1 }), await it.started({ version: 2 }), await it.started()],
      [first, second, second],
    );
    assert.deepEqual((await refusal(it, { version: 3 }))[0], 404);
  });

  test('names a sequence of its own tenant and namespace', async () => {
    const it = named();
    await it.version(1);
    assert.equal((await refusal(it, { namespace: 'elsewhere' }))[0], 404);
    assert.equal((await refusal(named(it.body().sequence as string), {}))[0], 404);
  });

  test('names it once: by its id or by its name', async () => {
    const it = named();
    const sequence_id = await it.version(1);
    const once = /exactly one of sequence_id and sequence/;
    for (const [more, path] of [
      [{ sequence_id }, '/instances'],
      [{ sequence_id, cron_expr: '@daily' }, '/cron'],
    ] as const) {
      const [status, error] = await refusal(it, more, path);
      assert.equal(status, 400);
      assert.match(error, once);
    }
    const instances = [it.body(), it.body({ sequence_id })];
    const batch = await it.tenant.post<{ error: string }>('/instances/batch', { instances });
    assert.equal(batch.status, 400);
    assert.match(batch.body.error, /^invalid argument: instances\[1\] must have exactly one of/);
    assert.equal((await it.started({ sequence_id: null })) === sequence_id, true);
  });

  test('is deduplicated by its key, whatever the name leads to by now', async () => {
    const it = named();
    const first = await it.version(1);
    const idempotency_key = randomUUID();
    const { id } = await it.create({ idempotency_key });
    const second = await it.version(2);
    assert.deepEqual(await it.create({ idempotency_key }), { id, deduplicated: true });
    for (const version of [first, second]) await deprecate(it, version);
    assert.deepEqual(await it.create({ idempotency_key }), { id, deduplicated: true });
    assert.equal((await it.tenant.instance(id)).sequence_id, first);
    assert.equal((await refusal(it, { idempotency_key: randomUUID() }))[0], 404);
    const again = { instances: [it.body({ idempotency_key })] };
    const batch = await it.tenant.post<BatchCreated>('/instances/batch', again);
    assert.deepEqual(expectStatus(batch, 201), { count: 1, created: 0 });
  });
});

describe('a version on hold', () => {
  const lift = ({ tenant }: Named, id: string, body: Json = { hold: false }) =>
    tenant.patch<{ error: string } | null>(`/sequences/${id}`, body);

  test('A version on hold is skipped by name, and started by id or pin, until the hold is lifted', async () => {
    const { it, first, second } = await twice({ hold: true });
    assert.deepEqual(await straying(it, {}, first), []);
    assert.deepEqual(await straying(it, { version: 2 }, second), []);
    assert.equal(await it.started({ sequence: undefined, sequence_id: second }), second);
    const place = `tenant_id=${it.tenant.name}&namespace=test&name=${it.body().sequence}`;
    const byName = async () =>
      (await it.tenant.get<SequenceDefinition>(`/sequences/by-name?${place}`)).body.version;
    const holds = async (path: string) =>
      (await it.tenant.get<SequenceListed[]>(`${path}?${place}`)).body.map(({ hold }) => hold);
    assert.equal(await byName(), 1);
    assert.deepEqual(await holds('/sequences'), [true, false]);
    assert.deepEqual(await holds('/sequences/versions'), [true, false]);
    for (let times = 0; times < 2; times += 1) expectStatus(await lift(it, second), 204);
    assert.deepEqual(await straying(it, {}, second), []);
    assert.equal(await byName(), 2);
    assert.deepEqual(await holds('/sequences'), [false, false]);
  });

  test('has a name that leads nowhere while there is no other, and is told of with the way out', async () => {
    const it = named();
    const only = await it.version(1, { hold: true });
    const why =
      `sequence ${it.body().sequence} in namespace test: every version of it is on hold; name one ` +
      'with version, or lift a hold with PATCH /sequences/{id} {"hold": false}';
    const { tenant_id, namespace, sequence: sequence_name } = it.body();
    const byName = `/sequences/by-name?tenant_id=${tenant_id}&namespace=test&name=${sequence_name}`;
    const made = { tenant_id, namespace, sequence_name, slug: randomUUID() };
    for (const [reply, place = ''] of [
      [await it.tenant.post('/instances', it.body())],
      [await it.tenant.post('/instances/batch', { instances: [it.body()] }), 'instances[0]: '],
      [await it.tenant.post('/cron', it.body({ cron_expr: NEVER_SOON }))],
      [await it.tenant.post('/triggers', made)],
      [await it.tenant.get(byName)],
    ] as const) {
      assert.deepEqual([reply.status, reply.body], [404, { error: `not found: ${place}${why}` }]);
    }
    const parent = await it.tenant.runUntil('failed', [
      { type: 'sub_sequence', id: 'child', sequence_name },
    ]);
    assert.equal((await it.tenant.instance(parent)).failure?.message, `not found: ${why}`);
    expectStatus(await lift(it, only), 204);
    assert.equal(await it.started(), only);
  });

  test('is told of by a schedule whose name leads nowhere else any more', async () => {
    const it = named();
    const first = await it.version(1);
    const every = it.body({ cron_expr: '* * * * * ? *' });
    const { id } = expectStatus(await it.tenant.post<ScheduleCreated>('/cron', every), 201);
    await it.version(2, { hold: true });
    await deprecate(it, first);
    await eventually(async () => {
      const { body } = await it.tenant.get<CronSchedule>(`/cron/${id}`);
      assert.match(
        body.last_error ?? '',
        /^sequence name-.* every version of it is on hold; name one/,
      );
    });
    expectStatus(await it.tenant.delete(`/cron/${id}`), 204);
  });

  test('cannot be made of one that is stored, nor lifted by somebody else', async () => {
    const it = named();
    const first = await it.version(1);
    for (const [body, told] of [
      [{ hold: true }, /hold must be false/],
      [{}, /hold is required/],
    ] as const) {
      const reply = await lift(it, first, body);
      assert.deepEqual([reply.status, told.test(reply.body?.error ?? '')], [400, true], reply.text);
    }
    expectStatus(await lift(named(), first), 404);
    expectStatus(await lift(it, randomUUID()), 404);
    assert.equal(await it.started(), first);
  });
});

describe('a name and a release', () => {
  async function released(it: Named, baseline: string, candidate: string): Promise<string> {
    const body = { baseline_sequence_id: baseline, candidate_sequence_id: candidate, gates: [] };
    return expectStatus(await it.tenant.post<Release>('/releases', body), 201).id;
  }

  const move = async ({ tenant }: Named, id: string, word: string, body: Json = {}) =>
    expectStatus(await tenant.post<Release>(`/releases/${id}/${word}`, body), 200);

  /** Two versions, the second of which gets everything by its release. */
  async function canaried(more: Json = {}) {
    const { it, first, second } = await twice(more);
    const id = await released(it, first, second);
    await move(it, id, 'validate', { skip: true });
    await move(it, id, 'canary', { percent: 100 });
    return { it, first, second, id };
  }

  test('the candidate is reached through its release alone until it is promoted', async () => {
    const { it, first, second } = await twice();
    assert.equal(await it.started(), second);
    const id = await released(it, first, second);
    assert.equal(await it.started(), first);
    await move(it, id, 'validate', { skip: true });
    await move(it, id, 'canary', { percent: 100 });
    const routed = await it.tenant.instance((await it.create()).id);
    assert.deepEqual(routed.metadata, { release: { release_id: id, variant: 'candidate' } });
    assert.equal(routed.sequence_id, second);
    await move(it, id, 'pause');
    assert.equal(await it.started(), first);
    assert.equal(await it.started({ version: 2 }), second);
    await move(it, id, 'canary', { percent: 100 });
    await move(it, id, 'promote');
    assert.equal(await it.started(), second);
  });

  test('A name with a version is a pin, which no canary or promotion redirects', async () => {
    const { it, first, second, id } = await canaried();
    for (const state of ['canary', 'promoted']) {
      if (state === 'promoted') await move(it, id, 'promote');
      assert.deepEqual(await straying(it, { version: 1 }, first), [], state);
      assert.deepEqual(await straying(it, {}, second), [], state);
    }
    const { metadata } = await it.tenant.instance((await it.create({ version: 1 })).id);
    assert.deepEqual(metadata, {});
    assert.equal(await it.started({ sequence: undefined, sequence_id: first }), second);
  });

  test('a canary gets its share on hold, a rollback leaves the hold, and a promotion lifts it', async () => {
    const { it, first, second, id } = await canaried({ hold: true });
    const isHeld = async () =>
      (await it.tenant.get<SequenceDefinition>(`/sequences/${second}`)).body.hold;
    assert.equal(await it.started(), second);
    await move(it, id, 'rollback');
    assert.deepEqual([await it.started(), await isHeld()], [first, true]);
    const again = await released(it, first, second);
    await move(it, again, 'validate', { skip: true });
    await move(it, again, 'canary', { percent: 1 });
    assert.equal(await isHeld(), true);
    await move(it, again, 'promote');
    assert.deepEqual([await it.started(), await isHeld()], [second, false]);
  });

  test('a version that was rolled back gets no creations by name, and the next one does', async () => {
    const { it, first, id } = await canaried();
    await move(it, id, 'rollback');
    assert.equal(await it.started(), first);
    const third = await it.version(3);
    assert.equal(await it.started(), third);
  });

  test('a deprecated candidate gets nothing any more, and its canary is paused with a decision', async () => {
    const { it, first, second, id } = await canaried();
    assert.equal(await it.started(), second);
    await deprecate(it, second);
    assert.equal(await it.started(), first);
    assert.equal(await it.started({ sequence: undefined, sequence_id: first }), first);
    const { body: release } = await it.tenant.get<Release>(`/releases/${id}`);
    assert.equal(release.state, 'paused');
    const decisions = await it.tenant.get<ReleaseDecision[]>(`/releases/${id}/decisions`);
    const last = decisions.body.find(({ to_state }) => to_state === 'paused');
    assert.equal(last?.actor, 'deprecation');
    assert.match(last?.reason ?? '', /the candidate was deprecated/);
    assert.equal((await it.tenant.post(`/releases/${id}/canary`, { percent: 5 })).status, 409);
  });
});

describe('a schedule by name', () => {
  test('gets at each fire what the name leads to then', async () => {
    const it = named();
    const first = await it.version(1);
    const made = await it.tenant.post<ScheduleCreated>('/cron', it.body({ cron_expr: NEVER_SOON }));
    const { id } = expectStatus(made, 201);
    const fired = async () => {
      const run = await it.tenant.post<ScheduleRun>(`/cron/${id}/run`);
      return (await it.tenant.instance(expectStatus(run, 201).id)).sequence_id;
    };
    assert.equal(await fired(), first);
    const second = await it.version(2);
    assert.equal(await fired(), second);
    await deprecate(it, second);
    assert.equal(await fired(), first);
    const { body } = await it.tenant.get<CronSchedule>(`/cron/${id}`);
    const { sequence_id, sequence, version } = body;
    assert.deepEqual([sequence_id, sequence, version], [null, it.body().sequence, null]);
  });

  test('of an unknown name is 404, and one that has lost its versions says so', async () => {
    const it = named();
    assert.equal((await refusal(it, { cron_expr: NEVER_SOON }, '/cron'))[0], 404);
    const only = await it.version(1);
    const made = await it.tenant.post<ScheduleCreated>('/cron', it.body({ cron_expr: NEVER_SOON }));
    const { id } = expectStatus(made, 201);
    expectStatus(await it.tenant.delete(`/sequences/${only}`), 204);
    const run = await it.tenant.post<{ error: string }>(`/cron/${id}/run`);
    assert.equal(run.status, 404);
    assert.match(run.body.error, /not found: sequence name-/);
  });
});
