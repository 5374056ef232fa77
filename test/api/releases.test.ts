/** The life of a release over HTTP: its states, its decisions, and its gates. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type {
  Gate,
  GateReport,
  Release,
  ReleaseDecision,
  ValidationReport,
} from '../../schema/release.js';
import { eventually, useTenant } from '../helpers/api.js';
import { expectStatus } from '../helpers/client.js';
import {
  type Action,
  act,
  begin,
  canary,
  decisionsOf,
  draft,
  evaluate,
  look,
  move,
  pairOf,
  ready,
  releaseIn,
  run,
} from '../helpers/releases.js';

const tenant = useTenant();

const errorRate = (max_regression: number, min_sample: number): Gate => ({
  metric: 'error_rate',
  max_regression,
  min_sample,
});

const BODIES = { canary: { percent: 20 } } as const;

/** All of them are refused, and nothing has moved. */
async function assertRefused(release: Release, actions: readonly Action[]): Promise<void> {
  const stored = await look(tenant, release);
  const decisions = await decisionsOf(tenant, release);
  for (const action of actions) {
    const reply = await act(tenant, release, action, action === 'canary' ? BODIES.canary : {});
    assert.equal(reply.status, 409, `${action}: ${reply.text}`);
    assert.match(reply.body.error, /^conflict: /);
  }
  assert.deepEqual(await look(tenant, release), stored);
  assert.deepEqual(await decisionsOf(tenant, release), decisions);
}

/** As pairs `from→to`, oldest first. */
const chain = (decisions: readonly ReleaseDecision[]): string[] =>
  decisions.map(({ from_state, to_state }) => `${from_state}→${to_state}`);

