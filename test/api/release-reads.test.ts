/**
 * What is read of releases: records, lists and decisions. The rows are written here, so that their
 * order and every form of a record are known.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { GateReport, Release, ReleaseDecision } from '../../schema/release.js';
import { type Json, step, type Tenant, useSharedApi } from '../helpers/api.js';
import { type Client, expectStatus } from '../helpers/client.js';

const api = useSharedApi();

async function insert(table: string, row: Json): Promise<void> {
  await api.sql.query(
    `insert into ${table} select * from json_populate_record(null::${table}, $1::json)`,
    [JSON.stringify(row)],
  );
}

/** Stores the row of a release; resolves with it. */
async function stored(tenant: Tenant, changes: Json = {}): Promise<Json & { id: string }> {
  const row = {
    id: randomUUID(),
    tenant_id: tenant.name,
    namespace: 'test',
    sequence_name: 'order',
    baseline_sequence_id: randomUUID(),
    baseline_version: 1,
    candidate_sequence_id: randomUUID(),
    candidate_version: 2,
    state: 'draft',
    canary_percent: 0,
    gates: [],
    in_flight_policy: 'pin',
    validation_summary: null,
    canary_started_at: null,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
    ...changes,
  };
  await insert('releases', row);
  return row;
}

const get = async (client: Client, id: string) =>
  expectStatus(await client.get<Release>(`/releases/${id}`), 200);

describe('a record', () => {
  test('leaves out what there is none of', async () => {
    const tenant = api.tenant();
    const row = await stored(tenant);
    const { gates, validation_summary, canary_started_at, ...shown } = row;
    assert.deepEqual(await get(tenant, row.id), shown);
  });

  test('shows everything that there is, with its times in UTC', async () => {
    const tenant = api.tenant();
    const summary = {
      replayed: 3,
      matches: 1,
      diverged: 1,
      inconclusive: 1,
      divergences: [
        {
          instance_id: randomUUID(),
          recorded_state: 'failed',
          replayed_state: 'completed',
          blocks_added: ['é'],
          blocks_removed: [],
        },
      ],
      validated_at: '2026-01-01T00:00:01.000Z',
    };
    const gates = [
      { metric: 'cancel_rate', max_regression: 0, min_sample: 0 },
      { metric: 'error_rate', max_regression: 0.125, min_sample: 7 },
    ];
    const changes = {
      state: 'paused',
      canary_percent: 40,
      gates,
      in_flight_policy: 'operator_decision',
      validation_summary: summary,
      canary_started_at: '2026-01-01T02:00:02.005+02:00',
    };
    const row = await stored(tenant, changes);
    const shown = { ...row, canary_started_at: '2026-01-01T00:00:02.005Z' };
    assert.deepEqual(await get(tenant, row.id), shown);
  });

  test('is found by its id in any case, and by no tenant but its own', async () => {
    const tenant = api.tenant();
    const { id } = await stored(tenant);
    assert.equal((await get(tenant, id.toUpperCase())).id, id);
    const foreign = await api.tenant().get<{ error: string }>(`/releases/${id}`);
    const unknown = await tenant.get<{ error: string }>(`/releases/${randomUUID()}`);
    assert.deepEqual([foreign.status, unknown.status], [404, 404]);
    assert.equal(foreign.body.error, `not found: release ${id}`);
    assert.match(unknown.body.error, /^not found: release /);
  });
});

