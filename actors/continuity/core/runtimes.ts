/**
 * Runtimes: their registration, what they offer, the requirements of an execution, and the locality
 * policy of its data. A runtime is live until `expires_at`; there is no other heartbeat. Defaults are
 * filled in, so that equivalent bodies are equal; the order of lists matters.
 */

import { toUnixMs } from '../../../schema/common.js';
import {
  type Classification,
  type RuntimeKind,
  TRUST_LEVELS,
  type TrustLevel,
} from '../../../schema/continuity-words.js';
import type {
  HandoffPreview,
  PlaceExecution,
  PlacementDecision,
  RegisterRuntime,
  RuntimeCapabilities,
  LocalityPolicy as SentPolicy,
  Requirements as SentRequirements,
} from '../../../schema/handoff.js';
import { isoTime, type UnixMs } from '../../../src/base/time.js';
import { type Parsed, parsing, refuse } from '../../../src/core/parsed.js';
import { canonicalJson } from '../../../src/core/sealing/canonical-json.js';
import { parsePublicKey } from '../../../src/core/sealing/ed25519.js';

type Filled<T> = { readonly [K in keyof T]-?: NonNullable<T[K]> };
export type Requirements = Filled<SentRequirements>;

const CLASSIFICATION_DEFAULT: Classification = 'internal';

/** Absent: unconstrained. */
const BOUNDS = [
  ...['minimum_trust', 'require_offline', 'require_hardware', 'minimum_battery_percent'],
  ...['maximum_cost_microunits', 'maximum_latency_ms'],
] as const;
type Bound = (typeof BOUNDS)[number];
type SentRule = SentPolicy['rules'][number];

/** An empty list: unconstrained. */
export type LocalityRule = Filled<Omit<SentRule, Bound>> & Partial<Filled<Pick<SentRule, Bound>>>;

export interface LocalityPolicy extends Omit<SentPolicy, 'rules'> {
  readonly rules: LocalityRule[];
}

export interface PlacementTerms {
  readonly requirements: Requirements;
  readonly policy: LocalityPolicy | null;
  readonly classification: Classification;
}

export type SentTerms = Pick<
  PlaceExecution,
  'requirements' | 'policy' | 'locality_policy' | 'classification' | 'data_classification'
>;

export function placementTerms(sent: SentTerms): Parsed<PlacementTerms> {
  return parsing(() => ({
    requirements: requirementsOf(sent.requirements),
    policy:
      agreed(
        'locality_policy and policy',
        policyOf(sent.locality_policy, 'locality_policy'),
        policyOf(sent.policy, 'policy'),
      ) ?? null,
    classification:
      agreed(
        'data_classification and classification',
        sent.data_classification,
        sent.classification,
      ) ?? CLASSIFICATION_DEFAULT,
  }));
}

export function areSameTerms(a: PlacementTerms, b: PlacementTerms): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

function requirementsOf(sent: SentTerms['requirements']): Requirements {
  return {
    handlers: sent?.handlers ?? [],
    plugins: sent?.plugins ?? [],
    credentials: sent?.credentials ?? [],
    regions: sent?.regions ?? [],
    hardware: sent?.hardware ?? [],
    requires_network: sent?.requires_network ?? false,
    requires_human_ui: sent?.requires_human_ui ?? false,
    minimum_trust: sent?.minimum_trust ?? 'unverified',
  };
}

function policyOf(sent: SentTerms['policy'], name: string): LocalityPolicy | undefined {
  if (sent == null) return undefined;
  const rules = sent.rules.map(ruleOf);
  refuseConflicts(rules, `${name}.rules`);
  return { version: sent.version, rules };
}

function ruleOf(sent: SentRule): LocalityRule {
  const bounds = BOUNDS.filter((bound) => sent[bound] != null);
  return {
    classification: sent.classification,
    allowed_runtime_ids: sent.allowed_runtime_ids ?? [],
    allowed_runtime_kinds: sent.allowed_runtime_kinds ?? [],
    allowed_regions: sent.allowed_regions ?? [],
    allowed_connectivity: sent.allowed_connectivity ?? [],
    ...Object.fromEntries(bounds.map((bound) => [bound, sent[bound]])),
  };
}

