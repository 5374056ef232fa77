/** What the owner of the releases writes and reads, by the real statements on a real database. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import type { ReleaseRow } from '../../actors/release/core/record.js';
import { openLoads } from '../../actors/shard/loads.js';
import { RELEASE_STATES } from '../../schema/release-states.js';
import { usePool } from '../helpers/database.js';
import { releaseRow } from '../helpers/releases.js';
import { STATEMENTS } from '../helpers/store.js';

const AT = '2026-03-01T12:00:00.000Z';
const GATE = { metric: 'error_rate', max_regression: 0.1, min_sample: 1 } as const;

const { pool } = usePool();
const loader = openLoads(pool, { shard: 0, shards: 1 });

async function put(changes: Partial<ReleaseRow> = {}): Promise<ReleaseRow> {
  const row = releaseRow(changes);
  await pool.query(STATEMENTS['release.set']!, [JSON.stringify([row])]);
  return row;
}

test('a release is read as it was written, and as it was changed', async () => {
  const row = await put();
  assert.deepEqual(await loader.release(row.id), row);
  const counts = { replayed: 1, matches: 1, diverged: 0, inconclusive: 0, divergences: [] };
  const changed: ReleaseRow = {
    ...row,
    state: 'canary',
    canary_percent: 100,
    validation_summary: { ...counts, validated_at: AT },
    canary_started_at: '2026-03-01T12:00:01.234Z',
    updated_at: '2026-03-01T12:00:01.234Z',
  };
  await put(changed);
  assert.deepEqual(await loader.release(row.id), changed);
  assert.equal(await loader.release(randomUUID()), undefined);
});

describe('a sequence that a release names', () => {
  const ofBaseline = 'draft validating ready canary paused promoted'.split(' ');
  for (const state of RELEASE_STATES) {
    const isBaselineNeeded = ofBaseline.includes(state);
    const isCandidateNeeded = isBaselineNeeded && state !== 'draft';
    test(`is needed by one in ${state}: ${isBaselineNeeded} as baseline, ${isCandidateNeeded} as candidate`, async () => {
      const { id, baseline_sequence_id, candidate_sequence_id } = await put({ state });
      const naming = { id, state };
      const seen = await loader.releaseNaming(baseline_sequence_id);
      assert.deepEqual(seen, isBaselineNeeded ? naming : undefined);
      const told = await loader.releaseNaming(candidate_sequence_id);
      assert.deepEqual(told, isCandidateNeeded ? naming : undefined);
      const isRouted = state === 'canary' || state === 'promoted';
      const found = await loader.routingRelease(baseline_sequence_id);
      assert.deepEqual(found, isRouted ? naming : undefined);
      assert.equal(await loader.routingRelease(candidate_sequence_id), undefined);
    });
  }

  test('is found behind releases that are over', async () => {
    const { baseline_sequence_id } = await put({ state: 'rolled_back' });
    await put({ state: 'failed', baseline_sequence_id });
    const { id } = await put({ state: 'paused', candidate_sequence_id: baseline_sequence_id });
    assert.deepEqual(await loader.releaseNaming(baseline_sequence_id), { id, state: 'paused' });
  });
});

test('open are validations, and canaries with gates', async () => {
  const open: string[] = [];
  for (const state of RELEASE_STATES) {
    const plain = await put({ state });
    const gated = await put({ state, gates: [GATE] });
    if (state === 'validating') open.push(plain.id, gated.id);
    if (state === 'canary') open.push(gated.id);
  }
  const found = new Set((await loader.openReleases()).map(({ id }) => id));
  const seen = open.filter((id) => !found.has(id));
  assert.deepEqual(seen, []);
  const states = new Set((await loader.openReleases()).map(({ state }) => state));
  assert.deepEqual([...states].sort(), ['canary', 'validating']);
  for (const id of found) {
    const release = await loader.release(id);
    assert.ok(release?.state === 'validating' || release?.gates.length === 1);
  }
});

test('outcomes are summed by version and state, from the given time on', async () => {
  const { id, baseline_sequence_id: baseline, candidate_sequence_id: candidate } = await put();
  const outcome = (sequence_id: string, state: string, created_at: string, release_id = id) => ({
    instance_id: randomUUID(),
    release_id,
    sequence_id,
    state,
    created_at,
  });
  const rows = [
    outcome(baseline, 'completed', AT),
    outcome(baseline, 'completed', '2026-03-01T12:00:00.001Z'),
    outcome(baseline, 'failed', AT),
    outcome(candidate, 'cancelled', '2026-03-02T12:00:00.000Z'),
    outcome(candidate, 'failed', '2026-03-01T11:59:59.999Z'),
    outcome(candidate, 'failed', AT, randomUUID()),
  ];
  await pool.query(STATEMENTS['releaseOutcome.set']!, [JSON.stringify(rows)]);
  const sums = await loader.releaseOutcomes(id, { since: AT, baseline, from: AT, sample: 3 });
  const texts = sums.map(({ sequence_id, state, instances }) => {
    return `${sequence_id === baseline ? 'baseline' : 'candidate'} ${state} ${instances}`;
  });
  assert.deepEqual(texts.sort(), [
    'baseline completed 2',
    'baseline failed 1',
    'candidate cancelled 1',
  ]);
});
