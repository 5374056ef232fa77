/** What every operation on releases asks of its caller: tenant, key, body and the things it names. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { Release, ReleaseDecision, ValidationReport } from '../../schema/release.js';
import { RELEASE_ROWS } from '../../schema/release.js';
import type { SequenceDefinition } from '../../schema/sequence.js';
import { type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus, type Reply } from '../helpers/client.js';

const api = useSharedApi();

type Pair = Readonly<Record<'baseline_sequence_id' | 'candidate_sequence_id', string>>;

/** Two versions of a name of its own. */
async function pairOf(tenant: Tenant): Promise<Pair> {
  const name = `s-${randomUUID()}`;
  const version = (number: number) =>
    tenant.sequence([step('a', 'noop')], { name, version: number });
  return { baseline_sequence_id: await version(1), candidate_sequence_id: await version(2) };
}

async function draft(tenant: Tenant, pair?: Pair): Promise<Release> {
  const body = pair ?? (await pairOf(tenant));
  return expectStatus(await tenant.post<Release>('/releases', body), 201);
}

const act = (client: Client, { id }: Release, action: string, body?: Json) =>
  client.request<Json & { error: string }>('POST', `/releases/${id}/${action}`, { body });

/** What is stored of a release: its record and its decisions. */
async function look(tenant: Tenant, { id }: Release): Promise<[Release, ReleaseDecision[]]> {
  return [
    expectStatus(await tenant.get<Release>(`/releases/${id}`), 200),
    expectStatus(await tenant.get<ReleaseDecision[]>(`/releases/${id}/decisions`), 200),
  ];
}

const statusOf = async (reply: Promise<Reply<unknown>>) => (await reply).status;

describe('same id both sides → 400; other name → 400; other namespace → 400; missing baseline → 404; missing candidate → 404; foreign sequences → 404', () => {
  let tenant: Tenant;
  let pair: Pair;
  before(async () => {
    tenant = api.tenant();
    pair = await pairOf(tenant);
  });

  const refused = async (changes: Json, expected: number): Promise<string> => {
    const reply = await tenant.post<{ error: string }>('/releases', { ...pair, ...changes });
    assert.equal(reply.status, expected, reply.text);
    assert.deepEqual((await tenant.get('/releases')).body, []);
    return reply.body.error;
  };

  test('the same id on both sides is 400', async () => {
    await refused({ candidate_sequence_id: pair.baseline_sequence_id }, 400);
    const shouted = pair.baseline_sequence_id.toUpperCase();
    await refused({ candidate_sequence_id: shouted }, 400);
  });

  test('another name or another namespace is 400', async () => {
    const { body } = await tenant.get<SequenceDefinition>(
      `/sequences/${pair.baseline_sequence_id}`,
    );
    const named = { name: body.name, version: 2 };
    const blocks = [step('a', 'noop')];
    const name = await tenant.sequence(blocks, { ...named, name: `s-${randomUUID()}` });
    await refused({ candidate_sequence_id: name }, 400);
    const namespace = await tenant.sequence(blocks, { ...named, namespace: 'elsewhere' });
    await refused({ candidate_sequence_id: namespace }, 400);
  });

  test('a missing baseline or candidate is 404, and named', async () => {
    const unknown = randomUUID();
    assert.match(await refused({ baseline_sequence_id: unknown }, 404), new RegExp(unknown));
    assert.match(await refused({ candidate_sequence_id: unknown }, 404), new RegExp(unknown));
    const both = { baseline_sequence_id: unknown, candidate_sequence_id: unknown };
    assert.match(await refused(both, 404), new RegExp(unknown));
  });

  test('foreign sequences are 404, as if there were none', async () => {
    const foreign = await pairOf(api.tenant());
    const { baseline_sequence_id, candidate_sequence_id } = foreign;
    for (const changes of [foreign, { baseline_sequence_id }, { candidate_sequence_id }]) {
      assert.match(await refused(changes, 404), /^not found: sequence /);
    }
  });
});

describe('the tenant of a body', () => {
  test('must be that of the header, which counts when the body names none', async () => {
    const tenant = api.tenant();
    const pair = await pairOf(tenant);
    const other = api.tenant().name;
    const create = (tenant_id: unknown) =>
      tenant.post<Release & { error: string }>('/releases', { ...pair, tenant_id });
    const refused = await create(other);
    assert.equal(refused.status, 403);
    assert.match(refused.body.error, /^forbidden: /);
    for (const tenant_id of [tenant.name, '', null, undefined]) {
      assert.equal(expectStatus(await create(tenant_id), 201).tenant_id, tenant.name);
    }
  });
});

