/** What is read of releases and asked of their callers, their outcomes, and what they change. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe } from 'node:test';
import type { Release, ReleaseDecision, SemanticDiff } from '../../schema/release.js';
import type { SequenceDefinition } from '../../schema/sequence.js';
import { type Json, newHandler, step, type Tenant, testsOf, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';
import { column } from '../helpers/columns.js';
import { fork, resumeFrom } from '../helpers/edits.js';
import {
  type Action,
  act,
  decisionsOf,
  draft,
  type Pair,
  pairOf,
  look as recordOf,
  releaseIn,
  releaseRow,
} from '../helpers/releases.js';
import { canary, keyOn, move, pair, versions } from '../helpers/routed.js';

const api = useSharedApi();
const test = testsOf(api);
const tenant = api.tenant();

async function insert(table: string, row: Json): Promise<void> {
  await api.sql.query(
    `insert into ${table} select * from json_populate_record(null::${table}, $1::json)`,
    [JSON.stringify(row)],
  );
}

/** Stores the row of a release; resolves with it. */
async function stored(tenant: Tenant, changes: Json = {}): Promise<Json & { id: string }> {
  const row = { ...releaseRow({ tenant_id: tenant.name }), ...changes };
  await insert('releases', row);
  return row;
}

// `releases.test.ts` has one that leaves out what there is none of.
test('a record shows everything that there is, with its times in UTC', async () => {
  const counts = { replayed: 3, matches: 1, diverged: 1, inconclusive: 1 };
  const states = { recorded_state: 'failed', replayed_state: 'completed' };
  const blocks = { blocks_added: ['é'], blocks_removed: [] };
  const divergences = [{ instance_id: randomUUID(), ...states, ...blocks }];
  const row = await stored(tenant, {
    state: 'paused',
    canary_percent: 40,
    gates: [{ metric: 'error_rate', max_regression: 0.125, min_sample: 7 }],
    in_flight_policy: 'operator_decision',
    validation_summary: { ...counts, divergences, validated_at: '2026-01-01T00:00:01.000Z' },
    canary_started_at: '2026-01-01T02:00:02.005+02:00',
  });
  const { body } = await tenant.get(`/releases/${row.id}`);
  assert.deepEqual(body, { ...row, canary_started_at: '2026-01-01T00:00:02.005Z' });
});

describe('a list', () => {
  /** The ids that are listed. */
  const list = async (client: Client, query = '') =>
    expectStatus(await client.get<Release[]>(`/releases${query}`), 200).map(({ id }) => id);
  let mine: Tenant;
  let newestFirst: string[];

  before(async () => {
    mine = api.tenant();
    await stored(api.tenant());
    const made = [];
    for (const second of [3, 1, 5, 4, 2]) {
      const created_at = `2026-02-01T00:00:0${second}.000Z`;
      made.push({ ...(await stored(mine, { created_at })), created_at });
    }
    made.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
    newestFirst = made.map(({ id }) => id);
  });

  test('the limit is honoured, and taken for the nearest one within its bounds', async () => {
    assert.deepEqual(await list(mine), newestFirst);
    assert.deepEqual(await list(mine, '?limit=2'), newestFirst.slice(0, 2));
    assert.deepEqual(await list(mine, '?limit=0'), newestFirst.slice(0, 1));
    assert.deepEqual(await list(mine, '?limit=-7'), newestFirst.slice(0, 1));
    assert.deepEqual(await list(mine, '?limit=9007199254740991'), newestFirst);
    for (const query of ['limit=x', 'limit=1.5', 'limit=', 'limit=1e400', 'offset=1']) {
      assert.equal((await mine.get(`/releases?${query}`)).status, 400, query);
    }
  });

  test('is narrowed by the state and by the name of the sequence', async (tenant) => {
    const made = async (state: string, sequence_name: string) =>
      (await stored(tenant, { state, sequence_name })).id;
    const order = await made('canary', 'order');
    const refund = await made('canary', 'refund');
    const draft = await made('draft', 'order');
    const sorted = async (query: string) => (await list(tenant, query)).sort();
    assert.deepEqual(await sorted('?state=canary'), [order, refund].sort());
    assert.deepEqual(await sorted('?sequence_name=order'), [order, draft].sort());
    assert.deepEqual(await sorted('?state=canary&sequence_name=order'), [order]);
    assert.deepEqual(await sorted('?state=paused'), []);
    assert.equal((await tenant.get('/releases?state=underway')).status, 400);
  });
});