/** Rules of one classification must not exclude each other. */
const ALLOWED_SETS = [
  ...['allowed_runtime_ids', 'allowed_runtime_kinds'],
  ...['allowed_regions', 'allowed_connectivity'],
] as const;

function refuseConflicts(rules: readonly LocalityRule[], name: string): void {
  for (const field of ALLOWED_SETS) {
    const sets = rules.map((rule) => new Set<string>(rule[field]));
    for (const [j, later] of rules.entries()) {
      const conflict = rules.findIndex(
        (earlier, i) =>
          i < j &&
          earlier.classification === later.classification &&
          areDisjoint(sets[i], later[field]),
      );
      if (conflict < 0) continue;
      refuse(`${name}[${j}].${field}`, `has no entry in common with ${name}[${conflict}].${field}`);
    }
  }
}

function areDisjoint(a: ReadonlySet<string> | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.size > 0 && b.length > 0 && !b.some((entry) => a.has(entry));
}

/** Both spellings may be sent if they are equal. */
function agreed<T>(names: string, first: T | null | undefined, second: T | null | undefined) {
  if (first != null && second != null && canonicalJson(first) !== canonicalJson(second)) {
    refuse(names, 'must not differ when both are sent');
  }
  return first ?? second ?? undefined;
}

/** The clock of a runtime may be ahead by this much. */
const OBSERVED_AHEAD_MS_MAX = 30_000;
const CAPABILITIES_LIFE_MS_MAX = 5 * 60_000;

export function trustRank(trust: TrustLevel): number {
  return TRUST_LEVELS.indexOf(trust);
}

export function isLive(capabilities: RuntimeCapabilities, now: UnixMs): boolean {
  const expiresMs = toUnixMs(capabilities.expires_at);
  return expiresMs !== undefined && expiresMs > now;
}

const KEPT = [
  ...['runtime_id', 'kind', 'trust', 'handlers', 'plugins', 'credentials', 'regions', 'hardware'],
  ...['connectivity', 'battery_percent', 'estimated_cost_microunits', 'estimated_latency_ms'],
  'capsule_signing_public_key',
] as const satisfies readonly (keyof RuntimeCapabilities)[];
type Kept = Pick<RuntimeCapabilities, (typeof KEPT)[number]>;

/** The stored form; the message names the invalid field. */
export function capabilitiesOf(
  sent: RegisterRuntime['capabilities'],
  now: UnixMs,
): Parsed<RuntimeCapabilities> {
  return parsing(() => {
    const refuseField = (field: string, rule: string) => refuse(`capabilities.${field}`, rule);
    const key = sent.capsule_signing_public_key ?? undefined;
    if (key !== undefined && parsePublicKey(key) === undefined) {
      const rule = 'must be an Ed25519 public key of 32 bytes in base64';
      refuseField('capsule_signing_public_key', rule);
    }
    const observedMs = Date.parse(sent.observed_at);
    const expiresMs = Date.parse(sent.expires_at);
    if (observedMs > now + OBSERVED_AHEAD_MS_MAX) {
      refuseField('observed_at', `must be at most ${OBSERVED_AHEAD_MS_MAX / 1_000} s from now`);
    }
    if (expiresMs <= now) refuseField('expires_at', 'must be in the future');
    if (expiresMs <= observedMs) refuseField('expires_at', 'must be after observed_at');
    if (expiresMs > observedMs + CAPABILITIES_LIFE_MS_MAX) {
      const minutes = CAPABILITIES_LIFE_MS_MAX / 60_000;
      refuseField('expires_at', `must be at most ${minutes} minutes after observed_at`);
    }
    const present = KEPT.filter((field) => {
      const value = sent[field] ?? [];
      return !Array.isArray(value) || value.length > 0;
    });
    return {
      ...(Object.fromEntries(present.map((field) => [field, sent[field]])) as unknown as Kept),
      offline_capable: sent.offline_capable ?? false,
      draining: sent.draining ?? false,
      observed_at: isoTime(observedMs),
      expires_at: isoTime(expiresMs),
    };
  });
}

export type Finding = HandoffPreview['findings'][number];
export type Outcome = PlacementDecision['candidates'][number]['outcome'];

export function outcomeOf(findings: readonly Finding[]): Outcome {
  if (findings.some(({ status }) => status === 'fail')) return 'deny';
  return findings.some(({ status }) => status === 'unknown') ? 'unknown' : 'allow';
}

