/** How runtimes are judged, scored and chosen, the preview of a handoff, and what stands against one. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  CANDIDATES_MAX,
  creationConflict,
  type ExportFacts,
  exportConflict,
  type HandoffRequest,
  liveCandidates,
  type PreviewFacts,
  placeExecution,
  placementDecision,
  previewHandoff,
  requestedHandoff,
  termsOf,
} from '../../actors/continuity/core/handoff.js';
import {
  areSameTerms,
  compatibilityFindings,
  localityFindings,
  outcomeOf,
} from '../../actors/continuity/core/runtimes.js';
import { familyFindings } from '../../actors/instance/core/family.js';
import type { Classification } from '../../schema/continuity-words.js';
import type { RuntimeCapabilities } from '../../schema/handoff.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { type TaskFacts, taskReceipt } from '../../src/core/effects.js';
import { column, lines } from '../helpers/columns.js';
import { acceptedTerms, takenCapabilities, takenTerms } from '../helpers/continuity-bodies.js';
import { runtime as anyRuntime, at, id, NOW } from '../helpers/continuity-facts.js';

const runtime = (n: number, more: Partial<RuntimeCapabilities> = {}) =>
  anyRuntime(n, { handlers: ['ship'], ...more });

const receipt = (more: Partial<TaskFacts> = {}) =>
  taskReceipt({
    ...{ tenant_id: 't', continuity_id: id(20), epoch: 0, instance_id: id(21), block_id: 'b' },
    ...{ attempt: 0, id: id(22), handler_name: 'ship', params: {}, state: 'completed' },
    ...{ is_reported: false, is_touched: true, output: {}, created_at: at(0), updated_at: null },
    ...more,
  });

const FACTS: PreviewFacts = {
  execution: { continuity_id: id(20), tenant_id: 't', owner_runtime_id: id(1), epoch: 2 },
  runtimes: [runtime(1), runtime(2)],
  destination_runtime_id: id(2),
  terms: acceptedTerms({ requirements: { handlers: ['ship'] } }),
  effects: [receipt()],
  obstacles: [],
  now: NOW,
  decision: { id: id(30), created_at: at(0) },
};

function preview(more: Partial<PreviewFacts> = {}) {
  const made = previewHandoff({ ...FACTS, ...more });
  assert.ok(made !== undefined);
  return made;
}

test('a destination that may take the execution is selected though another scores better', () => {
  const made = preview();
  assert.equal(made.compatible, true);
  assert.equal(made.source_runtime_id, id(1));
  assert.equal(made.placement_decision.candidates[0]?.runtime_id, id(1));
  assert.equal(made.placement_decision.selected_runtime_id, id(2));
  assert.equal(made.placement_decision_id, id(30));
  assert.equal(made.placement_decision.id, id(30));
  assert.deepEqual(column(made.findings, 'code'), ['COMPATIBLE']);
  assert.match(made.preview_sha256, /^[0-9a-f]{64}$/);
});

test('a destination that is denied is not selected, and the findings say why', () => {
  const made = preview({ runtimes: [runtime(1), runtime(2, { draining: true })] });
  assert.equal(made.compatible, false);
  assert.equal(made.placement_decision.selected_runtime_id, id(1));
  assert.deepEqual(lines(made.findings, 'code', 'status'), ['RUNTIME_DRAINING fail']);
  const rules = [{ classification: 'internal', allowed_runtime_ids: [id(1)] }];
  const denied = preview({ terms: acceptedTerms({ policy: { version: 1, rules } }) });
  assert.equal(denied.compatible, false);
  assert.deepEqual(column(denied.findings, 'code'), ['COMPATIBLE', 'RUNTIME_ID_DENIED']);
});

test('a child that is open, or a parent, keeps the execution here, and the finding says what would change that', () => {
  const waiting = { o: { 3: { b: 0, p: 'child', a: 0, c: id(40) } as const } };
  const child = familyFindings({ instance: id(21), parent: null, execution: waiting });
  const parent = familyFindings({ instance: id(21), parent: id(41), execution: { o: {} } });
  for (const [obstacles, other] of [
    [child, id(40)],
    [parent, id(41)],
  ] as const) {
    const made = preview({ obstacles });
    assert.equal(made.compatible, false);
    assert.deepEqual(lines(made.findings, 'code', 'status'), ['COMPATIBLE pass', 'KIN_STAYS fail']);
    const { summary, remedy } = made.findings[1]!;
    assert.ok(summary.includes(id(21)) && summary.includes(other), summary);
    assert.match(String(remedy), /let the child end/);
    assert.notEqual(made.preview_sha256, preview().preview_sha256);
  }
  // One that is not made yet is made where the execution goes on.
  const asked = { o: { 3: { b: 0, p: 'child', a: 0 } as const } };
  assert.deepEqual(familyFindings({ instance: id(21), parent: null, execution: asked }), []);
});

test('when the destination was seen, and what others say, makes no preview stale', () => {
  const { preview_sha256 } = preview();
  for (const runtimes of [
    [runtime(1), runtime(2, { observed_at: at(1) })],
    [runtime(1), runtime(2, { expires_at: at(60_001) })],
    [runtime(1), runtime(2), runtime(3)],
    [runtime(2)],
    [runtime(1, { draining: true }), runtime(2)],
  ]) {
    assert.equal(preview({ runtimes }).preview_sha256, preview_sha256);
  }
});

test('what nobody has taken yet, and what failed, stands in no handoff’s way', () => {
  const { preview_sha256 } = preview();
  const queued = receipt({ state: 'pending', is_touched: false });
  const failed = receipt({ state: 'failed', is_reported: true });
  const made = preview({ effects: [receipt(), queued, failed] });
  assert.deepEqual([made.compatible, made.unresolved_effects], [true, []]);
  assert.equal(made.preview_sha256, preview_sha256);
});

test('every fact that matters makes the preview stale', () => {
  const { execution } = FACTS;
  const ships = { requirements: { handlers: ['ship'] } };
  const stale: Partial<PreviewFacts>[] = [
    { execution: { ...execution, epoch: 3 } },
    { execution: { ...execution, continuity_id: id(40) } },
    { execution: { ...execution, owner_runtime_id: id(2) } },
    { runtimes: [runtime(1), runtime(2, { plugins: ['new'] })] },
    { runtimes: [runtime(1), runtime(2, { draining: true })] },
    { terms: acceptedTerms({ requirements: {} }) },
    { terms: acceptedTerms({ ...ships, classification: 'public' }) },
    { terms: acceptedTerms({ ...ships, policy: { version: 1, rules: [] } }) },
    { destination_runtime_id: id(1) },
    { effects: [receipt({ state: 'failed' })] },
  ];
  const hashes = [{}, ...stale].map((more) => preview(more).preview_sha256);
  assert.equal(new Set(hashes).size, hashes.length);
});

const STORED = preview();
const REQUEST: HandoffRequest = {
  preview_sha256: STORED.preview_sha256,
  destination_runtime_id: id(2),
  terms: FACTS.terms,
};

/** @param more what is different when the facts are looked at again */
function conflict(request: Partial<HandoffRequest>, more: Partial<PreviewFacts> = {}) {
  const again = previewHandoff({ ...FACTS, decision: { id: id(31), created_at: at(1) }, ...more });
  assert.ok(again !== undefined);
  return creationConflict({ ...REQUEST, ...request }, STORED.placement_decision, again);
}

