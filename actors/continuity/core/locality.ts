/** Whether data of a classification may go to a runtime. */

import type { Classification } from '../../../schema/continuity-words.js';
import type { RuntimeCapabilities } from '../../../schema/handoff.js';
import { negated, trustRank } from './capabilities.js';
import type { Finding } from './findings.js';
import type { LocalityPolicy, LocalityRule } from './requirements.js';

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

/** Never empty. All rules of the classification apply; each code is reported once. */
export function localityFindings(
  offered: RuntimeCapabilities,
  classification: Classification,
  policy: LocalityPolicy | null,
): readonly Finding[] {
  const rules = policy?.rules.filter((rule) => rule.classification === classification) ?? [];
  if (rules.length === 0) return [findingOf(WITHOUT_RULE[classification])];
  // Sets, because a policy may have hundreds of rules and a runtime hundreds of facts.
  const facts = { regions: new Set(offered.regions), hardware: new Set(offered.hardware) };
  const codes = new Set(rules.flatMap((rule) => ruleCodes(offered, facts, rule)));
  return codes.size === 0 ? [findingOf('POLICY_ALLOW')] : [...codes].map(findingOf);
}

function findingOf(code: LocalityCode): Finding {
  const [status, summary] = CODES[code];
  return { code, status, summary };
}

type OfferedFacts = Readonly<Record<'regions' | 'hardware', ReadonlySet<string>>>;

function ruleCodes(
  offered: RuntimeCapabilities,
  { regions, hardware }: OfferedFacts,
  rule: LocalityRule,
): LocalityCode[] {
  const codes: LocalityCode[] = [];
  if (excludes(rule.allowed_runtime_ids, offered.runtime_id)) codes.push('RUNTIME_ID_DENIED');
  if (excludes(rule.allowed_runtime_kinds, offered.kind)) codes.push('RUNTIME_KIND_DENIED');
  codes.push(...regionCodes(regions, rule), ...connectivityCodes(offered, rule));
  if (
    rule.minimum_trust !== undefined &&
    trustRank(offered.trust) < trustRank(rule.minimum_trust)
  ) {
    codes.push('TRUST_DENIED');
  }
  const { require_hardware } = rule;
  if (require_hardware !== undefined && !hardware.has(require_hardware)) {
    codes.push('HARDWARE_DENIED');
  }
  codes.push(
    ...boundCodes(offered.estimated_cost_microunits, rule.maximum_cost_microunits, 'COST'),
    ...boundCodes(offered.estimated_latency_ms, rule.maximum_latency_ms, 'LATENCY'),
    ...boundCodes(
      negated(offered.battery_percent),
      negated(rule.minimum_battery_percent),
      'BATTERY',
    ),
  );
  return codes;
}

/** An empty list allows everything. */
function excludes(allowed: readonly string[], value: string): boolean {
  return allowed.length > 0 && !allowed.includes(value);
}

function regionCodes(
  regions: ReadonlySet<string>,
  { allowed_regions }: LocalityRule,
): LocalityCode[] {
  if (allowed_regions.length === 0) return [];
  if (regions.size === 0) return ['RUNTIME_REGION_UNKNOWN'];
  return allowed_regions.some((region) => regions.has(region)) ? [] : ['REGION_DENIED'];
}

function connectivityCodes(offered: RuntimeCapabilities, rule: LocalityRule): LocalityCode[] {
  const codes: LocalityCode[] = [];
  const { require_offline, allowed_connectivity } = rule;
  if (require_offline !== undefined && offered.offline_capable !== require_offline) {
    codes.push('CONNECTIVITY_DENIED');
  }
  if (allowed_connectivity.length === 0) return codes;
  if (offered.connectivity === undefined) codes.push('RUNTIME_CONNECTIVITY_UNKNOWN');
  else if (!allowed_connectivity.includes(offered.connectivity)) codes.push('CONNECTIVITY_DENIED');
  return codes;
}

/** @param most undefined: unbounded */
function boundCodes(
  value: number | undefined,
  most: number | undefined,
  metric: 'COST' | 'LATENCY' | 'BATTERY',
): LocalityCode[] {
  if (most === undefined) return [];
  if (value === undefined) return [`RUNTIME_${metric}_UNKNOWN`];
  return value > most ? [`${metric}_DENIED`] : [];
}
