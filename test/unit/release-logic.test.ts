/**
 * The logic of releases: their moves, the verdicts of gates, routes, and the side of a canary.
 *
 * Cost: 2 s, since it draws the shares of thousands of keys.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  canaryReason,
  findVerdict,
  gateActor,
  gateReason,
  judge,
  promotionReason,
  runsToJudge,
  validationReason,
  verdictOf,
} from '../../actors/release/core/gates.js';
import {
  bucketOf,
  cohortSeed,
  RouteTable,
  type RoutingRow,
} from '../../actors/release/core/routes.js';
import type { EndedCounts, Gate } from '../../schema/release.js';
import type { GateMetric, GateVerdict, ReleaseState } from '../../schema/release-states.js';
import { mayMove, RELEASE_STATES } from '../../schema/release-states.js';
import { check } from '../helpers/properties.js';
import { casesIn } from '../helpers/table.js';

const LEGAL: Readonly<Record<ReleaseState, readonly ReleaseState[]>> = {
  draft: ['validating', 'ready', 'failed'],
  validating: ['ready', 'draft', 'failed'],
  ready: ['canary', 'failed'],
  canary: ['paused', 'promoted', 'rolled_back'],
  paused: ['canary', 'rolled_back'],
  promoted: [],
  rolled_back: [],
  failed: [],
};

test('a release makes the moves that are listed, and no other', () => {
  for (const from of RELEASE_STATES) {
    const legal = RELEASE_STATES.filter((to) => mayMove(from, to));
    assert.deepEqual(legal.toSorted(), LEGAL[from].toSorted(), from);
  }
});

describe('what decisions say', () => {
  const gate = { metric: 'error_rate', max_regression: 0.1, min_sample: 1 } as const;
  const judgement = { gate, verdict: 'fail' } as const;
  const evidence = {
    baseline: { total: 8, completed: 6, failed: 2, cancelled: 0 },
    candidate: { total: 4, completed: 1, failed: 3, cancelled: 0 },
    gates: [judgement],
  };

  test('a canary tells its percentage, a promotion whether it was forced, a gate its rates, a validation its counts', () => {
    assert.match(canaryReason(20), /\b20%/);
    assert.match(promotionReason(true, evidence), /forced/);
    assert.doesNotMatch(promotionReason(false, evidence), /forced/);
    assert.match(promotionReason(false, { ...evidence, gates: [] }), /no gates/);
    assert.equal(
      gateReason(judgement, evidence),
      'error_rate of the candidate is 0.75 (3 of 4), of the baseline 0.25 (2 of 8); it may be higher by 0.1',
    );
    assert.equal(gateActor(judgement), 'gate:error_rate');
    const counts = { replayed: 9, matches: 4, diverged: 3, inconclusive: 2, divergences: [] };
    assert.equal(validationReason(counts), '9 replayed: 4 matched, 3 diverged, 2 inconclusive');
  });
});

/** As `failed/total`, or with the cancelled ones as `failed+cancelled/total`. */
function counts(text: string): EndedCounts {
  const [ended = '', total = ''] = text.split('/');
  const [failed = 0, cancelled = 0] = ended.split('+').map(Number);
  return { total: Number(total), completed: Number(total) - failed - cancelled, failed, cancelled };
}

function gateOf(
  max_regression: number,
  min_sample: number,
  metric: GateMetric = 'error_rate',
): Gate {
  return { metric, max_regression, min_sample };
}

