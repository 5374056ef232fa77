/**
 * What an execution asks of a runtime, and the policy on where its data may go (05 §5). Both are read
 * into values with every default filled in, so that two bodies that mean the same are the same value;
 * the order of lists matters.
 */

import { type JsonObject, type JsonValue, ownValue } from '../json.js';
import { canonicalJson } from './canonical-json.js';
import {
  CONNECTIVITIES,
  type Connectivity,
  RUNTIME_KINDS,
  type RuntimeKind,
  TRUST_LEVELS,
  type TrustLevel,
} from './capabilities.js';
import { Fields, type Parsed, parsing, refuse } from './parsed.js';

export const REQUIREMENT_FACTS_MAX = 64;
export const POLICY_RULES_MAX = 256;

export interface Requirements {
  readonly handlers: readonly string[];
  readonly plugins: readonly string[];
  readonly credentials: readonly string[];
  readonly regions: readonly string[];
  readonly hardware: readonly string[];
  readonly requires_network: boolean;
  readonly requires_human_ui: boolean;
  readonly minimum_trust: TrustLevel;
}

export const CLASSIFICATIONS = ['public', 'internal', 'confidential', 'restricted'] as const;
export type Classification = (typeof CLASSIFICATIONS)[number];
export const CLASSIFICATION_DEFAULT: Classification = 'internal';

/** A list without entries constrains nothing, and neither does what is absent. */
export interface LocalityRule {
  readonly classification: Classification;
  readonly allowed_runtime_ids: readonly string[];
  readonly allowed_runtime_kinds: readonly RuntimeKind[];
  readonly allowed_regions: readonly string[];
  readonly minimum_trust?: TrustLevel;
  readonly require_offline?: boolean;
  readonly require_hardware?: string;
  readonly allowed_connectivity: readonly Connectivity[];
  readonly minimum_battery_percent?: number;
  readonly maximum_cost_microunits?: number;
  readonly maximum_latency_ms?: number;
}

export interface LocalityPolicy {
  readonly version: number;
  readonly rules: readonly LocalityRule[];
}

/** Absent means nothing is required. */
export function parseRequirements(value: JsonValue | undefined): Parsed<Requirements> {
  return parsing(() => readRequirements(value));
}

/** Absent means there is no policy, which is null. */
export function parsePolicy(
  value: JsonValue | undefined,
  name = 'locality_policy',
): Parsed<LocalityPolicy | null> {
  return parsing(() => readPolicy(value, name));
}

/** What a preview, a handoff and a placement are asked with. */
export interface PlacementTerms {
  readonly requirements: Requirements;
  readonly policy: LocalityPolicy | null;
  readonly classification: Classification;
}

/**
 * Reads the terms of a body that may use either spelling: `classification` and `policy`, or
 * `data_classification` and `locality_policy`, or both if they say the same (05 §5).
 */
export function parsePlacementTerms(body: JsonObject): Parsed<PlacementTerms> {
  return parsing(() => ({
    requirements: readRequirements(ownValue(body, 'requirements')),
    policy: agreeing(body, ['locality_policy', 'policy'], readPolicy) ?? null,
    classification:
      agreeing(body, ['data_classification', 'classification'], readClassification) ??
      CLASSIFICATION_DEFAULT,
  }));
}

/** Equal as parsed values. */
export function areSameTerms(a: PlacementTerms, b: PlacementTerms): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

function readRequirements(value: JsonValue | undefined): Requirements {
  const fields = new Fields(value ?? {}, 'requirements');
  return {
    handlers: fields.facts('handlers', REQUIREMENT_FACTS_MAX),
    plugins: fields.facts('plugins', REQUIREMENT_FACTS_MAX),
    credentials: fields.facts('credentials', REQUIREMENT_FACTS_MAX),
    regions: fields.facts('regions', REQUIREMENT_FACTS_MAX),
    hardware: fields.facts('hardware', REQUIREMENT_FACTS_MAX),
    requires_network: fields.flag('requires_network') ?? false,
    requires_human_ui: fields.flag('requires_human_ui') ?? false,
    minimum_trust: fields.word('minimum_trust', TRUST_LEVELS) ?? 'unverified',
  };
}

function readPolicy(value: JsonValue | undefined, name: string): LocalityPolicy | null {
  if ((value ?? null) === null) return null;
  const fields = new Fields(value, name);
  const version = fields.required('version', fields.integer('version', 1));
  fields.required('rules', fields.value('rules'));
  const entries = fields.list('rules', POLICY_RULES_MAX);
  const rules = entries.map((entry, i) => readRule(new Fields(entry, fields.name(`rules[${i}]`))));
  refuseConflicts(rules, fields.name('rules'));
  return { version, rules };
}

function readRule(fields: Fields): LocalityRule {
  const minimum_trust = fields.word('minimum_trust', TRUST_LEVELS);
  const require_offline = fields.flag('require_offline');
  const require_hardware = fields.fact('require_hardware');
  const minimum_battery_percent = fields.integer('minimum_battery_percent', 0, 100);
  const maximum_cost_microunits = fields.integer('maximum_cost_microunits', 0);
  const maximum_latency_ms = fields.integer('maximum_latency_ms', 0);
  return {
    classification: fields.required('classification', readRuleClassification(fields)),
    allowed_runtime_ids: fields.uuids('allowed_runtime_ids', REQUIREMENT_FACTS_MAX),
    allowed_runtime_kinds: fields.words(
      'allowed_runtime_kinds',
      RUNTIME_KINDS,
      REQUIREMENT_FACTS_MAX,
    ),
    allowed_regions: fields.facts('allowed_regions', REQUIREMENT_FACTS_MAX),
    allowed_connectivity: fields.words(
      'allowed_connectivity',
      CONNECTIVITIES,
      REQUIREMENT_FACTS_MAX,
    ),
    ...(minimum_trust === undefined ? {} : { minimum_trust }),
    ...(require_offline === undefined ? {} : { require_offline }),
    ...(require_hardware === undefined ? {} : { require_hardware }),
    ...(minimum_battery_percent === undefined ? {} : { minimum_battery_percent }),
    ...(maximum_cost_microunits === undefined ? {} : { maximum_cost_microunits }),
    ...(maximum_latency_ms === undefined ? {} : { maximum_latency_ms }),
  };
}

function readRuleClassification(fields: Fields): Classification | undefined {
  return fields.word('classification', CLASSIFICATIONS);
}

/** What the rules of one classification allow together must not be nothing. */
const ALLOWED_SETS = [
  'allowed_runtime_ids',
  'allowed_runtime_kinds',
  'allowed_regions',
  'allowed_connectivity',
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

/** A list without entries is no constraint. */
function areDisjoint(a: ReadonlySet<string> | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.size > 0 && b.length > 0 && !b.some((entry) => a.has(entry));
}

function readClassification(value: JsonValue | undefined, name: string): Classification {
  const word = CLASSIFICATIONS.find((known) => known === value);
  if (word === undefined) refuse(name, `must be one of ${CLASSIFICATIONS.join(', ')}`);
  return word;
}

/** Reads whichever of the fields are there, which must come to the same value. */
function agreeing<T>(
  body: JsonObject,
  names: readonly [string, string],
  read: (value: JsonValue, name: string) => T,
): T | undefined {
  const values = names.flatMap((name) => {
    const value = ownValue(body, name) ?? null;
    return value === null ? [] : [read(value, name)];
  });
  const [first, second] = values;
  if (second !== undefined && canonicalJson(first) !== canonicalJson(second)) {
    refuse(names.join(' and '), 'must not differ when both are sent');
  }
  return first;
}
