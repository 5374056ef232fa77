/** What a runtime may say of itself, and what may be asked of one. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLive } from '../../src/core/continuity/capabilities.js';
import { areSameTerms } from '../../src/core/continuity/requirements.js';
import type { JsonObject, JsonValue } from '../../src/core/json.js';
import { acceptedTerms, takenCapabilities, takenTerms } from '../helpers/continuity-bodies.js';
import { at, NOW } from '../helpers/continuity-facts.js';

const RUNTIME = '0198c0de-0000-7000-8000-000000000001';
const OTHER = '0198c0de-0000-7000-8000-000000000002';

const CAPABILITIES: JsonObject = {
  runtime_id: RUNTIME,
  kind: 'server',
  trust: 'registered',
  observed_at: at(0),
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
  assert.deepEqual(result, {
    ok: true,
    value: { ...CAPABILITIES, regions: ['eu'], offline_capable: false, draining: false },
  });
});

test('everything that a runtime may say is kept', () => {
  const all = {
    ...CAPABILITIES,
    handlers: ['a'],
    plugins: ['b'],
    credentials: ['c'],
    regions: ['d'],
    hardware: ['e'],
    offline_capable: true,
    draining: true,
    connectivity: 'wifi',
    battery_percent: 100,
    estimated_cost_microunits: 0,
    estimated_latency_ms: 12,
    capsule_signing_public_key: Buffer.from(`58${'66'.repeat(31)}`, 'hex').toString('base64'),
  };
  assert.deepEqual(register({ ...all, unknown: 1 }), { ok: true, value: all });
});

test('ids are taken in lower case and times in UTC', () => {
  const result = register({
    runtime_id: RUNTIME.toUpperCase(),
    expires_at: '2026-01-01T14:01:00+02:00',
  });
  assert.ok(result.ok);
  assert.equal(result.value.runtime_id, RUNTIME);
  assert.equal(result.value.expires_at, at(60_000));
});

test('what must be there is required', () => {
  for (const field of ['runtime_id', 'kind', 'trust', 'observed_at', 'expires_at']) {
    assert.equal(refusedField({ [field]: null }), field);
    assert.equal(refusedField({ [field]: 'else' }), field);
  }
  assert.ok(!takenCapabilities([], NOW).ok);
});

test('nobody registers as signed or attested', () => {
  assert.equal(refusedField({ trust: 'signed' }), 'trust');
  assert.equal(refusedField({ trust: 'attested' }), 'trust');
  assert.ok(register({ trust: 'unverified' }).ok);
});

test('lists have at most 256 entries that say something in at most 256 bytes', () => {
  for (const list of ['handlers', 'plugins', 'credentials', 'regions', 'hardware']) {
    assert.ok(register({ [list]: facts(256) }).ok);
    assert.ok(register({ [list]: ['é'.repeat(128)] }).ok);
    assert.equal(refusedField({ [list]: facts(257) }), list);
    assert.equal(refusedField({ [list]: ['a', 'é'.repeat(129)] }), `${list}[1]`);
    assert.equal(refusedField({ [list]: [' \t'] }), `${list}[0]`);
    assert.equal(refusedField({ [list]: [1] }), `${list}[0]`);
    assert.equal(refusedField({ [list]: 'a' }), list);
  }
});

test('numbers have their ranges, and flags and words are what they are', () => {
  assert.ok(register({ battery_percent: 0 }).ok);
  assert.equal(refusedField({ battery_percent: 101 }), 'battery_percent');
  assert.equal(refusedField({ battery_percent: 1.5 }), 'battery_percent');
  const above = register({ battery_percent: 101 });
  const message = 'capabilities.battery_percent must be <= 100';
  assert.deepEqual(above, { ok: false, message });
  assert.equal(refusedField({ estimated_cost_microunits: -1 }), 'estimated_cost_microunits');
  assert.equal(refusedField({ estimated_latency_ms: '1' }), 'estimated_latency_ms');
  assert.equal(refusedField({ draining: 1 }), 'draining');
  assert.equal(refusedField({ offline_capable: 'yes' }), 'offline_capable');
  assert.equal(refusedField({ connectivity: 'satellite' }), 'connectivity');
});

test('a signing key is a point of Ed25519 in base64', () => {
  const field = 'capsule_signing_public_key';
  for (const bytes of [Buffer.alloc(31, 1), Buffer.from(`02${'00'.repeat(31)}`, 'hex')]) {
    assert.equal(refusedField({ [field]: bytes.toString('base64') }), field);
  }
  assert.equal(refusedField({ [field]: 'x' }), field);
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

test('a runtime is live exactly until it expires', () => {
  const result = register({});
  assert.ok(result.ok);
  assert.ok(isLive(result.value, NOW + 59_999));
  assert.ok(!isLive(result.value, NOW + 60_000));
});

test('requirements have defaults and limits', () => {
  assert.deepEqual(acceptedTerms({}), acceptedTerms({ requirements: { handlers: [] } }));
  const named = { handlers: ['a'], minimum_trust: 'signed', unknown: 1 };
  assert.deepEqual(acceptedTerms({ requirements: named }).requirements, {
    handlers: ['a'],
    plugins: [],
    credentials: [],
    regions: [],
    hardware: [],
    requires_network: false,
    requires_human_ui: false,
    minimum_trust: 'signed',
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
  assert.deepEqual(acceptedTerms({ policy: { version: 2, rules: [] } }).policy, {
    version: 2,
    rules: [],
  });
  for (const policy of [{}, { version: 0, rules: [] }, { version: 1 }, { rules: [] }, []]) {
    assert.ok(!takenTerms({ policy }).ok, JSON.stringify(policy));
  }
  assert.match(policyRefusal(...Array<JsonValue>(257).fill(rule({}))) ?? '', /^rules must have/);
  assert.equal(policyRefusal(...Array<JsonValue>(256).fill(rule({}))), undefined);
});

test('everything that a rule may say is kept', () => {
  const full = {
    classification: 'restricted',
    allowed_runtime_ids: [RUNTIME],
    allowed_runtime_kinds: ['edge', 'server'],
    allowed_regions: ['eu'],
    minimum_trust: 'registered',
    require_offline: false,
    require_hardware: 'gpu',
    allowed_connectivity: ['wifi'],
    minimum_battery_percent: 0,
    maximum_cost_microunits: 5,
    maximum_latency_ms: 6,
  };
  const policy = { version: 1, rules: [full] };
  assert.deepEqual(acceptedTerms({ policy }).policy, policy);
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
    assert.equal(
      conflict,
      `rules[2].${field} has no entry in common with locality_policy.rules[0].${field}`,
    );
    assert.equal(policyRefusal(rule({ [field]: [a] }), rule({ [field]: [b, a] })), undefined);
    assert.equal(policyRefusal(rule({ [field]: [a] }), rule({ [field]: [] })), undefined);
    assert.equal(policyRefusal(rule({ [field]: [] }), rule({ [field]: [a] })), undefined);
    const other = rule({ [field]: [b], classification: 'public' });
    assert.equal(policyRefusal(rule({ [field]: [a] }), other), undefined);
  }
});

test('terms are equal as parsed values: defaults count, the order of lists too', () => {
  const base = acceptedTerms({});
  const spelled = { requirements: { handlers: [], requires_network: false }, policy: null };
  assert.ok(areSameTerms(base, acceptedTerms({ ...spelled, classification: 'internal' })));
  const ab = acceptedTerms({ requirements: { handlers: ['a', 'b'] } });
  assert.ok(!areSameTerms(ab, acceptedTerms({ requirements: { handlers: ['b', 'a'] } })));
  assert.ok(!areSameTerms(base, acceptedTerms({ classification: 'public' })));
  assert.ok(!areSameTerms(base, acceptedTerms({ policy: { version: 1, rules: [] } })));
});

test('both spellings of policy and classification are read', () => {
  const policy = { version: 1, rules: [rule({ allowed_regions: ['eu'] })] };
  const long = acceptedTerms({ data_classification: 'public', locality_policy: policy });
  const short = acceptedTerms({ classification: 'public', policy });
  assert.ok(areSameTerms(long, short));
  assert.equal(long.classification, 'public');
  assert.equal(long.policy?.rules.length, 1);
});

test('both spellings at once must say the same', () => {
  const policy = { version: 1, rules: [rule({})] };
  const same = { version: 1, rules: [rule({ allowed_regions: [] })] };
  assert.ok(
    areSameTerms(acceptedTerms({ policy, locality_policy: same }), acceptedTerms({ policy })),
  );
  assert.ok(
    areSameTerms(acceptedTerms({ policy, locality_policy: null }), acceptedTerms({ policy })),
  );
  for (const body of [
    { policy, locality_policy: { version: 2, rules: [] } },
    { classification: 'public', data_classification: 'internal' },
  ]) {
    const result = takenTerms(body);
    assert.ok(!result.ok && /must not differ/.test(result.message));
  }
});

test('a refusal names the spelling that was sent', () => {
  for (const field of ['policy', 'locality_policy', 'classification', 'data_classification']) {
    const result = takenTerms({ [field]: 'x' });
    assert.ok(!result.ok && result.message.startsWith(`${field} `), field);
  }
});