describe('the life of a release', () => {
  test('A new release is a draft with canary_percent 0, its versions and gates, and no canary_started_at', async () => {
    const pair = await pairOf(tenant);
    const gates = [errorRate(0.1, 5), { metric: 'cancel_rate', max_regression: 0, min_sample: 0 }];
    const release = expectStatus(
      await tenant.post<Release>('/releases', { ...pair, tenant_id: tenant.name, gates }),
      201,
    );
    const { id, created_at, updated_at, sequence_name, ...rest } = release;
    assert.equal(created_at, updated_at);
    assert.match(sequence_name, /^s-/);
    assert.deepEqual(rest, {
      tenant_id: tenant.name,
      namespace: 'test',
      baseline_version: 1,
      candidate_version: 2,
      ...pair,
      state: 'draft',
      canary_percent: 0,
      gates,
      in_flight_policy: 'pin',
    });
    assert.deepEqual(await look(tenant, { id }), release);
    const [decision, ...others] = await decisionsOf(tenant, { id });
    assert.deepEqual(others, []);
    assert.equal(decision?.release_id, id);
    assert.equal(decision.actor, 'operator');
    assert.equal(decision.decided_at, created_at);
    assert.deepEqual(chain([decision]), ['draft→draft']);
  });

  test('A baseline has one canary at a time: a second release is 409 during it, and allowed beside a draft or after a rollback', async () => {
    const first = await draft(tenant);
    const { baseline_sequence_id, candidate_sequence_id } = first;
    const create = () => tenant.post('/releases', { baseline_sequence_id, candidate_sequence_id });
    expectStatus(await create(), 201);
    expectStatus(await act(tenant, first, 'validate', { skip: true }), 200);
    expectStatus(await create(), 201);
    await move(tenant, first, 'canary', { percent: 1 });
    expectStatus(await create(), 409);
    await move(tenant, first, 'pause');
    expectStatus(await create(), 201);
    await move(tenant, first, 'canary', { percent: 1 });
    expectStatus(await create(), 409);
    await move(tenant, first, 'rollback');
    expectStatus(await create(), 201);
  });

  test('a promoted release blocks others of its baseline for ever', async () => {
    const { baseline_sequence_id, candidate_sequence_id } = await releaseIn(tenant, 'promoted');
    const body = { baseline_sequence_id, candidate_sequence_id };
    expectStatus(await tenant.post('/releases', body), 409);
  });

  const refused: readonly [string, 'draft' | 'ready' | 'rolled_back', readonly Action[]][] = [
    [
      'A draft cannot be canaried, promoted, paused or rolled back: 409',
      'draft',
      ['canary', 'promote', 'pause', 'rollback'],
    ],
    [
      'A ready release cannot be promoted, paused or rolled back: 409, and its state is unchanged',
      'ready',
      ['promote', 'pause', 'rollback'],
    ],
    [
      'A rolled back release cannot be canaried, promoted, paused or validated: 409',
      'rolled_back',
      ['canary', 'promote', 'pause', 'validate'],
    ],
  ];
  for (const [title, state, actions] of refused) {
    test(title, async () => assertRefused(await releaseIn(tenant, state), actions));
  }

  test('validate with skip makes a draft ready, with a report of zeros', async () => {
    const release = await draft(tenant);
    const reply = await act<ValidationReport>(tenant, release, 'validate', { skip: true });
    assert.deepEqual(expectStatus(reply, 200), {
      replayed: 0,
      matches: 0,
      diverged: 0,
      inconclusive: 0,
      divergences: [],
      release_state: 'ready',
    });
    const stored = await look(tenant, release);
    assert.deepEqual([stored.state, stored.validation_summary], ['ready', undefined]);
  });

  test('A ready release cannot be validated again: 409', async () => {
    const release = await ready(tenant);
    for (const body of [{ skip: true }, {}, undefined]) {
      expectStatus(await act(tenant, release, 'validate', body), 409);
    }
    assert.deepEqual(await look(tenant, release), release);
  });

  test('canary percent 0 and 101 are 400 and change nothing; 100 is accepted and sets canary_started_at', async () => {
    const release = await ready(tenant);
    for (const percent of [0, 101, -1, 1.5, '20', null, 300, undefined]) {
      expectStatus(await act(tenant, release, 'canary', { percent }), 400);
    }
    assert.deepEqual(await look(tenant, release), release);
    const started = await move(tenant, release, 'canary', { percent: 100 });
    assert.deepEqual([started.state, started.canary_percent], ['canary', 100]);
    assert.equal(started.canary_started_at, started.updated_at);
    assert.deepEqual(await look(tenant, release), started);
  });

  test('A canary cannot be started twice, 409; after a pause it can, with the same or another percentage', async () => {
    const release = await canary(tenant, 20);
    await assertRefused(release, ['canary']);
    for (const percent of [20, 40, 5]) {
      const paused = await move(tenant, release, 'pause');
      assert.equal(paused.state, 'paused');
      const again = await move(tenant, release, 'canary', { percent });
      assert.equal(again.canary_percent, percent);
      assert.ok(String(again.canary_started_at) >= paused.updated_at);
    }
  });

  test('A paused release can be rolled back; promoting or pausing it is 409', async () => {
    const release = await releaseIn(tenant, 'paused');
    await assertRefused(release, ['promote', 'pause']);
    const { state, canary_percent, canary_started_at } = await move(tenant, release, 'rollback');
    assert.equal(state, 'rolled_back');
    // They stay as the canary had them.
    assert.equal(canary_percent, release.canary_percent);
    assert.equal(canary_started_at, release.canary_started_at);
  });

  test('A promoted release accepts no further action: 409, forced or not', async () => {
    const release = await releaseIn(tenant, 'promoted');
    await assertRefused(release, ['validate', 'canary', 'promote', 'pause', 'rollback']);
    const { id, candidate_sequence_id: next } = release;
    const refused = await act<{ error: string }>(tenant, release, 'rollback');
    assert.equal(
      refused.body.error,
      `conflict: release ${id} is promoted and cannot become rolled_back; to go back, deprecate version 2 ` +
        `(POST /sequences/${next}/deprecate), or lead from version 2 to version 1 by a release of its own`,
    );
    expectStatus(await act(tenant, release, 'promote', { force: true }), 409);
    expectStatus(await act(tenant, release, 'validate', { skip: true }), 409);
  });

  test('A rollback is idempotent, with one rolled_back decision', async () => {
    const release = await canary(tenant, 20);
    const first = await move(tenant, release, 'rollback');
    assert.deepEqual(await move(tenant, release, 'rollback'), first);
    const to = (await decisionsOf(tenant, release)).map(({ to_state }) => to_state);
    assert.deepEqual(to, ['draft', 'ready', 'canary', 'rolled_back']);
  });

  test('The decisions list every transition in order, with actor operator, a reason, and the percentages', async () => {
    const release = await canary(tenant, 20);
    await move(tenant, release, 'pause');
    await move(tenant, release, 'canary', { percent: 40 });
    await move(tenant, release, 'promote');
    const decisions = await decisionsOf(tenant, release);
    const moves =
      'draft→draft draft→ready ready→canary canary→paused paused→canary canary→promoted';
    assert.equal(chain(decisions).join(' '), moves);
    assert.ok(decisions.every(({ actor, reason }) => actor === 'operator' && reason !== ''));
    assert.match(decisions[2]?.reason ?? '', /20%/);
    assert.match(decisions[4]?.reason ?? '', /40%/);
    const times = decisions.map(({ decided_at }) => decided_at);
    assert.deepEqual(times, times.toSorted());
    assert.equal(new Set(decisions.map(({ id }) => id)).size, 6);
    assert.equal((await look(tenant, release)).updated_at, times.at(-1));
  });
});