describe('Gates: equality passes; a verdict needs min_sample on both sides, and more than zero; cancel_rate ignores failures', () => {
  const CASES: readonly (readonly [
    what: string,
    gate: Gate,
    baseline: string,
    candidate: string,
    verdict: GateVerdict,
  ])[] = [
    ['equality passes', gateOf(0.1, 10), '1/10', '2/10', 'pass'],
    ['more than that fails', gateOf(0.1, 10), '1/10', '3/10', 'fail'],
    ['an improvement passes', gateOf(0, 10), '5/10', '0/10', 'pass'],
    ['no difference passes without a budget', gateOf(0, 10), '1/10', '2/20', 'pass'],
    ['the least difference fails without a budget', gateOf(0, 1), '1/1000', '2/1000', 'fail'],
    ['the sample exactly met is conclusive', gateOf(0, 3), '0/3', '1/3', 'fail'],
    ['one below in the baseline does not pass', gateOf(0, 3), '2/2', '0/3', 'inconclusive'],
    ['and fails as if the baseline had no errors', gateOf(0.3, 3), '2/2', '1/3', 'fail'],
    ['but not within the budget', gateOf(0.4, 3), '0/2', '1/3', 'inconclusive'],
    ['nor by cancellations', gateOf(0, 3, 'cancel_rate'), '0/2', '0+3/3', 'inconclusive'],
    ['one below in the candidate is not', gateOf(0, 3), '0/3', '2/2', 'inconclusive'],
    ['no sample is needed, but a rate is', gateOf(0, 0), '0/0', '0/0', 'inconclusive'],
    ['without any of the baseline it can fail', gateOf(0, 0), '0/0', '1/1', 'fail'],
    ['and not pass', gateOf(1, 0), '0/0', '1/1', 'inconclusive'],
    ['without any of the candidate', gateOf(0, 0), '0/1', '0/0', 'inconclusive'],
    ['one each is enough without a sample', gateOf(0, 0), '0/1', '1/1', 'fail'],
    ['the largest budget never fails', gateOf(1, 1), '0/10', '10/10', 'pass'],
    ['a budget beyond that neither', gateOf(1e308, 1), '0/10', '10/10', 'pass'],
    // As doubles, these differences are above their budgets.
    ['0.4 − 0.1 is 0.3', gateOf(0.3, 1), '1/10', '4/10', 'pass'],
    ['0.29 is 29 of 100', gateOf(0.29, 1), '0/100', '29/100', 'pass'],
    ['1e-7 is one of ten million', gateOf(1e-7, 1), '0/10000000', '1/10000000', 'pass'],
    ['and less than two of them', gateOf(1e-7, 1), '0/10000000', '2/10000000', 'fail'],
    ['the least budget there is', gateOf(5e-324, 1), '0/10', '1/10', 'fail'],
  ];
  for (const [what, gate, baseline, candidate, verdict] of CASES) {
    test(`${what}: ${baseline} → ${candidate} within ${gate.max_regression} is ${verdict}`, () => {
      assert.equal(verdictOf(gate, counts(baseline), counts(candidate)), verdict);
    });
  }
});

describe('the evidence', () => {
  const versions = { baseline_sequence_id: 'b', candidate_sequence_id: 'c' };
  const outcome = (sequence_id: string, state: string, instances: number, is_earlier = false) => {
    return { sequence_id, state, instances, is_earlier };
  };

  test('counts by version and state, and nothing of other versions', () => {
    const gates = [gateOf(0.5, 1, 'cancel_rate'), gateOf(0.1, 1)];
    const evidence = judge(gates, versions, [
      outcome('b', 'completed', 6),
      outcome('b', 'failed', 2),
      outcome('c', 'failed', 3),
      outcome('c', 'cancelled', 1),
      outcome('d', 'failed', 100),
    ]);
    assert.deepEqual(evidence, {
      baseline: { total: 8, completed: 6, failed: 2, cancelled: 0 },
      candidate: { total: 4, completed: 0, failed: 3, cancelled: 1 },
      gates: [
        { gate: gates[0], baseline_rate: 0, candidate_rate: 0.25, verdict: 'pass' },
        { gate: gates[1], baseline_rate: 0.25, candidate_rate: 0.75, verdict: 'fail' },
      ],
    });
    assert.equal(findVerdict(evidence, 'fail')?.gate, gates[1]);
    assert.equal(findVerdict(evidence, 'inconclusive'), undefined);
  });

  test('compares with older runs where a gate has too few newer ones, and there only', () => {
    const gates = [gateOf(0.5, 3), gateOf(0.5, 1)];
    const evidence = judge(gates, versions, [
      outcome('b', 'failed', 1),
      outcome('c', 'completed', 3),
      outcome('b', 'completed', 3, true),
    ]);
    assert.deepEqual(evidence, {
      baseline: { total: 1, completed: 0, failed: 1, cancelled: 0 },
      baseline_history: { total: 3, completed: 3, failed: 0, cancelled: 0 },
      candidate: { total: 3, completed: 3, failed: 0, cancelled: 0 },
      gates: [
        { gate: gates[0], baseline_rate: 0.25, candidate_rate: 0, verdict: 'pass' },
        { gate: gates[1], baseline_rate: 1, candidate_rate: 0, verdict: 'pass' },
      ],
    });
    const begun = {
      baseline_sequence_id: 'b',
      canary_started_at: null,
      created_at: '2026-01-01T00:00:00Z',
    };
    const samples = [gates, [], [gateOf(0, 0)]].map((some) =>
      runsToJudge({ ...begun, gates: some }),
    );
    assert.deepEqual(
      samples.map(({ sample }) => sample),
      [3, 0, 1],
    );
  });

  test('has a rate for each version that has any, also when it is inconclusive', () => {
    const gate = gateOf(0, 5);
    const { gates } = judge([gate], versions, [outcome('c', 'failed', 1)]);
    assert.deepEqual(gates, [{ gate, candidate_rate: 1, verdict: 'inconclusive' }]);
    assert.deepEqual(judge([], versions, []).gates, []);
  });
});