describe('a list', () => {
  /** The ids that are listed. */
  const list = async (client: Client, query = '') =>
    expectStatus(await client.get<Release[]>(`/releases${query}`), 200).map(({ id }) => id);
  let mine: Tenant;
  let other: Tenant;
  let newestFirst: string[];
  let theirs: string;

  before(async () => {
    mine = api.tenant();
    other = api.tenant();
    theirs = (await stored(other)).id;
    const made = [];
    for (const second of [3, 1, 5, 4, 2]) {
      const created_at = `2026-02-01T00:00:0${second}.000Z`;
      made.push({ ...(await stored(mine, { created_at })), created_at });
    }
    made.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
    newestFirst = made.map(({ id }) => id);
  });

  test('is scoped by the header, whatever the query says, the newest first', async () => {
    assert.deepEqual(await list(mine), newestFirst);
    assert.deepEqual(await list(mine, `?tenant_id=${other.name}`), newestFirst);
    assert.deepEqual(await list(other), [theirs]);
    assert.deepEqual(await list(api.tenant()), []);
  });

  test('the limit is honoured, and taken for the nearest one within its bounds', async () => {
    assert.deepEqual(await list(mine, '?limit=2'), newestFirst.slice(0, 2));
    assert.deepEqual(await list(mine, '?limit=0'), newestFirst.slice(0, 1));
    assert.deepEqual(await list(mine, '?limit=-7'), newestFirst.slice(0, 1));
    assert.deepEqual(await list(mine, '?limit=9007199254740991'), newestFirst);
    for (const limit of ['x', '1.5', '', '1e400']) {
      assert.equal((await mine.get(`/releases?limit=${limit}`)).status, 400, limit);
    }
  });

  test('by default 100 are listed, and at most 1,000', async () => {
    const crowded = api.tenant();
    const { id } = await stored(crowded);
    await api.sql.query(
      `insert into releases select (json_populate_record(r, json_build_object(
         'id', gen_random_uuid(), 'created_at', created_at + g * interval '1 second'))).*
       from releases r cross join generate_series(1, 1000) g where id = $1`,
      [id],
    );
    assert.equal((await list(crowded)).length, 100);
    const most = await list(crowded, '?limit=5000');
    assert.equal(most.length, 1_000);
    assert.ok(!most.includes(id), 'the oldest is left out');
  });

  test('goes on by a cursor, and by no offset', async () => {
    const reply = await mine.get<Release[]>('/releases?limit=2');
    assert.deepEqual(
      reply.body.map(({ id }) => id),
      newestFirst.slice(0, 2),
    );
    const next = `?limit=2&cursor=${reply.headers['x-next-cursor']}`;
    assert.deepEqual(await list(mine, next), newestFirst.slice(2, 4));
    assert.match(String(reply.headers.link), /^<.*[?&]cursor=.*>; rel="next"$/);
    assert.equal((await mine.get('/releases?limit=2&offset=1')).status, 400);
    assert.equal((await mine.get('/releases?cursor=x')).status, 400);
  });

  test('is narrowed by the state and by the name of the sequence', async () => {
    const tenant = api.tenant();
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

  test('a canary is found however many releases came after it', async () => {
    const crowded = api.tenant();
    const { id } = await stored(crowded, { state: 'canary' });
    await api.sql.query(
      `insert into releases select (json_populate_record(r, json_build_object(
         'id', gen_random_uuid(), 'state', 'draft',
         'created_at', created_at + g * interval '1 second'))).*
       from releases r cross join generate_series(1, 1500) g where id = $1`,
      [id],
    );
    assert.deepEqual(await list(crowded, '?state=canary'), [id]);
  });
});

describe('gates', () => {
  const gates = [
    { metric: 'error_rate', max_regression: 0.25, min_sample: 4 },
    { metric: 'cancel_rate', max_regression: 1, min_sample: 4 },
  ];
  const begun = { gates, canary_started_at: '2026-01-01T00:00:00.000Z' };

  /** So many runs of this side have ended so. Whose they are is known by their instances. */
  async function ended(
    tenant: Tenant,
    release: Json,
    side: string,
    state: string,
    count: number,
  ): Promise<void> {
    const sequence = await tenant.sequence([step('a', 'noop')]);
    for (let at = 0; at < count; at++) {
      await insert('release_outcomes', {
        instance_id: await tenant.create(sequence),
        release_id: release.id,
        sequence_id: release[`${side}_sequence_id`],
        state,
        created_at: '2026-01-01T00:00:01.000Z',
      });
    }
  }

  const report = async (client: Client, id: string) =>
    expectStatus(await client.get<GateReport>(`/releases/${id}/gates`), 200);

  test('tell what has ended of both versions, their rates and the verdicts', async () => {
    const tenant = api.tenant();
    const row = await stored(tenant, { ...begun, state: 'canary' });
    await ended(tenant, row, 'baseline', 'completed', 4);
    await ended(tenant, row, 'candidate', 'completed', 3);
    assert.deepEqual(await report(tenant, row.id), {
      baseline: { total: 4, completed: 4, failed: 0, cancelled: 0 },
      candidate: { total: 3, completed: 3, failed: 0, cancelled: 0 },
      gates: gates.map((gate) => ({
        gate,
        baseline_rate: 0,
        candidate_rate: 0,
        verdict: 'inconclusive',
      })),
    });
    await ended(tenant, row, 'candidate', 'cancelled', 1);
    const verdicts = (await report(tenant, row.id)).gates;
    assert.deepEqual(
      verdicts.map(({ candidate_rate, verdict }) => [candidate_rate, verdict]),
      [
        [0, 'pass'],
        [0.25, 'pass'],
      ],
    );
  });

  test('are read without moving the release, also one that fails', async () => {
    const tenant = api.tenant();
    const row = await stored(tenant, { ...begun, state: 'paused' });
    await ended(tenant, row, 'baseline', 'completed', 4);
    await ended(tenant, row, 'candidate', 'failed', 4);
    const before = await get(tenant, row.id);
    assert.equal((await report(tenant, row.id)).gates[0]?.verdict, 'fail');
    assert.deepEqual(await get(tenant, row.id), before);
    assert.deepEqual((await tenant.get(`/releases/${row.id}/decisions`)).body, []);
  });

  test('of a release without any there are no verdicts', async () => {
    const tenant = api.tenant();
    const { id } = await stored(tenant);
    assert.deepEqual((await report(tenant, id)).gates, []);
  });
});

describe('decisions', () => {
  test('are listed oldest first, those of one instant by their ids', async () => {
    const tenant = api.tenant();
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

  test('of a release without any there are none; of no release nothing is found', async () => {
    const tenant = api.tenant();
    const { id } = await stored(tenant);
    assert.deepEqual((await tenant.get(`/releases/${id}/decisions`)).body, []);
    assert.equal((await tenant.get(`/releases/${randomUUID()}/decisions`)).status, 404);
    assert.equal((await api.tenant().get(`/releases/${id}/decisions`)).status, 404);
  });
});