test('decisions are listed oldest first, those of one instant by their ids', async () => {
  const { id: release_id } = await stored(tenant);
  const decisions: ReleaseDecision[] = [];
  for (const [second, digit] of [
    [2, 'c'],
    [1, 'b'],
    [1, 'a'],
    [0, 'd'],
  ] as const) {
    const decision = {
      id: `01950000-0000-7000-8000-00000000000${digit}`,
      release_id,
      from_state: 'ready',
      to_state: 'canary',
      actor: 'operator',
      reason: `asked for at second ${second}`,
      decided_at: `2026-01-01T00:00:0${second}.000Z`,
    } as const;
    await insert('release_decisions', decision);
    decisions.push(decision);
  }
  const { body } = await tenant.get<ReleaseDecision[]>(`/releases/${release_id}/decisions`);
  assert.deepEqual(body, decisions.reverse());
});

// ---------------------------------------------------------------- differences

/** Two versions of a sequence that no other test uses. */
async function twoVersions(first: readonly Json[], second: readonly Json[]): Promise<Pair> {
  const name = `s-${randomUUID()}`;
  return {
    baseline_sequence_id: await tenant.sequence(first, { name, version: 1 }),
    candidate_sequence_id: await tenant.sequence(second, { name, version: 2 }),
  };
}

async function release(pair: Pair): Promise<string> {
  const body = { tenant_id: tenant.name, ...pair };
  return expectStatus(await tenant.post<Release>('/releases', body), 201).id;
}

const compare = async (pair: object): Promise<SemanticDiff> =>
  expectStatus(await tenant.post<SemanticDiff>('/sequences/releases/diff', pair), 200);

const a = step('a', 'noop');

test('The diff of a release lists each change with block_id and severity; POST and GET agree; unknown and foreign ids are 404', async () => {
  const pair = await twoVersions([a], [a, step('b', 'log')]);
  const id = await release(pair);
  const diff = expectStatus(await tenant.get<SemanticDiff>(`/releases/${id}/diff`), 200);
  assert.deepEqual(diff, {
    entries: [
      {
        category: 'block_added',
        severity: 'behavioral',
        block_id: 'b',
        summary: 'step b with the handler log is added to the root list',
      },
    ],
    max_severity: 'behavioral',
  });
  assert.deepEqual(await compare(pair), diff);
  const stranger = api.tenant();
  expectStatus(await tenant.get(`/releases/${randomUUID()}/diff`), 404);
  expectStatus(await stranger.get(`/releases/${id}/diff`), 404);
  expectStatus(await stranger.post('/sequences/releases/diff', pair), 404);
  for (const side of ['baseline_sequence_id', 'candidate_sequence_id']) {
    const unknown = { ...pair, [side]: randomUUID() };
    expectStatus(await tenant.post('/sequences/releases/diff', unknown), 404);
  }
});

test('two definitions need not share a name, and may be one', async () => {
  const one = await tenant.sequence([a]);
  const other = await tenant.sequence([step('a', 'log')]);
  const diff = await compare({ baseline_sequence_id: one, candidate_sequence_id: other });
  assert.deepEqual(column(diff.entries, 'category'), ['handler_changed']);
  const same = await compare({ baseline_sequence_id: one, candidate_sequence_id: one });
  assert.deepEqual(same, { entries: [] });
});

// ---------------------------------------------------------------- outcomes

/** By instance, its state and sequence as the release's rows have them. */
async function outcomes(release: string): Promise<Record<string, string>> {
  const { rows } = await api.sql.query<{ instance_id: string; state: string; sequence_id: string }>(
    'select o.instance_id, o.state, o.sequence_id from release_outcomes o ' +
      'join instances i on i.id = o.instance_id and i.created_at = o.created_at ' +
      'where o.release_id = $1',
    [release],
  );
  return Object.fromEntries(
    rows.map((row) => [row.instance_id, `${row.state} ${row.sequence_id}`]),
  );
}

