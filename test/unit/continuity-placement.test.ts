/** How runtimes are judged, scored and chosen. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RuntimeCapabilities } from '../../schema/handoff.js';
import { compatibilityFindings } from '../../src/core/continuity/compatibility.js';
import { outcomeOf } from '../../src/core/continuity/findings.js';
import { localityFindings } from '../../src/core/continuity/locality.js';
import {
  CANDIDATES_MAX,
  judge,
  liveCandidates,
  placeExecution,
  placementDecision,
  termsOf,
} from '../../src/core/continuity/placement.js';
import type { Classification } from '../../src/core/continuity/requirements.js';
import type { JsonObject } from '../../src/core/json.js';
import { acceptedTerms } from '../helpers/continuity-bodies.js';
import { runtime as anyRuntime, at, id, NOW } from '../helpers/continuity-facts.js';
import { column } from '../helpers/rows.js';

const runtime = (n: number, more: Partial<RuntimeCapabilities> = {}) =>
  anyRuntime(n, { trust: 'unverified', ...more });

/** `CODE:status` of each finding. */
function compatibility(offered: Partial<RuntimeCapabilities>, required: JsonObject = {}) {
  const { requirements } = acceptedTerms({ requirements: required });
  return compatibilityFindings(runtime(1, offered), requirements, NOW).map(
    ({ code, status, summary }) => {
      assert.notEqual(summary, '');
      return `${code}:${status}`;
    },
  );
}

test('a runtime that offers what is required is compatible', () => {
  assert.deepEqual(compatibility({}), ['COMPATIBLE:pass']);
  const all = { handlers: ['a'], plugins: ['b'], credentials: ['c'], hardware: ['d'] };
  assert.deepEqual(compatibility(all, all), ['COMPATIBLE:pass']);
});

test('each cause has its code', () => {
  assert.deepEqual(compatibility({ expires_at: at(0) }), ['CAPABILITIES_EXPIRED:fail']);
  assert.deepEqual(compatibility({ draining: true }), ['RUNTIME_DRAINING:fail']);
  for (const [facts, code] of [
    ['handlers', 'HANDLERS_MISSING:fail'],
    ['plugins', 'PLUGINS_MISSING:fail'],
    ['credentials', 'CREDENTIALS_MISSING:fail'],
    ['hardware', 'HARDWARE_MISSING:fail'],
  ] as const) {
    assert.deepEqual(compatibility({ [facts]: ['a'] }, { [facts]: ['a', 'b'] }), [code]);
    assert.deepEqual(compatibility({}, { [facts]: ['a'] }), [code]);
  }
  assert.deepEqual(compatibility({}, { minimum_trust: 'registered' }), ['TRUST_TOO_LOW:fail']);
  const registered = { trust: 'registered' } as const;
  assert.deepEqual(compatibility(registered, { minimum_trust: 'registered' }), ['COMPATIBLE:pass']);
});

test('of several required regions one is enough', () => {
  const regions = ['eu', 'us'];
  assert.deepEqual(compatibility({ regions: ['us', 'asia'] }, { regions }), ['COMPATIBLE:pass']);
  assert.deepEqual(compatibility({ regions: ['asia'] }, { regions }), ['REGION_NOT_ALLOWED:fail']);
  assert.deepEqual(compatibility({}, { regions }), ['REGION_NOT_ALLOWED:fail']);
});

test('whether there is a screen or a network may be unknown', () => {
  const needsUi = { requires_human_ui: true };
  assert.deepEqual(compatibility({ kind: 'edge' }, needsUi), ['HUMAN_UI_MISSING:unknown']);
  for (const kind of ['mobile', 'desktop', 'browser'] as const) {
    assert.deepEqual(compatibility({ kind }, needsUi), ['COMPATIBLE:pass']);
  }
  const needsNetwork = { requires_network: true };
  assert.deepEqual(compatibility({}, needsNetwork), ['NETWORK_UNKNOWN:unknown']);
  const offline = { connectivity: 'offline' } as const;
  assert.deepEqual(compatibility(offline, needsNetwork), ['NETWORK_UNAVAILABLE:fail']);
  assert.deepEqual(compatibility({ connectivity: 'metered' }, needsNetwork), ['COMPATIBLE:pass']);
});

/** The outcome and the codes for a policy of these rules, all for internal data. */
function locality(offered: Partial<RuntimeCapabilities>, ...rules: JsonObject[]): string {
  const all = rules.map((rule) => ({ classification: 'internal', ...rule }));
  const { policy } = acceptedTerms({ policy: { version: 1, rules: all } });
  const findings = localityFindings(runtime(1, offered), 'internal', policy);
  return [outcomeOf(findings), ...findings.map(({ code }) => code)].join(' ');
}

