/** What pages say about releases: their steps, what comes next, what gates wait for, and the lines of both versions. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  Gate,
  GateReport,
  Release,
  ReleaseDecision,
  ReleasePoint,
  ReleaseState,
} from 'durable-workflow-engine-client';
import { formatRate, gateOf, limitOf, reasonOf, samplesOf } from '../src/pages/releases/gates.ts';
import { actionsOf, sentenceOf, stepsOf } from '../src/pages/releases/life.ts';
import { instantsOf, limitLine, linesOf } from '../src/pages/releases/series.ts';
import { baselineFor, releasable } from '../src/pages/releases/versions.ts';

/** The decisions of a release that went this way. */
function decided(...states: readonly ReleaseState[]): ReleaseDecision[] {
  return states.map((to_state, at) => ({
    id: `${at}`,
    release_id: 'r',
    from_state: states[Math.max(0, at - 1)] as ReleaseState,
    to_state,
    actor: 'operator',
    reason: 'asked for',
    decided_at: `2026-01-01T00:00:0${at}.000Z`,
  }));
}

const WAYS: readonly (readonly [way: readonly ReleaseState[], steps: string])[] = [
  [['draft'], 'draft current, validating open, ready open, canary open, promoted open'],
  [
    ['draft', 'validating'],
    'draft done, validating current, ready open, canary open, promoted open',
  ],
  [['draft', 'ready'], 'draft done, validating skipped, ready current, canary open, promoted open'],
  [
    ['draft', 'validating', 'ready', 'canary', 'paused'],
    'draft done, validating done, ready done, paused current, promoted open',
  ],
  [
    ['draft', 'validating', 'ready', 'canary', 'promoted'],
    'draft done, validating done, ready done, canary done, promoted current',
  ],
  [
    ['draft', 'ready', 'canary', 'rolled_back'],
    'draft done, validating skipped, ready done, canary done, rolled_back current',
  ],
  [['draft', 'validating', 'failed'], 'draft done, validating done, failed current'],
  [
    ['draft', 'validating', 'draft'],
    'draft current, validating open, ready open, canary open, promoted open',
  ],
];

for (const [way, expected] of WAYS) {
  test(`the steps of a release that went ${way.join(' → ')}`, () => {
    const steps = stepsOf(way.at(-1) as ReleaseState, decided(...way));
    assert.equal(steps.map(({ state, mark }) => `${state} ${mark}`).join(', '), expected);
  });
}

test('a step tells when the release came to it last, and an open one tells nothing', () => {
  const steps = stepsOf('canary', decided('draft', 'ready', 'canary', 'paused', 'canary'));
  assert.deepEqual(
    steps.map(({ at }) => at?.slice(17, 19)),
    ['00', undefined, '01', '04', undefined],
  );
});

test('nothing can be done with a release that has ended', () => {
  const ended = ['promoted', 'rolled_back', 'failed'] as const;
  assert.deepEqual(ended.flatMap(actionsOf), []);
  assert.deepEqual(actionsOf('paused'), ['canary', 'rollback']);
});