interface World {
  readonly tenant: Tenant;
  /** Of the step of both versions. */
  readonly handler: string;
  readonly v1: string;
  readonly v2: string;
  readonly release: string;
  /** Creates an instance on that side; resolves with its id. */
  onBaseline(): Promise<string>;
  onCandidate(): Promise<string>;
}

/** A canary of one half, between versions whose only step is done by a worker. */
async function canaryWorld(): Promise<World> {
  const [tenant, handler] = [api.tenant(), newHandler()];
  const blocks = [step('a', handler)];
  const [v1 = '', v2 = ''] = await versions(tenant, { blocks }, { blocks });
  const release = await canary(tenant, v1, v2, 50);
  const create = (variant: 'baseline' | 'candidate') =>
    tenant.create(v1, { idempotency_key: keyOn(release, variant, 50) });
  return {
    tenant,
    handler,
    v1,
    v2,
    release,
    onBaseline: () => create('baseline'),
    onCandidate: () => create('candidate'),
  };
}

test('an instance that was routed leaves a row when it has ended, and none before', async () => {
  const { tenant, handler, v1, v2, release, onBaseline, onCandidate } = await canaryWorld();
  const completed = await onBaseline();
  await tenant.complete(await tenant.task(handler));
  await tenant.until(completed, 'completed');
  const failed = await onCandidate();
  await tenant.fail(await tenant.task(handler), 'no');
  await tenant.until(failed, 'failed');
  const cancelled = await onCandidate();
  await tenant.signal(cancelled, 'cancel');
  await tenant.until(cancelled, 'cancelled');
  await onBaseline();
  assert.deepEqual(await outcomes(release), {
    [completed]: `completed ${v1}`,
    [failed]: `failed ${v2}`,
    [cancelled]: `cancelled ${v2}`,
  });
});

test('a failed instance that lives again has no row until it ends anew', async () => {
  const { tenant, handler, v2, release, onCandidate } = await canaryWorld();
  const revivals: Record<string, (id: string) => Promise<unknown>> = {
    retry: async (id) => expectStatus(await tenant.post(`/instances/${id}/retry`), 200),
    patch: (id) => tenant.move(id, 'scheduled'),
    many: async () => {
      const body = { action: 'retry', filter: { tenant_id: tenant.name, states: ['failed'] } };
      expectStatus(await tenant.post('/instances/batch-action', body), 200);
    },
    'resume-from': (id) => resumeFrom(tenant, id, 'a'),
  };
  for (const [name, revive] of Object.entries(revivals)) {
    const id = await onCandidate();
    await tenant.fail(await tenant.task(handler), 'no');
    await tenant.until(id, 'failed');
    assert.equal((await outcomes(release))[id], `failed ${v2}`, name);
    await revive(id);
    const task = await tenant.task(handler);
    assert.equal((await outcomes(release))[id], undefined, name);
    await tenant.complete(task);
    await tenant.until(id, 'completed');
    assert.equal((await outcomes(release))[id], `completed ${v2}`, name);
  }
});

test('who was not routed leaves no row: dry runs, forks, pins, forged stamps, other times', async (tenant) => {
  const [v1, v2] = await pair(tenant);
  const early = await tenant.create(v1);
  const release = await canary(tenant, v1, v2, 100);
  const routed = await tenant.create(v1);
  const { id: forked } = await fork(tenant, routed, 'a', { dry_run: false });
  const metadata = { release: { release_id: release, variant: 'candidate' } };
  const others = [
    early,
    forked,
    (await fork(tenant, routed, 'a')).id,
    await tenant.create(v1, { dry_run: true }),
    await tenant.create(v2),
    await tenant.create(v2, { metadata }),
  ];
  await move(tenant, release, 'pause');
  others.push(await tenant.create(v1, { metadata }));
  for (const id of others) await tenant.until(id, 'completed');
  assert.deepEqual(await outcomes(release), { [routed]: `completed ${v2}` });
});

// ---------------------------------------------------------------- rules

/** What is stored of a release: its record and its decisions. */
async function look(tenant: Tenant, release: Release): Promise<[Release, ReleaseDecision[]]> {
  return [await recordOf(tenant, release), await decisionsOf(tenant, release)];
}