test('no creation that is asked for after a rollback was answered goes to the candidate', async () => {
  const pair = await pairOf(tenant);
  const { baseline_sequence_id: baseline, candidate_sequence_id: candidate } = pair;
  /** The rollback that was answered last; undefined from the request for the next canary on. */
  let phase: number | undefined = 0;
  let isOver = false;
  const unrouted: [id: string, phase: number][] = [];
  const creator = async () => {
    for (let at = 0; !isOver; at++) {
      const asked = phase;
      // Keyed ones are handed on to their owners, which may be other shards.
      const key = at % 2 === 0 ? { idempotency_key: randomUUID() } : {};
      const id = await tenant.create(baseline, key);
      if (asked !== undefined && asked === phase) unrouted.push([id, asked]);
    }
  };
  const creators = Array.from({ length: 8 }, creator);
  for (let cycle = 1; cycle <= 3; cycle++) {
    const release = await ready(tenant, pair);
    phase = undefined;
    await move(tenant, release, 'canary', { percent: 100 });
    const routed = await tenant.instance(await tenant.create(baseline));
    assert.equal(routed.sequence_id, candidate);
    await move(tenant, release, 'rollback');
    phase = cycle;
    const known = unrouted.length;
    await eventually(() => assert.ok(unrouted.length > known + creators.length));
  }
  isOver = true;
  await Promise.all(creators);
  for (const [id, after] of unrouted) {
    const { sequence_id, metadata } = await tenant.instance(id);
    assert.equal(sequence_id, baseline, `after rollback ${after}`);
    assert.equal(metadata.release, undefined);
  }
});