const KINDS_WITH_PEOPLE: readonly RuntimeKind[] = ['mobile', 'desktop', 'browser'];

const NEEDED = [
  ['handlers', 'HANDLERS_MISSING'],
  ['plugins', 'PLUGINS_MISSING'],
  ['credentials', 'CREDENTIALS_MISSING'],
  ['hardware', 'HARDWARE_MISSING'],
] as const;

/** The unmet requirements, or the one finding `COMPATIBLE`. */
export function compatibilityFindings(
  offered: RuntimeCapabilities,
  required: Requirements,
  now: UnixMs,
): readonly Finding[] {
  const findings: Finding[] = [];
  const add = (status: Finding['status'], code: string, summary: string) =>
    findings.push({ code, status, summary });
  if (!isLive(offered, now)) {
    add('fail', 'CAPABILITIES_EXPIRED', `the registration ended at ${offered.expires_at}`);
  }
  if (offered.draining) add('fail', 'RUNTIME_DRAINING', 'the runtime takes nothing new');
  for (const [facts, code] of NEEDED) {
    const present = new Set(offered[facts]);
    const missing = required[facts].filter((fact) => !present.has(fact));
    if (missing.length > 0) add('fail', code, `missing ${facts}: ${missing.join(', ')}`);
  }
  if (excludesAll(required.regions, new Set(offered.regions))) {
    const regions = required.regions.join(', ');
    add('fail', 'REGION_NOT_ALLOWED', `the runtime is in none of the regions ${regions}`);
  }
  if (trustRank(offered.trust) < trustRank(required.minimum_trust)) {
    const summary = `the runtime is ${offered.trust}, required is ${required.minimum_trust}`;
    add('fail', 'TRUST_TOO_LOW', summary);
  }
  if (required.requires_human_ui && !KINDS_WITH_PEOPLE.includes(offered.kind)) {
    const summary = `a runtime of kind ${offered.kind} may have nobody at its screen`;
    add('unknown', 'HUMAN_UI_MISSING', summary);
  }
  if (required.requires_network && offered.connectivity === 'offline') {
    add('fail', 'NETWORK_UNAVAILABLE', 'the runtime is offline');
  }
  if (required.requires_network && offered.connectivity === undefined) {
    add('unknown', 'NETWORK_UNKNOWN', 'the runtime does not say how it is connected');
  }
  if (findings.length === 0) {
    add('pass', 'COMPATIBLE', 'the runtime offers everything that is required');
  }
  return findings;
}

const CODES = {
  POLICY_ALLOW: ['pass', 'the policy allows the runtime'],
  POLICY_DEFAULT_CURRENT_BOUNDARY: ['pass', 'no rule is needed for data of this classification'],
  CONFIDENTIAL_POLICY_MISSING: ['unknown', 'no rule says where confidential data may go'],
  RESTRICTED_POLICY_MISSING: ['fail', 'restricted data goes nowhere without a rule'],
  RUNTIME_ID_DENIED: ['fail', 'the policy does not allow this runtime'],
  RUNTIME_KIND_DENIED: ['fail', 'the policy does not allow this kind of runtime'],
  REGION_DENIED: ['fail', 'the policy does not allow the regions of the runtime'],
  RUNTIME_REGION_UNKNOWN: ['unknown', 'the runtime does not say in which region it is'],
  TRUST_DENIED: ['fail', 'the policy asks for more trust'],
  CONNECTIVITY_DENIED: ['fail', 'the policy does not allow how the runtime is connected'],
  RUNTIME_CONNECTIVITY_UNKNOWN: ['unknown', 'the runtime does not say how it is connected'],
  HARDWARE_DENIED: ['fail', 'the policy asks for hardware that the runtime lacks'],
  COST_DENIED: ['fail', 'the policy does not allow what the runtime costs'],
  RUNTIME_COST_UNKNOWN: ['unknown', 'the runtime does not say what it costs'],
  LATENCY_DENIED: ['fail', 'the policy does not allow the latency of the runtime'],
  RUNTIME_LATENCY_UNKNOWN: ['unknown', 'the runtime does not say its latency'],
  BATTERY_DENIED: ['fail', 'the policy asks for a fuller battery'],
  RUNTIME_BATTERY_UNKNOWN: ['unknown', 'the runtime does not say how full its battery is'],
} as const satisfies Record<string, readonly [Finding['status'], string]>;
type LocalityCode = keyof typeof CODES;