test('without a rule the classification decides', () => {
  const other = acceptedTerms({ policy: { version: 1, rules: [{ classification: 'internal' }] } });
  for (const [classification, expected] of [
    ['public', 'allow POLICY_DEFAULT_CURRENT_BOUNDARY'],
    ['confidential', 'unknown CONFIDENTIAL_POLICY_MISSING'],
    ['restricted', 'deny RESTRICTED_POLICY_MISSING'],
  ] as [Classification, string][]) {
    for (const policy of [null, other.policy]) {
      const findings = localityFindings(runtime(1), classification, policy);
      assert.equal([outcomeOf(findings), ...findings.map(({ code }) => code)].join(' '), expected);
    }
  }
  const findings = localityFindings(runtime(1), 'internal', null);
  assert.deepEqual(column(findings, 'code'), ['POLICY_DEFAULT_CURRENT_BOUNDARY']);
});

test('a rule denies, allows or does not know', () => {
  assert.equal(locality({}, {}), 'allow POLICY_ALLOW');
  assert.equal(locality({}, { allowed_runtime_ids: [id(2)] }), 'deny RUNTIME_ID_DENIED');
  assert.equal(locality({}, { allowed_runtime_ids: [id(1)] }), 'allow POLICY_ALLOW');
  assert.equal(locality({}, { allowed_runtime_kinds: ['edge'] }), 'deny RUNTIME_KIND_DENIED');
  assert.equal(locality({ regions: ['us'] }, { allowed_regions: ['eu'] }), 'deny REGION_DENIED');
  const several = { allowed_regions: ['eu', 'us'] };
  assert.equal(locality({ regions: ['us', 'asia'] }, several), 'allow POLICY_ALLOW');
  assert.equal(locality({}, { allowed_regions: ['eu'] }), 'unknown RUNTIME_REGION_UNKNOWN');
  assert.equal(locality({}, { minimum_trust: 'registered' }), 'deny TRUST_DENIED');
  const registered = { trust: 'registered' } as const;
  assert.equal(locality(registered, { minimum_trust: 'registered' }), 'allow POLICY_ALLOW');
  assert.equal(locality({}, { require_offline: true }), 'deny CONNECTIVITY_DENIED');
  const seen = locality({ offline_capable: true }, { require_offline: false });
  assert.equal(seen, 'deny CONNECTIVITY_DENIED');
  const wifi = { allowed_connectivity: ['wifi'] };
  assert.equal(locality({}, wifi), 'unknown RUNTIME_CONNECTIVITY_UNKNOWN');
  assert.equal(locality({ connectivity: 'metered' }, wifi), 'deny CONNECTIVITY_DENIED');
  assert.equal(locality({ connectivity: 'wifi' }, wifi), 'allow POLICY_ALLOW');
  assert.equal(locality({}, { require_hardware: 'gpu' }), 'deny HARDWARE_DENIED');
  assert.equal(locality({ hardware: ['gpu'] }, { require_hardware: 'gpu' }), 'allow POLICY_ALLOW');
});

test('bounds on cost, latency and battery are inclusive', () => {
  for (const [field, bound, metric, code] of [
    ['estimated_cost_microunits', 'maximum_cost_microunits', 50, 'COST'],
    ['estimated_latency_ms', 'maximum_latency_ms', 50, 'LATENCY'],
    ['battery_percent', 'minimum_battery_percent', 50, 'BATTERY'],
  ] as const) {
    const beyond = code === 'BATTERY' ? metric - 1 : metric + 1;
    assert.equal(locality({ [field]: metric }, { [bound]: metric }), 'allow POLICY_ALLOW');
    assert.equal(locality({ [field]: beyond }, { [bound]: metric }), `deny ${code}_DENIED`);
    assert.equal(locality({}, { [bound]: metric }), `unknown RUNTIME_${code}_UNKNOWN`);
  }
});

test('all rules of a classification apply together, and a denial outweighs a doubt', () => {
  assert.equal(
    locality(
      {},
      { maximum_latency_ms: 1 },
      { require_hardware: 'gpu', maximum_latency_ms: 2 },
      { classification: 'public', minimum_trust: 'attested' },
    ),
    'deny RUNTIME_LATENCY_UNKNOWN HARDWARE_DENIED',
  );
});

test('compatibility and locality come to one outcome', () => {
  const outcome = (body: JsonObject) => judge(runtime(1), acceptedTerms(body), NOW).outcome;
  assert.equal(outcome({}), 'allow');
  assert.equal(outcome({ requirements: { requires_network: true } }), 'unknown');
  assert.equal(outcome({ classification: 'confidential' }), 'unknown');
  assert.equal(outcome({ classification: 'restricted' }), 'deny');
  const both = { requirements: { handlers: ['a'] }, classification: 'confidential' };
  assert.equal(outcome(both), 'deny');
});