describe('evaluate: inconclusive gates change nothing, failing gates roll back once, passing gates allow a promotion; without gates the verdicts are `[]`; unrouted instances do not count; a promoted release is never rolled back', () => {
  const NONE = { total: 0, completed: 0, failed: 0, cancelled: 0 };

  test('without evidence it is inconclusive, and nothing is rolled back', async () => {
    const gate = errorRate(0.1, 2);
    const release = await canary(tenant, 50, { gates: [gate] });
    await run(tenant, release, 'candidate', 'failed');
    assert.deepEqual(await evaluate(tenant, release), {
      baseline: NONE,
      candidate: { ...NONE, total: 1, failed: 1 },
      gates: [{ gate, candidate_rate: 1, verdict: 'inconclusive' }],
      auto_rolled_back: false,
      release_state: 'canary',
    });
    const read = await tenant.get<GateReport>(`/releases/${release.id}/gates`);
    assert.deepEqual(expectStatus(read, 200).gates, [
      { gate, candidate_rate: 1, verdict: 'inconclusive' },
    ]);
  });

  test('a release without gates has no verdicts and is never rolled back', async () => {
    const release = await canary(tenant, 50);
    await run(tenant, release, 'candidate', 'failed');
    await run(tenant, release, 'baseline', 'completed');
    const report = await evaluate(tenant, release);
    assert.deepEqual(report.gates, []);
    assert.equal(report.auto_rolled_back, false);
    assert.deepEqual(report.baseline, { ...NONE, total: 1, completed: 1 });
    assert.equal((await look(tenant, release)).state, 'canary');
  });

  test('a failing gate rolls back once, by an actor that is named after it', async () => {
    const gate = errorRate(0.25, 1);
    const cancelRate: Gate = { metric: 'cancel_rate', max_regression: 1, min_sample: 0 };
    const release = await canary(tenant, 50, { gates: [cancelRate, gate] });
    await run(tenant, release, 'baseline', 'completed');
    await run(tenant, release, 'candidate', 'failed');
    const report = await evaluate(tenant, release);
    assert.deepEqual(report.gates, [
      { gate: cancelRate, baseline_rate: 0, candidate_rate: 0, verdict: 'pass' },
      { gate, baseline_rate: 0, candidate_rate: 1, verdict: 'fail' },
    ]);
    // The engine may have seen it by itself before it was asked.
    assert.equal(report.release_state, 'rolled_back');
    assert.equal((await evaluate(tenant, release)).auto_rolled_back, false);
    const decisions = await decisionsOf(tenant, release);
    assert.deepEqual(chain(decisions.slice(3)), ['canary→rolled_back']);
    const { actor, reason } = decisions[3] as ReleaseDecision;
    assert.equal(actor, 'gate:error_rate');
    assert.match(reason, /1 \(1 of 1\).* 0 \(0 of 1\).* 0\.25/);
    const { sequence_id } = await tenant.instance(
      await tenant.create(release.baseline_sequence_id),
    );
    assert.equal(sequence_id, release.baseline_sequence_id);
  });

  test('a baseline that gets nothing any more is judged by its newest runs before the canary', async () => {
    const gate = errorRate(0.1, 2);
    const release = await ready(tenant, { gates: [gate] });
    const { baseline_sequence_id: baseline } = release;
    const before = async (end: string, more: object = {}) => {
      const id = await tenant.create(baseline, { context: { data: { end } }, ...more });
      await tenant.until(id, end);
    };
    // The gate needs two, and a dry run is none.
    await before('failed');
    await before('completed');
    await before('completed');
    await before('failed', { dry_run: true });
    const started = await move(tenant, release, 'canary', { percent: 100 });
    for (const _ of [1, 2]) await run(tenant, started, 'candidate', 'completed');
    const report = await evaluate(tenant, started);
    assert.deepEqual(report, {
      baseline: NONE,
      baseline_history: { ...NONE, total: 2, completed: 2 },
      candidate: { ...NONE, total: 2, completed: 2 },
      gates: [{ gate, baseline_rate: 0, candidate_rate: 0, verdict: 'pass' }],
      auto_rolled_back: false,
      release_state: 'canary',
    });
    assert.equal((await move(tenant, started, 'promote')).state, 'promoted');
  });

  test('instances that it did not route, or before its last start, are not counted', async () => {
    const release = await ready(tenant, { gates: [errorRate(0, 100)] });
    const { baseline_sequence_id, candidate_sequence_id } = release;
    for (const sequence of [baseline_sequence_id, candidate_sequence_id]) {
      await tenant.until(await tenant.create(sequence), 'completed');
    }
    const first = await move(tenant, release, 'canary', { percent: 50 });
    await run(tenant, first, 'candidate', 'failed');
    await tenant.until(await tenant.create(candidate_sequence_id), 'completed');
    await begin(tenant, first, 'candidate', 'cancelled');
    assert.equal((await evaluate(tenant, release)).candidate.total, 1);
    await move(tenant, release, 'pause');
    await tenant.until(await tenant.create(baseline_sequence_id), 'completed');
    const second = await move(tenant, release, 'canary', { percent: 50 });
    const { baseline, candidate } = await evaluate(tenant, second);
    assert.deepEqual([baseline, candidate], [NONE, NONE]);
  });

  test('after its promotion a release is judged, and left alone', async () => {
    const release = await canary(tenant, 50, { gates: [errorRate(0.1, 1)] });
    const late = await begin(tenant, release, 'candidate', 'cancelled');
    await run(tenant, release, 'baseline', 'completed');
    await run(tenant, release, 'candidate', 'completed');
    await move(tenant, release, 'promote');
    for (const _ of [1, 2])
      await run(tenant, { ...release, canary_percent: 100 }, 'candidate', 'failed');
    await tenant.signal(late, 'cancel');
    await tenant.until(late, 'cancelled');
    const report = await evaluate(tenant, release);
    assert.equal(report.gates[0]?.verdict, 'fail');
    assert.deepEqual([report.auto_rolled_back, report.release_state], [false, 'promoted']);
    assert.equal((await look(tenant, release)).state, 'promoted');
  });

  test('a failing gate is seen without being asked', async () => {
    const release = await canary(tenant, 50, { gates: [errorRate(0.5, 2)] });
    for (const _ of [1, 2]) {
      await run(tenant, release, 'baseline', 'completed');
      await run(tenant, release, 'candidate', 'failed');
    }
    await eventually(async () => assert.equal((await look(tenant, release)).state, 'rolled_back'));
    assert.equal((await decisionsOf(tenant, release)).at(-1)?.actor, 'gate:error_rate');
    // Nobody waits for the answer to such a rollback: shards hear of it behind its commit.
    await eventually(async () => {
      const created = await tenant.instance(await tenant.create(release.baseline_sequence_id));
      assert.equal(created.metadata.release, undefined);
    });
  });
});