test('nothing stands against a handoff whose facts are those of the preview', () => {
  assert.equal(conflict({}), undefined);
  assert.equal(conflict({ preview_sha256: STORED.preview_sha256.toUpperCase() }), undefined);
  assert.equal(conflict({ continuity_id: id(20) }), undefined);
});

test('changed facts and other terms are conflicts', () => {
  assert.match(conflict({ continuity_id: id(21) }) ?? '', /another execution/);
  assert.equal(previewHandoff({ ...FACTS, now: NOW + 60_000 }), undefined, 'no longer live');
  const draining = [runtime(1), runtime(2, { draining: true })];
  assert.match(conflict({}, { runtimes: draining }) ?? '', /not compatible/);
  assert.match(conflict({ preview_sha256: 'a'.repeat(64) }) ?? '', /stale/);
  const other = [runtime(1), runtime(2, { plugins: ['new'] })];
  assert.match(conflict({}, { runtimes: other }) ?? '', /stale/);
  const again = [runtime(1), runtime(2, { observed_at: at(1) }), runtime(3)];
  assert.equal(conflict({}, { runtimes: again }), undefined);
  assert.match(conflict({}, { execution: { ...FACTS.execution, epoch: 3 } }) ?? '', /stale/);
});

test('a hash of other terms does not make a decision fit them', () => {
  for (const other of [
    acceptedTerms({ requirements: { minimum_trust: 'registered' } }),
    acceptedTerms({ classification: 'public' }),
    acceptedTerms({ policy: { version: 1, rules: [] } }),
  ]) {
    const fresh = preview({ terms: other });
    const request = { ...REQUEST, terms: other, preview_sha256: fresh.preview_sha256 };
    const seen = creationConflict(request, STORED.placement_decision, fresh) ?? '';
    assert.match(seen, /something else/);
  }
});