test('two candidates score 43 and 15', () => {
  const best = runtime(1, {
    trust: 'registered',
    offline_capable: true,
    battery_percent: 90,
    estimated_cost_microunits: 1,
    estimated_latency_ms: 1,
  });
  const worst = runtime(2, {
    battery_percent: 10,
    estimated_cost_microunits: 9,
    estimated_latency_ms: 9,
  });
  const { candidates } = placeExecution([worst, best], acceptedTerms(), id(9), NOW);
  const codes = ['COMPATIBLE', 'POLICY_DEFAULT_CURRENT_BOUNDARY'];
  assert.deepEqual(candidates, [
    {
      runtime_id: id(1),
      outcome: 'allow',
      score: 43,
      score_factors: {
        trust: 10,
        current_runtime: 0,
        offline_capable: 3,
        battery_rank: 10,
        cost_rank: 10,
        latency_rank: 10,
      },
      finding_codes: codes,
    },
    {
      runtime_id: id(2),
      outcome: 'allow',
      score: 15,
      score_factors: {
        trust: 0,
        current_runtime: 0,
        offline_capable: 0,
        battery_rank: 5,
        cost_rank: 5,
        latency_rank: 5,
      },
      finding_codes: codes,
    },
  ]);
});

test('trust counts ten a level, and the current owner five', () => {
  const scores = (['unverified', 'registered', 'signed', 'attested'] as const).map((trust, n) => {
    const placed = placeExecution([runtime(n, { trust })], acceptedTerms(), id(3), NOW);
    return placed.candidates[0]?.score;
  });
  assert.deepEqual(scores, [0, 10, 20, 35]);
});

test('ranks are over those who know the metric, and ties share the first place', () => {
  const costs = [undefined, 3, 1, 3, 7];
  const runtimes = costs.map((cost, n) =>
    runtime(n, cost === undefined ? {} : { estimated_cost_microunits: cost }),
  );
  const { candidates } = placeExecution(runtimes, acceptedTerms(), id(9), NOW);
  const ranks = new Map(candidates.map((one) => [one.runtime_id, one.score_factors.cost_rank]));
  const seen = costs.map((_, n) => ranks.get(id(n)));
  assert.deepEqual(seen, [0, 7, 10, 7, 2]);
});

test('the best that is allowed is selected, equal scores by id, none if none is allowed', () => {
  const runtimes = [runtime(3), runtime(2), runtime(1, { offline_capable: true, draining: true })];
  const placed = placeExecution(runtimes, acceptedTerms(), id(9), NOW);
  assert.deepEqual(
    placed.candidates.map((one) => [one.runtime_id, one.outcome]),
    [
      [id(1), 'deny'],
      [id(2), 'allow'],
      [id(3), 'allow'],
    ],
  );
  assert.equal(placed.selected_runtime_id, id(2));
  const restricted = placeExecution(
    runtimes,
    acceptedTerms({ classification: 'restricted' }),
    id(9),
    NOW,
  );
  assert.equal(restricted.selected_runtime_id, null);
  assert.equal(placeExecution([], acceptedTerms(), id(9), NOW).selected_runtime_id, null);
});

test('codes of a candidate are sorted, and each stands once', () => {
  const offered = runtime(1, { draining: true, expires_at: at(0) });
  const [candidate] = placeExecution([offered], acceptedTerms(), id(9), NOW).candidates;
  assert.deepEqual(candidate?.finding_codes, [
    'CAPABILITIES_EXPIRED',
    'POLICY_DEFAULT_CURRENT_BOUNDARY',
    'RUNTIME_DRAINING',
  ]);
});

test('a thousand live runtimes are judged, the most recently observed ones and the wanted one', () => {
  const runtimes = Array.from({ length: CANDIDATES_MAX + 2 }, (_, n) =>
    runtime(n, { observed_at: at(n) }),
  );
  const judged = liveCandidates(runtimes, NOW).map((one) => one.runtime_id);
  assert.equal(judged.length, CANDIDATES_MAX);
  assert.equal(judged[0], id(CANDIDATES_MAX + 1));
  assert.ok(!judged.includes(id(0)) && !judged.includes(id(1)));
  assert.ok(liveCandidates(runtimes, NOW, id(0)).some((one) => one.runtime_id === id(0)));
  assert.deepEqual(liveCandidates(runtimes, NOW + 60_000, id(0)), []);
});

test('a decision holds what it was made from', () => {
  const execution = {
    continuity_id: id(20),
    tenant_id: 't',
    owner_runtime_id: id(9),
    epoch: 4,
  };
  const asked = acceptedTerms({ policy: { version: 7, rules: [] }, classification: 'public' });
  const placement = placeExecution([runtime(1)], asked, id(9), NOW);
  const made = { id: id(30), created_at: at(0) };
  const decision = placementDecision(made, execution, asked, placement);
  assert.deepEqual(decision, {
    id: id(30),
    tenant_id: 't',
    continuity_id: id(20),
    epoch: 4,
    selected_runtime_id: id(1),
    requirements: asked.requirements,
    policy: { version: 7, rules: [] },
    classification: 'public',
    policy_version: 7,
    candidates: placement.candidates,
    created_at: at(0),
  });
  assert.deepEqual(termsOf(decision), asked);
  const free = placementDecision(made, execution, acceptedTerms(), placement);
  assert.ok(!('policy' in free));
  assert.equal(free.policy_version, null);
  assert.deepEqual(termsOf(free), acceptedTerms());
});