describe('get, every action, decisions and diff under another tenant → 404, nothing moves', () => {
  const ACTIONS: readonly (readonly [action: string, body?: Json])[] = [
    ['validate'],
    ['validate', { skip: true }],
    ['canary', { percent: 50 }],
    ['evaluate'],
    ['promote'],
    ['promote', { force: true }],
    ['pause'],
    ['rollback'],
  ];
  const WAYS: Readonly<Record<string, readonly (readonly [action: string, body?: Json])[]>> = {
    draft: [],
    ready: [['validate', { skip: true }]],
    canary: [
      ['validate', { skip: true }],
      ['canary', { percent: 20 }],
    ],
    paused: [['validate', { skip: true }], ['canary', { percent: 20 }], ['pause']],
  };

  for (const [state, way] of Object.entries(WAYS)) {
    test(`of one that is ${state}`, async () => {
      const tenant = api.tenant();
      const stranger = api.tenant();
      const release = await draft(tenant);
      for (const [action, body] of way) {
        expectStatus(await act(tenant, release, action, body), 200);
      }
      const before = await look(tenant, release);
      assert.equal(before[0].state, state);
      const absent = `not found: release ${release.id}`;
      for (const path of ['', '/diff', '/decisions', '/gates', '/series']) {
        const reply = await stranger.get<Json>(`/releases/${release.id}${path}`);
        assert.deepEqual([reply.status, reply.body.error], [404, absent], path);
      }
      for (const [action, body] of ACTIONS) {
        const reply = await act(stranger, release, action, body);
        assert.deepEqual([reply.status, reply.body.error], [404, absent], action);
      }
      assert.deepEqual(await look(tenant, release), before);
      assert.deepEqual((await stranger.get('/releases')).body, []);
    });
  }

  test('what nobody has is not found either, and an id that is no UUID is 400', async () => {
    const tenant = api.tenant();
    for (const route of Object.values(RELEASE_ROWS)) {
      if (!route.path.includes('{id}')) continue;
      const body = route.path.endsWith('/canary') ? { percent: 1 } : undefined;
      const ask = (id: string) =>
        tenant.request(route.method, route.path.replace('{id}', id), { body });
      assert.equal(await statusOf(ask(randomUUID())), 404, route.path);
      for (const id of ['x', `${randomUUID()}0`, '%20']) {
        assert.equal(await statusOf(ask(id)), 400, `${route.path} of ${id}`);
      }
    }
  });
});