const HANDOFF = requestedHandoff(id(40), REQUEST, STORED, STORED.placement_decision, NOW);

const EXPORT: ExportFacts = {
  handoff: HANDOFF,
  decision: STORED.placement_decision,
  requirements: FACTS.terms.requirements,
  destination: runtime(2),
  instanceState: 'paused',
  hasBegun: true,
  hasCheckpoint: true,
};

test('an export needs the same requirements, a destination that is allowed, and a resting instance', () => {
  const exported = (more: Partial<ExportFacts>, now = NOW) =>
    exportConflict({ ...EXPORT, ...more }, now) ?? '';
  assert.deepEqual([exported({}), exported({ instanceState: 'waiting' })], ['', '']);
  const { requirements } = acceptedTerms({ requirements: { handlers: ['more'] } });
  assert.match(exported({ requirements }), /does not fit/);
  const misfits = [{ continuity_id: id(21) }, { epoch: 3 }, { selected_runtime_id: id(1) }];
  for (const decision of misfits) {
    assert.match(exported({ decision: { ...EXPORT.decision, ...decision } }), /does not fit/);
  }
  assert.match(exported({ destination: undefined }), /no longer live/);
  assert.match(exported({ destination: runtime(2, { draining: true }) }), /no longer allowed/);
  assert.match(exported({}, NOW + 60_000), /no longer live/);
  for (const instanceState of ['running', 'scheduled', 'failed'] as const) {
    assert.equal(exported({ instanceState }), '');
    assert.match(exported({ instanceState, hasBegun: false }), /this one is/);
  }
  for (const instanceState of ['completed', 'cancelled'] as const) {
    assert.match(exported({ instanceState }), /paused or waiting .* this one is/);
  }
  assert.match(exported({ hasCheckpoint: false }), /no checkpoint/);
});

const runtimeOf = (n: number, more: Partial<RuntimeCapabilities> = {}) =>
  anyRuntime(n, { trust: 'unverified', ...more });

/** `CODE:status` of each finding. */
function compatibility(offered: Partial<RuntimeCapabilities>, required: JsonObject = {}) {
  const { requirements } = acceptedTerms({ requirements: required });
  return compatibilityFindings(runtimeOf(1, offered), requirements, NOW).map(
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
  const findings = localityFindings(runtimeOf(1, offered), 'internal', policy);
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
      const findings = localityFindings(runtimeOf(1), classification, policy);
      assert.equal([outcomeOf(findings), ...findings.map(({ code }) => code)].join(' '), expected);
    }
  }
  const findings = localityFindings(runtimeOf(1), 'internal', null);
  assert.deepEqual(column(findings, 'code'), ['POLICY_DEFAULT_CURRENT_BOUNDARY']);
});