const TENANT = 'tenant';

/** A release id for each number. */
const id = (number: number): string =>
  `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

function promoted(number: number, from: string, to: string, more: Partial<RoutingRow> = {}) {
  const at = new Date(Date.UTC(2026, 0, 1, 0, 0, number)).toISOString();
  return {
    ...{ id: id(number), tenant_id: TENANT, baseline_sequence_id: from, candidate_sequence_id: to },
    ...{ state: 'promoted', canary_percent: 20, created_at: at, updated_at: at },
    is_deprecated: false as boolean,
    ...more,
  } satisfies RoutingRow;
}

function canary(number: number, from: string, to: string, percent: number): RoutingRow {
  return { ...promoted(number, from, to), state: 'canary', canary_percent: percent };
}

function rowOf(text: string): RoutingRow {
  const [, number, from = '', kind, to = '', rest = ''] =
    /^(\d) (\w+)([>~])(\w+) ?(.*)$/.exec(text) ?? [];
  const [percent, deprecated] = rest.split(' ');
  if (kind === '~') {
    const is_deprecated = deprecated === 'deprecated';
    return { ...canary(Number(number), from, to, Number(percent)), is_deprecated };
  }
  const later = rest === 'in 2027' ? { updated_at: '2027-01-01T00:00:00.000Z' } : {};
  return promoted(Number(number), from, to, { ...later, is_deprecated: rest === 'deprecated' });
}

/** As `release>sequence` or `release=sequence`, for the candidate and the baseline. */
function route(rows: readonly RoutingRow[], from: string, key = 'a key', tenant = TENANT): string {
  const taken = new RouteTable(rows).route(from, tenant, () => key);
  if (taken === undefined) return 'none';
  const number = Number(taken.releaseId.slice(-12));
  return `${number}${taken.variant === 'candidate' ? '>' : '='}${taken.sequenceId}`;
}

describe('a table of routes', () => {
  // `1 v1>v2`: release 1 has promoted v2; `1 v1~v2 50`: it is a canary of half.
  for (const [title = '', releases = '', from = '', expected] of casesIn(`