describe('a body', () => {
  let tenant: Tenant;
  let pair: Pair;
  let release: Release;
  let untouched: Awaited<ReturnType<typeof look>>;

  before(async () => {
    tenant = api.tenant();
    pair = await pairOf(tenant);
    release = await draft(tenant, pair);
    untouched = await look(tenant, release);
  });

  const pathOf = (action: string) =>
    action.startsWith('/') ? action : `/releases/${release.id}/${action}`;
  const send = (action: string, raw?: string) =>
    tenant.request<{ error: string }>('POST', pathOf(action), raw === undefined ? {} : { raw });
  const assertUntouched = async (what: string) => {
    assert.deepEqual(await look(tenant, release), untouched, what);
    assert.equal((await tenant.get<Release[]>('/releases')).body.length, 1, what);
  };

  const READ = ['/releases', '/sequences/releases/diff', 'validate', 'canary', 'promote'];
  const gate = { metric: 'error_rate', max_regression: 0.1, min_sample: 1 };

  test('that is malformed is 400, and nothing moves', async () => {
    for (const path of READ) {
      for (const raw of ['{', 'nonsense', '[]', '"text"', 'null', '{"a":1}}', '{"a":"\\ud800"}']) {
        const reply = await send(path, raw);
        assert.equal(reply.status, 400, `${path} ${raw}: ${reply.text}`);
      }
    }
    await assertUntouched('malformed');
  });

  /** By path, what each of these does to a body that is right. */
  const wrong = (): Readonly<Record<string, readonly Json[]>> => ({
    '/releases': [
      {},
      { baseline_sequence_id: pair.baseline_sequence_id },
      { candidate_sequence_id: pair.candidate_sequence_id },
      ...[null, 7, '', 'x'].map((baseline_sequence_id) => ({ ...pair, baseline_sequence_id })),
      ...[null, 7, '', 'x'].map((candidate_sequence_id) => ({ ...pair, candidate_sequence_id })),
      { ...pair, tenant_id: 7 },
      ...[gate, 'none', [7], [{}], [[gate]]].map((gates) => ({ ...pair, gates })),
      ...[
        { metric: 'latency' },
        { metric: 'Error_rate' },
        { metric: undefined },
        { max_regression: undefined },
        { max_regression: null },
        { max_regression: '0.1' },
        { max_regression: -0.001 },
        { min_sample: undefined },
        { min_sample: -1 },
        { min_sample: 1.5 },
        { min_sample: '1' },
      ].map((change) => ({ ...pair, gates: [gate, { ...gate, ...change }] })),
      ...['migrate', 'PIN', '', 7].map((in_flight_policy) => ({ ...pair, in_flight_policy })),
    ],
    '/sequences/releases/diff': [{}, { ...pair, baseline_sequence_id: 'x' }],
    validate: [{ sample: 'ten' }, { sample: 1.5 }, { skip: 'yes' }, { skip: 1 }],
    canary: [
      {},
      ...[null, 0, 101, -1, 256, 1.5, '10', true].map((percent) => ({ percent })),
      { percentage: 10 },
    ],
    promote: [{ force: 'yes' }, { force: 1 }],
  });

  test('with a field that is missing or wrong is 400, and nothing moves', async () => {
    for (const [path, bodies] of Object.entries(wrong())) {
      for (const body of bodies) {
        const reply = await send(path, JSON.stringify(body));
        assert.equal(reply.status, 400, `${path} ${JSON.stringify(body)}: ${reply.text}`);
      }
    }
    const infinite = JSON.stringify({ ...pair, gates: [gate] }).replace('0.1', '1e999');
    assert.equal((await send('/releases', infinite)).status, 400);
    assert.equal((await send('canary')).status, 400, 'a canary needs a percentage');
    await assertUntouched('wrong');
  });

  test('is not read by pause, evaluate and rollback', async () => {
    for (const raw of [
      undefined,
      '',
      '{}',
      '{"percent":',
      'nonsense',
      '\u0000',
      '[[['.repeat(999),
    ]) {
      const statuses = [];
      for (const action of ['pause', 'evaluate', 'rollback']) {
        statuses.push((await send(action, raw)).status);
      }
      assert.deepEqual(statuses, [409, 200, 409], raw);
    }
    await assertUntouched('not read');
  });

  test('that is absent or empty is {} to validate and promote', async () => {
    for (const raw of [undefined, '', '{}']) {
      assert.equal((await send('promote', raw)).status, 409, 'a draft cannot be promoted');
    }
    for (const raw of [undefined, '', '{}']) {
      const own = await draft(tenant);
      const path = `/releases/${own.id}/validate`;
      const options = raw === undefined ? {} : { raw };
      const reply = await tenant.request<ValidationReport>('POST', path, options);
      assert.equal(expectStatus(reply, 200).release_state, 'ready');
    }
  });

  test('may hold fields that nobody knows, and null for what it leaves out', async () => {
    const own = await pairOf(tenant);
    const more = { surprise: { percent: 7 }, state: 'promoted', canary_percent: 99 };
    const nothing = { gates: null, in_flight_policy: null, ...more };
    const made = expectStatus(await tenant.post<Release>('/releases', { ...own, ...nothing }), 201);
    assert.deepEqual(
      [made.state, made.canary_percent, made.gates, made.in_flight_policy],
      ['draft', 0, undefined, 'pin'],
    );
    const diff = await tenant.post('/sequences/releases/diff', { ...own, ...more });
    assert.equal(diff.status, 200);
    const validated = await act(tenant, made, 'validate', { skip: true, sample: null, ...more });
    assert.equal(validated.body.release_state, 'ready');
    const canary = await act(tenant, made, 'canary', { percent: 5, ...more });
    assert.deepEqual([canary.body.state, canary.body.canary_percent], ['canary', 5]);
    const promoted = await act(tenant, made, 'promote', { force: null, ...more });
    assert.equal(promoted.body.state, 'promoted');
  });

  test('with gates and a policy is echoed, the gates in their order', async () => {
    const own = await pairOf(tenant);
    const gates = [
      { metric: 'cancel_rate', max_regression: 0, min_sample: 0 },
      { metric: 'error_rate', max_regression: 12.5, min_sample: 2_147_483_647 },
      gate,
    ];
    const body = { ...own, gates, in_flight_policy: 'operator_decision' };
    const made = expectStatus(await tenant.post<Release>('/releases', body), 201);
    assert.deepEqual([made.gates, made.in_flight_policy], [gates, 'operator_decision']);
    assert.deepEqual((await look(tenant, made))[0], made);
  });
});

test('either side of a release may be deprecated', async () => {
  const tenant = api.tenant();
  const pair = await pairOf(tenant);
  for (const id of Object.values(pair)) {
    expectStatus(await tenant.post(`/sequences/${id}/deprecate`), 204);
  }
  const release = await draft(tenant, pair);
  assert.deepEqual([release.baseline_version, release.candidate_version], [1, 2]);
});
