/** Whom a canary concerns, and what its gates make of those who have ended, as operators see it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Gate } from '../../schema/release.js';
import { type Tenant, useSharedApi } from '../helpers/api.js';
import { canary as canaryOf, type End, evaluate, run } from '../helpers/releases.js';
import { canary, expectedVariant, move, pair } from '../helpers/routed.js';

const api = useSharedApi();

const KEYS = [
  '',
  'ключ-1',
  '🦆',
  'k'.repeat(4_096),
  ...Array.from({ length: 120 }, (_, number) => `customer-${number}`),
];

/** The keys whose creations the candidate gets now. */
async function routed(tenant: Tenant, baseline: string, candidate: string): Promise<Set<string>> {
  const sides = await Promise.all(
    KEYS.map(async (cohort_key) => {
      const id = await tenant.create(baseline, { metadata: { cohort_key } });
      return (await tenant.instance(id)).sequence_id;
    }),
  );
  return new Set(KEYS.filter((_, at) => sides[at] === candidate));
}

test('assignment: 0 % never, 100 % always, monotone in percent, deterministic for unicode/empty/long keys, roughly proportional', async () => {
  const tenant = api.tenant();
  const [baseline, candidate] = await pair(tenant);
  const look = () => routed(tenant, baseline, candidate);
  const release = await canary(tenant, baseline, candidate, 20);
  const few = await look();
  assert.deepEqual(await look(), few);
  const expected = KEYS.filter((key) => expectedVariant(release, key, 20) === 'candidate');
  assert.deepEqual([...few], expected);
  // No canary of 0 % is taken: while it is paused, none is routed.
  await move(tenant, release, 'pause');
  assert.equal((await look()).size, 0);
  await move(tenant, release, 'canary', { percent: 60 });
  const many = await look();
  assert.ok([...few].every((key) => many.has(key)));
  assert.ok(few.size < KEYS.length / 2 && many.size > KEYS.length / 3, `${few.size}, ${many.size}`);
  await move(tenant, release, 'pause');
  await move(tenant, release, 'canary', { percent: 100 });
  assert.equal((await look()).size, KEYS.length);
});

/** The verdict on the gate once these have ended on either side. */
async function verdict(
  gate: Gate,
  ended: Readonly<Record<'baseline' | 'candidate', readonly End[]>>,
): Promise<string | undefined> {
  const tenant = api.tenant();
  const release = await canaryOf(tenant, 50, { gates: [gate] });
  for (const variant of ['baseline', 'candidate'] as const) {
    for (const end of ended[variant]) await run(tenant, release, variant, end);
  }
  return (await evaluate(tenant, release)).gates[0]?.verdict;
}

test('gate arithmetic: equality passes, sample exactly met is conclusive, one below is inconclusive on either side, min_sample 0 with zero totals inconclusive, cancel_rate ignores failures', async () => {
  const gate: Gate = { metric: 'error_rate', max_regression: 0.5, min_sample: 2 };
  const good: End[] = ['completed', 'completed'];
  const half: End[] = ['completed', 'failed'];
  const cases: readonly [Gate, End[], End[], string][] = [
    [gate, good, half, 'pass'],
    [{ ...gate, max_regression: 0.49 }, good, half, 'fail'],
    [gate, good, ['failed'], 'inconclusive'],
    [gate, ['completed'], good, 'inconclusive'],
    [gate, ['completed'], half, 'inconclusive'],
    [gate, ['completed'], ['failed', 'failed'], 'fail'],
    [{ ...gate, min_sample: 0 }, [], [], 'inconclusive'],
    [{ ...gate, min_sample: 0 }, [], ['completed'], 'inconclusive'],
    [{ ...gate, min_sample: 0 }, [], ['failed'], 'fail'],
    [{ ...gate, metric: 'cancel_rate' }, [], ['cancelled', 'cancelled'], 'inconclusive'],
    [{ ...gate, metric: 'cancel_rate', max_regression: 0 }, good, ['failed', 'failed'], 'pass'],
    [{ ...gate, metric: 'cancel_rate' }, good, ['cancelled', 'cancelled'], 'fail'],
  ];
  const verdicts = await Promise.all(
    cases.map(([one, baseline, candidate]) => verdict(one, { baseline, candidate })),
  );
  assert.deepEqual(
    verdicts,
    cases.map(([, , , expected]) => expected),
  );
});