has no route without releases                              |                                    | v1 | none
follows a promoted release                                 | 1 v1>v2                            | v1 | 1>v2
leaves the candidate alone                                 | 1 v1>v2                            | v2 | none
leaves other sequences alone                               | 1 v1>v2                            | x  | none
does not follow to a deprecated version                    | 1 v1>v2 deprecated                 | v1 | none
follows through a deprecated version to what came after it | 1 v1>v2 deprecated, 2 v2>v3        | v1 | 2>v3
stops before a deprecated version                          | 1 v1>v2, 2 v2>v3 deprecated        | v1 | 1>v2
splits nothing to a deprecated version                     | 1 v1~v2 100 deprecated             | v1 | none
gives a canary of all to the candidate                     | 1 v1~v2 100                        | v1 | 1>v2
stamps the baseline of a canary too                        | 1 v1~v2 0                          | v1 | 1=v1
follows promotions one after the other, and names the last | 1 v1>v2, 2 v2>v3                   | v1 | 2>v3
splits behind a promotion                                  | 1 v1>v2, 2 v2~v3 0                 | v1 | 2=v2
gives the candidate of a canary behind a promotion         | 1 v1>v2, 2 v2~v3 100               | v1 | 2>v3
ends at a canary, whatever is behind it                    | 1 v1~v2 100, 2 v2>v3               | v1 | 1>v2
lets the newest of two releases win                        | 2 v1~v3 100, 1 v1~v2 100           | v1 | 2>v3
goes back by a later promotion                             | 1 v1>v2, 2 v2>v1                   | v2 | 2>v1
ends a circle at its oldest promotion                      | 1 v1>v2, 2 v2>v1                   | v1 | none
takes the time of the promotion, not that of the creation  | 1 v1>v2 in 2027, 2 v2>v1           | v1 | 1>v2
leads into what is left of a circle                        | 1 v1>v2, 2 v2>v3, 3 v3>v1, 4 v0>v2 | v0 | 3>v1
may split to where a promotion came from                   | 1 v1>v2, 2 v2~v1 100               | v1 | 2>v1
`)) {
    test(title, () => {
      const rows = releases.split(', ').flatMap((one) => (one === '' ? [] : rowOf(one)));
      assert.equal(route(rows, from), expected);
      assert.equal(route(rows.reverse(), from), expected, 'whatever the order of the rows');
    });
  }

  test('concerns no other tenant, and asks for the key only where it decides', () => {
    assert.equal(route([promoted(1, 'v1', 'v2')], 'v1', 'a key', 'another'), 'none');
    const never = () => assert.fail('the key was asked for');
    const rows = [promoted(1, 'v1', 'v2'), canary(2, 'w1', 'w2', 100), canary(3, 'x1', 'x2', 0)];
    const table = new RouteTable(rows);
    for (const from of ['v1', 'w1', 'x1', 'none']) table.route(from, TENANT, never);
  });
});

const NIL = '00000000-0000-0000-0000-000000000000';
const SOME = '01890a5d-ac96-774b-bcce-b302099a8057';

const bucket = (release: string, key: string): number => bucketOf(cohortSeed(release), key);

/** The variant that a canary at this percentage gives the key. */
function variant(release: string, percent: number, key: string): string | undefined {
  const table = new RouteTable([{ ...canary(1, 'v1', 'v2', percent), id: release }]);
  return table.route('v1', TENANT, () => key)?.variant;
}

const KEYS = Array.from({ length: 10_000 }, (_, at) => `customer-${at}`);
const releaseIds = fc.uuid();
const oddKeys = fc.constantFrom('', 'ключ-1', '🚀', 'x'.repeat(10_000));
const keys = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), oddKeys);

const VECTORS: readonly (readonly [release: string, key: string, bucket: number])[] = [
  [NIL, 'cohort', 84],
  [NIL, '', 21],
  [SOME, 'customer-42', 92],
  [SOME, 'cohort-0', 51],
  [SOME, 'ключ-1', 13],
  [SOME.toUpperCase(), 'customer-42', 92],
];
test('the bucket of a key is the one that is documented', () => {
  for (const [release, key, expected] of VECTORS) assert.equal(bucket(release, key), expected);
});

test('The assignment is deterministic for every key, proportional and monotone in the percentage: never at 0 %, always at 100 %', (t) => {
  check(t, 60, fc.tuple(releaseIds, keys), ([release, key]) => {
    const sides = Array.from({ length: 101 }, (_, percent) => variant(release, percent, key));
    assert.deepEqual([sides[0], sides[100]], ['baseline', 'candidate']);
    const first = sides.indexOf('candidate');
    assert.ok(sides.every((side, percent) => side === (percent < first ? 'baseline' : side)));
    assert.ok(sides.slice(first).every((side) => side === 'candidate'));
    assert.equal(first, bucket(release, key) + 1);
  });
  for (const percent of [1, 20, 50, 99]) {
    const share = (100 * KEYS.filter((one) => bucket(SOME, one) < percent).length) / KEYS.length;
    assert.ok(Math.abs(share - percent) < 2, `${share} of ${percent} percent`);
  }
});

test('each release is shuffled by itself', () => {
  const both = KEYS.filter((key) => bucket(NIL, key) < 50 && bucket(SOME, key) < 50);
  assert.ok(Math.abs(both.length / KEYS.length - 0.25) < 0.02, `${both.length} keys`);
});
