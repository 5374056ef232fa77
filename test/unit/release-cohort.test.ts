/** On which side of a canary a key falls. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { bucketOf, cohortSeed } from '../../src/core/releases/cohort.js';
import { RouteTable } from '../../src/core/releases/routes.js';
import { check } from '../helpers/properties.js';

const NIL = '00000000-0000-0000-0000-000000000000';
const SOME = '01890a5d-ac96-774b-bcce-b302099a8057';
const TENANT = 'tenant';

function bucket(release: string, key: string): number {
  return bucketOf(cohortSeed(release), key);
}

/** The definition word for word, with whole numbers of any size. */
function oracle(release: string, key: string): number {
  let hash = 0xcbf29ce484222325n;
  const bytes = Buffer.concat([Buffer.from(release.replaceAll('-', ''), 'hex'), Buffer.from(key)]);
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return Number(hash % 100n);
}

/** The variant that a canary at this percentage gives the key. */
function variant(release: string, percent: number, key: string): string | undefined {
  const table = new RouteTable([
    {
      id: release,
      tenant_id: TENANT,
      baseline_sequence_id: 'v1',
      candidate_sequence_id: 'v2',
      state: 'canary',
      canary_percent: percent,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
      is_deprecated: false,
    },
  ]);
  return table.route('v1', TENANT, () => key)?.variant;
}

const releaseIds = fc.uuid();
const keys = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', 'ключ-1', '🚀', 'x'.repeat(10_000)),
);

describe('the bucket of a key', () => {
  const VECTORS: readonly (readonly [release: string, key: string, bucket: number])[] = [
    [NIL, 'cohort', 84],
    [NIL, '', 21],
    [SOME, 'customer-42', 92],
    [SOME, 'cohort-0', 51],
    [SOME, 'ключ-1', 13],
    [SOME.toUpperCase(), 'customer-42', 92],
  ];
  for (const [release, key, expected] of VECTORS) {
    test(`${release} with "${key}" is ${expected}`, () => {
      assert.equal(bucket(release, key), expected);
    });
  }

  test('is what 64-bit FNV-1a gives, for any id and key', (t) => {
    check(t, 500, fc.tuple(releaseIds, keys), ([release, key]) => {
      assert.equal(bucket(release, key), oracle(release, key));
    });
  });
});

describe('the side of a canary', () => {
  test('assignment: 0 % never, 100 % always, monotone in percent, deterministic for unicode/empty/long keys, roughly proportional', (t) => {
    check(t, 60, fc.tuple(releaseIds, keys), ([release, key]) => {
      const sides = Array.from({ length: 101 }, (_, percent) => variant(release, percent, key));
      assert.equal(sides[0], 'baseline');
      assert.equal(sides[100], 'candidate');
      const first = sides.indexOf('candidate');
      assert.ok(sides.every((side, percent) => side === (percent < first ? 'baseline' : side)));
      assert.ok(sides.slice(first).every((side) => side === 'candidate'));
      assert.equal(first, bucket(release, key) + 1);
    });
    for (const percent of [1, 20, 50, 99]) {
      const share = shareOf(SOME, percent);
      assert.ok(Math.abs(share - percent) < 2, `${share} of ${percent} percent`);
    }
  });

  test('spreads keys evenly over the buckets', () => {
    // 99 degrees of freedom: a fair spread stays below 149 in 999 of 1,000 cases; the keys are fixed.
    for (const release of [NIL, SOME]) {
      assert.ok(chiSquare(counts(release)) < 149, `${release}: ${chiSquare(counts(release))}`);
    }
  });

  test('shuffles each release by itself', () => {
    const both = Array.from({ length: KEYS }, (_, at) => `customer-${at}`).filter(
      (key) => bucket(NIL, key) < 50 && bucket(SOME, key) < 50,
    );
    assert.ok(Math.abs(both.length / KEYS - 0.25) < 0.02, `${both.length} of ${KEYS}`);
  });
});

const KEYS = 10_000;

/** How many of a fixed set of keys are in each bucket. */
function counts(release: string): number[] {
  const buckets = new Array<number>(100).fill(0);
  for (let at = 0; at < KEYS; at++) {
    const index = bucket(release, `customer-${at}`);
    buckets[index] = (buckets[index] ?? 0) + 1;
  }
  return buckets;
}

function shareOf(release: string, percent: number): number {
  const chosen = counts(release).slice(0, percent);
  return (100 * chosen.reduce((sum, count) => sum + count, 0)) / KEYS;
}

function chiSquare(buckets: readonly number[]): number {
  const expected = KEYS / buckets.length;
  return buckets.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}