const RELEASE: Release = {
  id: 'r',
  tenant_id: 't',
  namespace: 'n',
  sequence_name: 'order',
  baseline_sequence_id: 'old',
  baseline_version: 1,
  candidate_sequence_id: 'new',
  candidate_version: 2,
  state: 'canary',
  canary_percent: 20,
  in_flight_policy: 'pin',
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

const GATE: Gate = { metric: 'error_rate', max_regression: 0.05, min_sample: 20 };
const counts = (total: number) => ({ total, completed: total, failed: 0, cancelled: 0 });
type Verdict = GateReport['gates'][number]['verdict'];

function reportOf(...verdicts: readonly Verdict[]): GateReport {
  return {
    baseline: counts(30),
    candidate: counts(3),
    gates: verdicts.map((verdict) => ({ gate: GATE, verdict })),
  };
}

test('a sentence says of a canary what its gates lead to', () => {
  const told: readonly (readonly [GateReport | undefined, RegExp])[] = [
    [
      undefined,
      /^20 % of the new instances of version 1 run version 2\. The next step depends on the gates/,
    ],
    [reportOf(), /no gates: promote the release or roll it back/],
    [reportOf('pass', 'pass'), /All gates pass: the release can be promoted\.$/],
    [reportOf('pass', 'inconclusive'), /cannot be promoted yet: one gate has too few/],
    [reportOf('inconclusive', 'inconclusive'), /2 gates have too few/],
    [reportOf('inconclusive', 'fail'), /A gate fails: the release is rolled back automatically\.$/],
  ];
  for (const [report, expected] of told) assert.match(sentenceOf(RELEASE, [], report), expected);
});

test('a sentence says what comes next in every other state', () => {
  const gate = { ...(decided('canary', 'rolled_back')[1] as ReleaseDecision) };
  const told: readonly (readonly [Partial<Release>, readonly ReleaseDecision[], RegExp])[] = [
    [{ state: 'draft' }, [], /Validate the release next/],
    [{ state: 'validating' }, [], /ready when all are done/],
    [{ state: 'ready' }, [], /The release was not validated\. Start the canary next/],
    [{ state: 'paused' }, [], /All new instances run version 1\. Start the canary again/],
    [
      { state: 'promoted' },
      [],
      /^All new instances run version 2\..*To go back, deprecate version 2/,
    ],
    [{ state: 'rolled_back' }, [gate], /^All new instances run version 1\. This is final/],
    [
      { state: 'rolled_back' },
      [{ ...gate, actor: 'gate:error_rate' }],
      /The gate on the error rate failed\./,
    ],
    [{ state: 'failed' }, [{ ...gate, reason: 'no such block' }], /cannot run: no such block\./],
  ];
  for (const [changes, decisions, expected] of told) {
    assert.match(sentenceOf({ ...RELEASE, ...changes }, decisions), expected);
  }
});

test('a sentence warns of runs that diverged before the canary', () => {
  const evidence = { replayed: 5, matches: 3, diverged: 2, inconclusive: 0, divergences: [] };
  const validation_summary = { ...evidence, validated_at: '2026-01-01T00:00:00.000Z' };
  const ready: Release = { ...RELEASE, state: 'ready', validation_summary };
  assert.match(
    sentenceOf(ready, []),
    /2 of 5 replayed instances diverged: review the evidence first/,
  );
});

test('a gate counts older runs of the baseline only where it lacks newer ones', () => {
  const report = { baseline: counts(5), baseline_history: counts(15), candidate: counts(7) };
  const total = (min_sample: number) => samplesOf({ ...GATE, min_sample }, report).baseline.total;
  assert.deepEqual([total(5), total(6), total(0)], [5, 20, 5]);
});

test('a verdict says why: which side has too few, or how the rates stand to the limit', () => {
  const of = (baseline: number, candidate: number, changes: Partial<GateReport['gates'][number]>) =>
    reasonOf(
      { gate: GATE, verdict: 'inconclusive', ...changes },
      { baseline: counts(baseline), candidate: counts(candidate) },
    );
  assert.equal(of(30, 3, {}), 'Too few finished instances: candidate 3 of 20.');
  assert.equal(of(1, 3, {}), 'Too few finished instances: candidate 3 of 20, baseline 1 of 20.');
  const rates = { baseline_rate: 0.1, candidate_rate: 0.12 };
  assert.equal(of(30, 25, { ...rates, verdict: 'pass' }), '12 % is within 15 %.');
  const worse = { ...rates, candidate_rate: 0.2 };
  assert.equal(of(30, 25, { ...worse, verdict: 'fail' }), '20 % exceeds 15 %.');
  assert.match(of(0, 25, { candidate_rate: 0.2, verdict: 'fail' }), /20 % exceeds 5 %; the bas/);
});

test('rates are told to a hundredth of a percent, so that what exceeds a limit does not look like it', () => {
  const told = [0, 0.05, 0.1556, 0.159, 1].map(formatRate);
  assert.deepEqual(told, ['0 %', '5 %', '15.56 %', '15.9 %', '100 %']);
});

test('no limit is above all instances, and there is none without a baseline', () => {
  const limit = (baseline_rate?: number) =>
    limitOf({
      gate: { ...GATE, max_regression: 0.5 },
      verdict: 'pass',
      ...(baseline_rate === undefined ? {} : { baseline_rate }),
    });
  assert.deepEqual([limit(0.25), limit(0.75), limit()], [0.75, 1, undefined]);
});

test('a gate is the decimal number that was typed', () => {
  const typed = (regression: string, sample = '20') =>
    gateOf({ metric: 'error_rate', regression, sample });
  for (const [text, value] of [
    ['5', 0.05],
    ['0.7', 0.007],
    ['100', 1],
    ['0', 0],
    ['5e-1', 0.005],
  ] as const) {
    assert.deepEqual(typed(text), { metric: 'error_rate', max_regression: value, min_sample: 20 });
  }
  for (const text of ['', ' ', '-1', '0,7', 'x'])
    assert.throws(() => typed(text), RangeError, text);
  for (const text of ['', '1.5', '-1', 'x'])
    assert.throws(() => typed('5', text), RangeError, text);
});

function point(second: number, variant: ReleasePoint['variant'], rate: number): ReleasePoint {
  const at = new Date(second * 1000).toISOString();
  const base = { at, variant, ended: 1, failed: 0, cancelled: 0, cancel_rate: 0, share: 1 };
  return { ...base, error_rate: rate, duration_p50_ms: 1, duration_p95_ms: 2 };
}

test('the lines of both versions share their instants, with gaps where one has none', () => {
  const points = [point(2, 'candidate', 0.5), point(1, 'baseline', 0.1), point(2, 'baseline', 0.2)];
  const series = { since: new Date(500).toISOString(), step_secs: 1, complete: true, points };
  const instants = instantsOf(series);
  assert.deepEqual(instants, [500, 1000, 2000, 3000]);
  const lines = linesOf(series, 'error_rate');
  assert.deepEqual(
    lines.map(({ name, values }) => [name, values]),
    [
      ['Baseline', [null, 0.1, 0.2, null]],
      ['Candidate', [null, null, 0.5, null]],
    ],
  );
  assert.deepEqual(limitLine(0.3, instants).values, [0.3, 0.3, 0.3, 0.3]);
});

test('releases are made of sequences with several versions, newest first', () => {
  const sequence = (name: string, version: number, namespace = 'shop') => ({
    id: `${namespace} ${name} ${version}`,
    namespace,
    name,
    version,
    deprecated: false,
    hold: false,
  });
  const choices = releasable([
    sequence('order', 1),
    sequence('alone', 1),
    sequence('alone', 1),
    sequence('order', 3),
    sequence('order', 2, 'test'),
    sequence('order', 1, 'test'),
    sequence('cart', 10),
    sequence('cart', 9),
  ]);
  assert.deepEqual(
    choices.map(({ label, versions }) => [label, versions.map(({ version }) => version)]),
    [
      ['cart', [10, 9]],
      ['order (shop)', [3, 1]],
      ['order (test)', [2, 1]],
    ],
  );
});

test('the version that a new release leads from is the newest before its candidate that is not on hold', () => {
  const versions = [5, 4, 3].map((version) => {
    const about = { namespace: 'shop', name: 'order', version, deprecated: false };
    return { id: `${version}`, ...about, hold: version !== 3 };
  });
  const from = (candidate: string) => baselineFor(versions, candidate)?.id;
  assert.deepEqual(['5', '4', '3'].map(from), ['3', '3', '5']);
});