test('a rule denies, allows or does not know', () => {
  const allow = 'allow POLICY_ALLOW';
  const wifi = { allowed_connectivity: ['wifi'] };
  const several = { allowed_regions: ['eu', 'us'] };
  const registered = { minimum_trust: 'registered' };
  const cases: [Partial<RuntimeCapabilities>, JsonObject, string][] = [
    [{}, {}, allow],
    [{}, { allowed_runtime_ids: [id(2)] }, 'deny RUNTIME_ID_DENIED'],
    [{}, { allowed_runtime_ids: [id(1)] }, allow],
    [{}, { allowed_runtime_kinds: ['edge'] }, 'deny RUNTIME_KIND_DENIED'],
    [{ regions: ['us'] }, { allowed_regions: ['eu'] }, 'deny REGION_DENIED'],
    [{ regions: ['us', 'asia'] }, several, allow],
    [{}, several, 'unknown RUNTIME_REGION_UNKNOWN'],
    [{}, registered, 'deny TRUST_DENIED'],
    [{ trust: 'registered' }, registered, allow],
    [{}, { require_offline: true }, 'deny CONNECTIVITY_DENIED'],
    [{ offline_capable: true }, { require_offline: false }, 'deny CONNECTIVITY_DENIED'],
    [{}, wifi, 'unknown RUNTIME_CONNECTIVITY_UNKNOWN'],
    [{ connectivity: 'metered' }, wifi, 'deny CONNECTIVITY_DENIED'],
    [{ connectivity: 'wifi' }, wifi, allow],
    [{}, { require_hardware: 'gpu' }, 'deny HARDWARE_DENIED'],
    [{ hardware: ['gpu'] }, { require_hardware: 'gpu' }, allow],
  ];
  for (const [offered, rule, expected] of cases) assert.equal(locality(offered, rule), expected);
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
  const gpu = { require_hardware: 'gpu', maximum_latency_ms: 2 };
  const others = { classification: 'public', minimum_trust: 'attested' };
  const seen = locality({}, { maximum_latency_ms: 1 }, gpu, others);
  assert.equal(seen, 'deny RUNTIME_LATENCY_UNKNOWN HARDWARE_DENIED');
});

test('ranks are over those who know the metric, and ties share the first place', () => {
  const costs = [undefined, 3, 1, 3, 7];
  const runtimes = costs.map((cost, n) =>
    runtimeOf(n, cost === undefined ? {} : { estimated_cost_microunits: cost }),
  );
  const { candidates } = placeExecution(runtimes, acceptedTerms(), id(9), NOW);
  const ranks = new Map(candidates.map((one) => [one.runtime_id, one.score_factors.cost_rank]));
  const seen = costs.map((_, n) => ranks.get(id(n)));
  assert.deepEqual(seen, [0, 7, 10, 7, 2]);
});

test('the best that is allowed is selected, equal scores by id, none if none is allowed', () => {
  const draining = runtimeOf(1, { offline_capable: true, draining: true });
  const runtimes = [runtimeOf(3), runtimeOf(2), draining];
  const placed = placeExecution(runtimes, acceptedTerms(), id(9), NOW);
  const outcomes = lines(placed.candidates, 'runtime_id', 'outcome');
  assert.deepEqual(outcomes, [`${id(1)} deny`, `${id(2)} allow`, `${id(3)} allow`]);
  assert.equal(placed.selected_runtime_id, id(2));
  const terms = acceptedTerms({ classification: 'restricted' });
  assert.equal(placeExecution(runtimes, terms, id(9), NOW).selected_runtime_id, null);
  assert.equal(placeExecution([], acceptedTerms(), id(9), NOW).selected_runtime_id, null);
});

test('a thousand live runtimes are judged, the most recently observed ones and the wanted one', () => {
  const runtimes = Array.from({ length: CANDIDATES_MAX + 2 }, (_, n) =>
    runtimeOf(n, { observed_at: at(n) }),
  );
  const judged = liveCandidates(runtimes, NOW).map((one) => one.runtime_id);
  assert.equal(judged.length, CANDIDATES_MAX);
  assert.equal(judged[0], id(CANDIDATES_MAX + 1));
  assert.ok(!judged.includes(id(0)) && !judged.includes(id(1)));
  assert.ok(liveCandidates(runtimes, NOW, id(0)).some((one) => one.runtime_id === id(0)));
  assert.deepEqual(liveCandidates(runtimes, NOW + 60_000, id(0)), []);
});

test('a decision holds the terms that it was made from', () => {
  const execution = { continuity_id: id(20), tenant_id: 't', owner_runtime_id: id(9), epoch: 4 };
  const policy = { version: 7, rules: [] };
  const asked = acceptedTerms({ policy, classification: 'public' });
  const placement = placeExecution([runtimeOf(1)], asked, id(9), NOW);
  const made = { id: id(30), created_at: at(0) };
  const decision = placementDecision(made, execution, asked, placement);
  assert.deepEqual(termsOf(decision), asked);
  const { selected_runtime_id, epoch, policy_version } = decision;
  assert.deepEqual([selected_runtime_id, epoch, policy_version], [id(1), 4, 7]);
  const free = placementDecision(made, execution, acceptedTerms(), placement);
  assert.ok(!('policy' in free));
  assert.equal(free.policy_version, null);
  assert.deepEqual(termsOf(free), acceptedTerms());
});

