/** The verdicts of gates, case by case, and against fractions that are exact. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Gate } from '../../schema/release.js';
import {
  type EndedCounts,
  findVerdict,
  judge,
  largestSample,
  verdictOf,
} from '../../src/core/releases/gates.js';
import type { GateMetric, GateVerdict } from '../../src/core/releases/release.js';
import { check } from '../helpers/properties.js';

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

describe('gate arithmetic: equality passes, sample exactly met is conclusive, one below is inconclusive on either side, min_sample 0 with zero totals inconclusive, cancel_rate ignores failures', () => {
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
    ['failures are no cancellations', gateOf(0, 1, 'cancel_rate'), '0/10', '9/10', 'pass'],
    ['cancellations are', gateOf(0.2, 1, 'cancel_rate'), '0+1/10', '0+4/10', 'fail'],
    ['and no failures', gateOf(0, 1), '0+1/10', '0+9/10', 'pass'],
    // As doubles, these differences are above their budgets.
    ['0.4 − 0.1 is 0.3', gateOf(0.3, 1), '1/10', '4/10', 'pass'],
    ['0.29 is 29 of 100', gateOf(0.29, 1), '0/100', '29/100', 'pass'],
    ['0.07 is 7 of 100', gateOf(0.07, 1), '0/100', '7/100', 'pass'],
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
  const outcome = (sequence_id: string, state: string, instances: number, is_earlier = false) => ({
    sequence_id,
    state,
    instances,
    is_earlier,
  });

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
    assert.equal(largestSample(gates), 3);
    assert.equal(largestSample([]), 0);
    assert.equal(largestSample([gateOf(0, 0)]), 1);
  });

  test('has a rate for each version that has any, also when it is inconclusive', () => {
    const gate = gateOf(0, 5);
    const { gates } = judge([gate], versions, [outcome('c', 'failed', 1)]);
    assert.deepEqual(gates, [{ gate, candidate_rate: 1, verdict: 'inconclusive' }]);
    assert.deepEqual(judge([], versions, []).gates, []);
  });
});

describe('for all counts and budgets', () => {
  const someCounts = fc
    .tuple(fc.nat(2_000), fc.nat(2_000), fc.nat(2_000))
    .map(([completed, failed, cancelled]) => {
      return { total: completed + failed + cancelled, completed, failed, cancelled };
    });
  /** In thousandths, so that fractions of integers tell the truth. */
  const someGate = fc.record({
    metric: fc.constantFrom<GateMetric>('error_rate', 'cancel_rate'),
    thousandths: fc.nat(1_100),
    min_sample: fc.nat(3_000),
  });

  test('the verdict is that of exact fractions', (t) => {
    const cases = fc.tuple(someGate, someCounts, someCounts);
    check(t, 2_000, cases, ([{ metric, thousandths, min_sample }, baseline, candidate]) => {
      const gate = gateOf(thousandths / 1_000, min_sample, metric);
      const counted = metric === 'error_rate' ? 'failed' : 'cancelled';
      const least = Math.max(1, min_sample);
      // Below 2^53: 6,000 × 6,000 × 1,000.
      const rise =
        candidate[counted] * baseline.total * 1_000 - baseline[counted] * candidate.total * 1_000;
      const budget = thousandths * baseline.total * candidate.total;
      const conclusive = rise > budget ? 'fail' : 'pass';
      const alone = candidate.failed * 1_000 > thousandths * candidate.total ? 'fail' : undefined;
      const incomparable = (metric === 'error_rate' && alone) || 'inconclusive';
      const compared = baseline.total < least ? incomparable : conclusive;
      const expected = candidate.total < least ? 'inconclusive' : compared;
      assert.equal(verdictOf(gate, baseline, candidate), expected);
    });
  });

  test('a larger budget never fails what a smaller one lets pass, nor does a better candidate', (t) => {
    const cases = fc.tuple(someGate, someCounts, someCounts, fc.nat(500));
    check(t, 500, cases, ([{ metric, thousandths, min_sample }, baseline, candidate, more]) => {
      const gate = gateOf(thousandths / 1_000, min_sample, metric);
      if (verdictOf(gate, baseline, candidate) !== 'pass') return;
      const larger = gateOf((thousandths + more) / 1_000, min_sample, metric);
      assert.equal(verdictOf(larger, baseline, candidate), 'pass');
      const { completed, total } = candidate;
      const better = { ...candidate, completed: completed + more, total: total + more };
      assert.equal(verdictOf(gate, baseline, better), 'pass');
    });
  });
});