test('A release of one sequence to itself, or across names or namespaces, is 400; a missing or foreign sequence is 404', async (tenant) => {
  const own = await pairOf(tenant);
  const { baseline_sequence_id: baseline } = own;
  const { body } = await tenant.get<SequenceDefinition>(`/sequences/${baseline}`);
  const stored = (more: Json) =>
    tenant.sequence([step('a', 'noop')], { name: body.name, version: 2, ...more });
  const [unknown, foreign] = [randomUUID(), await pairOf(api.tenant())];
  const missing = new RegExp(`^not found: sequence ${unknown}`);
  const absent = /^not found: sequence /;
  const cases: readonly (readonly [Json, number, RegExp?])[] = [
    [{ candidate_sequence_id: baseline }, 400],
    [{ candidate_sequence_id: baseline.toUpperCase() }, 400],
    [{ candidate_sequence_id: await stored({ name: `s-${randomUUID()}` }) }, 400],
    [{ candidate_sequence_id: await stored({ namespace: 'elsewhere' }) }, 400],
    [{ baseline_sequence_id: unknown }, 404, missing],
    [{ candidate_sequence_id: unknown }, 404, missing],
    [{ baseline_sequence_id: unknown, candidate_sequence_id: unknown }, 404, missing],
    [{ ...foreign }, 404, absent],
    [{ baseline_sequence_id: foreign.baseline_sequence_id }, 404, absent],
    [{ candidate_sequence_id: foreign.candidate_sequence_id }, 404, absent],
  ];
  for (const [changes, status, says = /./] of cases) {
    const reply = await tenant.post<{ error: string }>('/releases', { ...own, ...changes });
    assert.match(expectStatus(reply, status).error, says);
  }
  assert.deepEqual((await tenant.get('/releases')).body, []);
});

test('the tenant of a body must be that of the header, which counts when the body names none', async (tenant) => {
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

describe('Reads, actions, decisions and diff of a release of another tenant are 404 and change nothing', () => {
  const ACTIONS: readonly (readonly [action: Action, body?: Json])[] = [
    ['validate'],
    ['validate', { skip: true }],
    ['canary', { percent: 50 }],
    ['evaluate'],
    ['promote'],
    ['promote', { force: true }],
    ['pause'],
    ['rollback'],
  ];
  for (const state of ['draft', 'ready', 'canary', 'paused'] as const) {
    test(`of one that is ${state}`, async (tenant) => {
      const stranger = api.tenant();
      const release = await releaseIn(tenant, state);
      const before = await look(tenant, release);
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

  const gate = { metric: 'error_rate', max_regression: 0.1, min_sample: 1 };

  /** By path, what each of these does to a body that is right. */
  const wrong = (): Readonly<Record<string, readonly Json[]>> => ({
    '/releases': [
      {},
      ...[null, 'x'].map((baseline_sequence_id) => ({ ...pair, baseline_sequence_id })),
      ...[null, 'x'].map((candidate_sequence_id) => ({ ...pair, candidate_sequence_id })),
      { ...pair, tenant_id: 7 },
      ...[gate, 'none', [7], [{}], [[gate]]].map((gates) => ({ ...pair, gates })),
      ...[
        { metric: 'latency' },
        { metric: undefined },
        { max_regression: null },
        { max_regression: -0.001 },
        { min_sample: undefined },
        { min_sample: 1.5 },
      ].map((change) => ({ ...pair, gates: [gate, { ...gate, ...change }] })),
      ...['migrate', 'PIN', '', 7].map((in_flight_policy) => ({ ...pair, in_flight_policy })),
    ],
    '/sequences/releases/diff': [{}, { ...pair, baseline_sequence_id: 'x' }],
    validate: [{ sample: 'ten' }, { sample: 1.5 }, { skip: 'yes' }, { skip: 1 }],
    // `releases.test.ts` has the percentages.
    canary: [{ percent: true }, { percentage: 10 }],
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
});

test('either side of a release may be deprecated', async (tenant) => {
  const pair = await pairOf(tenant);
  for (const id of Object.values(pair)) {
    expectStatus(await tenant.post(`/sequences/${id}/deprecate`), 204);
  }
  const release = await draft(tenant, pair);
  assert.deepEqual([release.baseline_version, release.candidate_version], [1, 2]);
});