const RUNTIME = '0198c0de-0000-7000-8000-000000000001';
const OTHER = '0198c0de-0000-7000-8000-000000000002';

const CAPABILITIES: JsonObject = {
  ...{ runtime_id: RUNTIME, kind: 'server', trust: 'registered', observed_at: at(0) },
  expires_at: at(60_000),
};

const register = (more: JsonObject) => takenCapabilities({ ...CAPABILITIES, ...more }, NOW);

/** The field that is named by the refusal, without `capabilities.`. */
function refusedField(more: JsonObject): string | undefined {
  const result = register(more);
  return result.ok ? undefined : /^capabilities\.(\S+) /.exec(result.message)?.[1];
}

const facts = (count: number) => Array.from({ length: count }, (_, i) => `f${i}`);

test('defaults are filled in, and lists without entries are left out', () => {
  const result = register({ handlers: [], plugins: null, regions: ['eu'], battery_percent: null });
  const value = { ...CAPABILITIES, regions: ['eu'], offline_capable: false, draining: false };
  assert.deepEqual(result, { ok: true, value });
});

test('ids are taken in lower case and times in UTC', () => {
  const expires_at = '2026-01-01T14:01:00+02:00';
  const result = register({ runtime_id: RUNTIME.toUpperCase(), expires_at });
  assert.ok(result.ok);
  assert.equal(result.value.runtime_id, RUNTIME);
  assert.equal(result.value.expires_at, at(60_000));
});

test('nobody registers as signed or attested', () => {
  assert.equal(refusedField({ trust: 'signed' }), 'trust');
  assert.equal(refusedField({ trust: 'attested' }), 'trust');
  assert.ok(register({ trust: 'unverified' }).ok);
});

test('numbers have their ranges, flags and words are what they are, and a key is a point', () => {
  const offCurve = Buffer.from(`02${'00'.repeat(31)}`, 'hex').toString('base64');
  for (const [field, value] of [
    ['battery_percent', 101],
    ['battery_percent', 1.5],
    ['estimated_cost_microunits', -1],
    ['estimated_latency_ms', '1'],
    ['draining', 1],
    ['offline_capable', 'yes'],
    ['connectivity', 'satellite'],
    ['capsule_signing_public_key', offCurve],
  ] as const) {
    assert.equal(refusedField({ [field]: value }), field);
  }
  assert.ok(register({ battery_percent: 0 }).ok);
  const message = 'capabilities.battery_percent must be <= 100';
  assert.deepEqual(register({ battery_percent: 101 }), { ok: false, message });
});

test('a registration is observed at most 30 s ahead and lives at most five minutes', () => {
  assert.ok(register({ observed_at: at(30_000), expires_at: at(330_000) }).ok);
  assert.equal(refusedField({ observed_at: at(30_001) }), 'observed_at');
  assert.equal(refusedField({ expires_at: at(0) }), 'expires_at');
  assert.equal(refusedField({ observed_at: at(-10), expires_at: at(0) }), 'expires_at');
  assert.equal(refusedField({ observed_at: at(10), expires_at: at(10) }), 'expires_at');
  assert.equal(refusedField({ expires_at: at(300_001) }), 'expires_at');
  assert.ok(register({ observed_at: at(-299_999), expires_at: at(1) }).ok);
});

test('requirements have defaults and limits', () => {
  assert.deepEqual(acceptedTerms({}), acceptedTerms({ requirements: { handlers: [] } }));
  const named = { handlers: ['a'], minimum_trust: 'signed', unknown: 1 };
  assert.deepEqual(acceptedTerms({ requirements: named }).requirements, {
    ...{ handlers: ['a'], plugins: [], credentials: [], regions: [], hardware: [] },
    ...{ requires_network: false, requires_human_ui: false, minimum_trust: 'signed' },
  });
  assert.ok(takenTerms({ requirements: { regions: facts(64) } }).ok);
  for (const [value, field] of [
    [{ regions: facts(65) }, 'requirements.regions'],
    [{ handlers: [' '] }, 'requirements.handlers[0]'],
    [{ handlers: ['x'.repeat(257)] }, 'requirements.handlers[0]'],
    [{ requires_network: 'no' }, 'requirements.requires_network'],
    [{ minimum_trust: 'high' }, 'requirements.minimum_trust'],
    ['x', 'requirements'],
  ] as [JsonValue, string][]) {
    const result = takenTerms({ requirements: value });
    assert.ok(!result.ok && result.message.startsWith(`${field} `), field);
  }
});