describe('Promoting with inconclusive gates is 409; with failing gates it is 409 and a rollback; force is recorded as "forced"', () => {
  test('inconclusive evidence is 409, also with force, and it stays a canary', async () => {
    const release = await canary(tenant, 50, { gates: [errorRate(0.1, 1)] });
    for (const body of [undefined, {}, { force: false }, { force: true }]) {
      expectStatus(await act(tenant, release, 'promote', body), 409);
    }
    assert.equal((await look(tenant, release)).state, 'canary');
    assert.equal((await decisionsOf(tenant, release)).length, 3);
  });

  for (const force of [false, true]) {
    test(`failing evidence is 409 and rolls back (force: ${force})`, async () => {
      const release = await canary(tenant, 50, { gates: [errorRate(0.1, 1)] });
      await run(tenant, release, 'baseline', 'completed');
      await run(tenant, release, 'candidate', 'failed');
      expectStatus(await act(tenant, release, 'promote', { force }), 409);
      assert.equal((await look(tenant, release)).state, 'rolled_back');
      assert.equal((await decisionsOf(tenant, release)).at(-1)?.actor, 'gate:error_rate');
    });
  }

  test('force is noted in the decision', async () => {
    const release = await canary(tenant, 50, { gates: [errorRate(0.1, 1)] });
    await run(tenant, release, 'baseline', 'completed');
    await run(tenant, release, 'candidate', 'completed');
    await move(tenant, release, 'promote', { force: true });
    assert.match((await decisionsOf(tenant, release)).at(-1)?.reason ?? '', /forced/);
    const plain = await canary(tenant, 50);
    await move(tenant, plain, 'promote');
    assert.doesNotMatch((await decisionsOf(tenant, plain)).at(-1)?.reason ?? '', /forced/);
  });
});

describe('deleting a sequence that releases name', () => {
  const remove = async (sequence: string) => (await tenant.delete(`/sequences/${sequence}`)).status;

  for (const state of ['ready', 'canary', 'paused', 'promoted'] as const) {
    test(`is 409 on either side while one is ${state}`, async () => {
      const release = await releaseIn(tenant, state);
      assert.equal(await remove(release.baseline_sequence_id), 409);
      const reply = await tenant.delete<{ error: string }>(
        `/sequences/${release.candidate_sequence_id}`,
      );
      assert.equal(reply.status, 409);
      assert.match(reply.body.error, new RegExp(release.id));
      // The refusal lifts the block.
      await tenant.until(await tenant.create(release.baseline_sequence_id), 'completed');
    });
  }

  test('is 409 for the baseline of a draft, and done for its candidate', async () => {
    const release = await draft(tenant);
    assert.equal(await remove(release.baseline_sequence_id), 409);
    assert.equal(await remove(release.candidate_sequence_id), 204);
    expectStatus(await act(tenant, release, 'validate', { skip: true }), 200);
    assert.equal((await act(tenant, release, 'canary', { percent: 10 })).status, 404);
    assert.equal((await look(tenant, release)).state, 'ready');
  });
});
