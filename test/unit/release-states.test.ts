/** Every move of a release, from each state to each: those that are listed, and no other. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  canaryReason,
  gateActor,
  gateReason,
  promotionReason,
  REASONS,
  validationReason,
} from '../../src/core/releases/reasons.js';
import { mayMove, RELEASE_STATES, type ReleaseState } from '../../src/core/releases/release.js';

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

describe('the moves of a release', () => {
  for (const from of RELEASE_STATES) {
    for (const to of RELEASE_STATES) {
      const isLegal = LEGAL[from].includes(to);
      test(`${from} → ${to} is ${isLegal ? 'legal' : 'refused'}`, () => {
        assert.equal(mayMove(from, to), isLegal);
      });
    }
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

  test('a canary its percentage', () => {
    assert.match(canaryReason(20), /\b20%/);
  });

  test('a forced promotion that it was, and another one not', () => {
    assert.match(promotionReason(true, evidence), /forced/);
    assert.doesNotMatch(promotionReason(false, evidence), /forced/);
    assert.match(promotionReason(false, { ...evidence, gates: [] }), /no gates/);
  });

  test('a gate both rates and its budget', () => {
    assert.equal(
      gateReason(judgement, evidence),
      'error_rate of the candidate is 0.75 (3 of 4), of the baseline 0.25 (2 of 8); it may be higher by 0.1',
    );
    assert.equal(gateActor(judgement), 'gate:error_rate');
  });

  test('a validation its counts', () => {
    const counts = { replayed: 9, matches: 4, diverged: 3, inconclusive: 2, divergences: [] };
    const reason = '9 replayed: 4 matched, 3 diverged, 2 inconclusive';
    assert.equal(validationReason(counts), reason);
  });

  test('none of them is empty', () => {
    for (const reason of Object.values(REASONS)) assert.notEqual(reason, '');
  });
});