/** What a policy of one rule, or of several, is refused for. */
function policyRefusal(...rules: JsonValue[]): string | undefined {
  const result = takenTerms({ locality_policy: { version: 1, rules } });
  return result.ok ? undefined : result.message.replace(/^locality_policy\./, '');
}

const rule = (more: JsonObject): JsonObject => ({ classification: 'internal', ...more });

test('a policy is absent, or has a version and rules', () => {
  assert.equal(acceptedTerms({}).policy, null);
  assert.equal(acceptedTerms({ policy: null }).policy, null);
  const none = { version: 2, rules: [] };
  assert.deepEqual(acceptedTerms({ policy: none }).policy, none);
  for (const policy of [{}, { version: 0, rules: [] }, { version: 1 }, { rules: [] }, []]) {
    assert.ok(!takenTerms({ policy }).ok, JSON.stringify(policy));
  }
  assert.match(policyRefusal(...Array<JsonValue>(257).fill(rule({}))) ?? '', /^rules must have/);
  assert.equal(policyRefusal(...Array<JsonValue>(256).fill(rule({}))), undefined);
});

test('the facts of a rule have limits', () => {
  for (const [more, field] of [
    [{ classification: null }, 'classification'],
    [{ classification: 'secret' }, 'classification'],
    [{ allowed_regions: facts(65) }, 'allowed_regions'],
    [{ allowed_regions: [''] }, 'allowed_regions[0]'],
    [{ allowed_runtime_ids: ['x'] }, 'allowed_runtime_ids[0]'],
    [{ allowed_runtime_kinds: ['toaster'] }, 'allowed_runtime_kinds[0]'],
    [{ allowed_connectivity: ['satellite'] }, 'allowed_connectivity[0]'],
    [{ require_hardware: ' ' }, 'require_hardware'],
    [{ require_hardware: 'x'.repeat(257) }, 'require_hardware'],
    [{ require_offline: 1 }, 'require_offline'],
    [{ minimum_battery_percent: 101 }, 'minimum_battery_percent'],
    [{ maximum_cost_microunits: -1 }, 'maximum_cost_microunits'],
    [{ maximum_latency_ms: 0.5 }, 'maximum_latency_ms'],
    [{ minimum_trust: 'much' }, 'minimum_trust'],
  ] as [JsonObject, string][]) {
    assert.ok(policyRefusal(rule(more))?.startsWith(`rules[0].${field} `), field);
  }
});

test('rules of one classification must leave something that is allowed', () => {
  for (const [field, a, b] of [
    ['allowed_regions', 'eu', 'us'],
    ['allowed_runtime_ids', RUNTIME, OTHER],
    ['allowed_runtime_kinds', 'server', 'edge'],
    ['allowed_connectivity', 'wifi', 'offline'],
  ] as const) {
    const conflict = policyRefusal(rule({ [field]: [a] }), rule({}), rule({ [field]: [b] }));
    const common = `no entry in common with locality_policy.rules[0].${field}`;
    assert.equal(conflict, `rules[2].${field} has ${common}`);
    assert.equal(policyRefusal(rule({ [field]: [a] }), rule({ [field]: [b, a] })), undefined);
    assert.equal(policyRefusal(rule({ [field]: [a] }), rule({ [field]: [] })), undefined);
    assert.equal(policyRefusal(rule({ [field]: [] }), rule({ [field]: [a] })), undefined);
    const other = rule({ [field]: [b], classification: 'public' });
    assert.equal(policyRefusal(rule({ [field]: [a] }), other), undefined);
  }
});

test('both spellings at once must say the same', () => {
  const policy = { version: 1, rules: [rule({})] };
  const same = { version: 1, rules: [rule({ allowed_regions: [] })] };
  for (const locality_policy of [same, null]) {
    assert.ok(areSameTerms(acceptedTerms({ policy, locality_policy }), acceptedTerms({ policy })));
  }
  for (const body of [
    { policy, locality_policy: { version: 2, rules: [] } },
    { classification: 'public', data_classification: 'internal' },
  ]) {
    const result = takenTerms(body);
    assert.ok(!result.ok && /must not differ/.test(result.message));
  }
});
