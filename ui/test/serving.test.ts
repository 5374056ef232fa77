/** Which versions new instances of a name get. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Release } from 'durable-workflow-engine-client';
import { sharesOf } from '../src/pages/sequences/serving.ts';

type Given = readonly [from: string, to: string, state: Release['state'], percent?: number];

/** Given oldest first. */
const releasesOf = (...given: readonly Given[]) =>
  given
    .map(([from, to, state, percent = 0]) => ({
      ...{ state, baseline_sequence_id: from, candidate_sequence_id: to, canary_percent: percent },
    }))
    .reverse() as Release[];

type Version = Parameters<typeof sharesOf>[0][number];

/** Newest first. */
const versionsOf = (more: Readonly<Record<string, Partial<Version>>> = {}): Version[] =>
  ['v3', 'v2', 'v1'].map((id) => ({ id, deprecated: false, hold: false, ...more[id] }));
const shares = (releases: Release[], versions = versionsOf()) =>
  Object.fromEntries([...sharesOf(versions, releases)].map(([id, { percent }]) => [id, percent]));

test('without releases all new instances get the newest version that is neither deprecated nor on hold', () => {
  assert.deepEqual(shares([]), { v3: 100 });
  const versions = versionsOf({ v3: { hold: true }, v2: { deprecated: true } });
  assert.deepEqual(shares([], versions), { v1: 100 });
  assert.deepEqual(shares([], []), {});
});

test('a canary gets its share, and what is prepared, paused or rolled back none', () => {
  assert.deepEqual(shares(releasesOf(['v2', 'v3', 'canary', 25])), { v2: 75, v3: 25 });
  for (const state of ['draft', 'ready', 'paused', 'rolled_back'] as const) {
    assert.deepEqual(shares(releasesOf(['v2', 'v3', state, 25])), { v2: 100 }, state);
  }
});

test('promotions are followed up to the first canary', () => {
  const releases = releasesOf(['v1', 'v2', 'promoted'], ['v2', 'v3', 'canary', 10]);
  assert.deepEqual(shares(releases), { v2: 90, v3: 10 });
});

test('a promotion back to an older version is the last word', () => {
  const releases = releasesOf(['v2', 'v3', 'promoted'], ['v3', 'v2', 'promoted']);
  assert.deepEqual(shares(releases), { v2: 100 });
});

test('a deprecated candidate gets nothing', () => {
  const versions = versionsOf({ v3: { deprecated: true } });
  assert.deepEqual(shares(releasesOf(['v2', 'v3', 'promoted']), versions), { v2: 100 });
  assert.deepEqual(shares(releasesOf(['v2', 'v3', 'canary', 50]), versions), { v2: 100 });
});