const WITHOUT_RULE: Readonly<Record<Classification, LocalityCode>> = {
  public: 'POLICY_DEFAULT_CURRENT_BOUNDARY',
  internal: 'POLICY_DEFAULT_CURRENT_BOUNDARY',
  confidential: 'CONFIDENTIAL_POLICY_MISSING',
  restricted: 'RESTRICTED_POLICY_MISSING',
};

/** Never empty. All rules of the classification apply, and each code is reported once. */
export function localityFindings(
  offered: RuntimeCapabilities,
  classification: Classification,
  policy: LocalityPolicy | null,
): readonly Finding[] {
  const rules = policy?.rules.filter((rule) => rule.classification === classification) ?? [];
  if (rules.length === 0) return [findingOf(WITHOUT_RULE[classification])];
  // A policy may have hundreds of rules, and a runtime hundreds of facts.
  const regions = new Set(offered.regions);
  const hardware = new Set(offered.hardware);
  const codes = new Set(rules.flatMap((rule) => ruleCodes(offered, regions, hardware, rule)));
  return codes.size === 0 ? [findingOf('POLICY_ALLOW')] : [...codes].map(findingOf);
}

function findingOf(code: LocalityCode): Finding {
  const [status, summary] = CODES[code];
  return { code, status, summary };
}

function ruleCodes(
  offered: RuntimeCapabilities,
  regions: ReadonlySet<string>,
  hardware: ReadonlySet<string>,
  rule: LocalityRule,
): LocalityCode[] {
  const { trust, offline_capable, connectivity, battery_percent } = offered;
  const { estimated_cost_microunits: cost, estimated_latency_ms: latency } = offered;
  const { allowed_regions, allowed_connectivity, require_hardware } = rule;
  const { minimum_trust = trust, require_offline = offline_capable } = rule;
  const { minimum_battery_percent: charge, maximum_cost_microunits, maximum_latency_ms } = rule;
  const applies: Partial<Record<LocalityCode, boolean>> = {
    RUNTIME_ID_DENIED: excludes(rule.allowed_runtime_ids, offered.runtime_id),
    RUNTIME_KIND_DENIED: excludes(rule.allowed_runtime_kinds, offered.kind),
    RUNTIME_REGION_UNKNOWN: allowed_regions.length > 0 && regions.size === 0,
    REGION_DENIED: regions.size > 0 && excludesAll(allowed_regions, regions),
    CONNECTIVITY_DENIED:
      offline_capable !== require_offline || excludes(allowed_connectivity, connectivity),
    RUNTIME_CONNECTIVITY_UNKNOWN: allowed_connectivity.length > 0 && connectivity === undefined,
    TRUST_DENIED: trustRank(trust) < trustRank(minimum_trust),
    HARDWARE_DENIED: require_hardware !== undefined && !hardware.has(require_hardware),
    COST_DENIED: exceeds(cost, maximum_cost_microunits),
    RUNTIME_COST_UNKNOWN: isUnknown(cost, maximum_cost_microunits),
    LATENCY_DENIED: exceeds(latency, maximum_latency_ms),
    RUNTIME_LATENCY_UNKNOWN: isUnknown(latency, maximum_latency_ms),
    BATTERY_DENIED: exceeds(charge, battery_percent),
    RUNTIME_BATTERY_UNKNOWN: isUnknown(battery_percent, charge),
  };
  const codes = Object.keys(applies) as LocalityCode[];
  return codes.filter((code) => applies[code] === true);
}

/** An empty list allows everything. */
function excludes(allowed: readonly string[], value: string | undefined): boolean {
  return value !== undefined && allowed.length > 0 && !allowed.includes(value);
}

function excludesAll(allowed: readonly string[], values: ReadonlySet<string>): boolean {
  return allowed.length > 0 && !allowed.some((one) => values.has(one));
}

/** An absent bound allows everything. */
function exceeds(value: number | undefined, most: number | undefined): boolean {
  return value !== undefined && most !== undefined && value > most;
}

function isUnknown(value: number | undefined, bound: number | undefined): boolean {
  return value === undefined && bound !== undefined;
}
