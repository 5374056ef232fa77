/**
 * The requirements of an execution on a runtime, and the locality policy of its data. Both are
 * normalized with every default, so that equivalent bodies are equal; the order of lists matters.
 */

import type { Classification } from '../../../schema/continuity-words.js';
import type {
  PlaceExecution,
  LocalityPolicy as SentPolicy,
  Requirements as SentRequirements,
} from '../../../schema/handoff.js';
import { type Parsed, parsing, refuse } from '../../../src/core/parsed.js';
import { canonicalJson } from '../../../src/core/sealing/canonical-json.js';

type Filled<T> = { readonly [K in keyof T]-?: NonNullable<T[K]> };

export type Requirements = Filled<SentRequirements>;

const CLASSIFICATION_DEFAULT: Classification = 'internal';

/** Optional: absent means unconstrained. */
const BOUNDS = [
  'minimum_trust',
  'require_offline',
  'require_hardware',
  'minimum_battery_percent',
  'maximum_cost_microunits',
  'maximum_latency_ms',
] as const;
type Bound = (typeof BOUNDS)[number];
type SentRule = SentPolicy['rules'][number];

/** An empty list means unconstrained. */
export type LocalityRule = Filled<Omit<SentRule, Bound>> & Partial<Filled<Pick<SentRule, Bound>>>;

export interface LocalityPolicy extends Omit<SentPolicy, 'rules'> {
  readonly rules: LocalityRule[];
}

/** The terms of a placement, a preview and a handoff. */
export interface PlacementTerms {
  readonly requirements: Requirements;
  readonly policy: LocalityPolicy | null;
  readonly classification: Classification;
}

/** The same in a request body, in either spelling. */
export type SentTerms = Pick<
  PlaceExecution,
  'requirements' | 'policy' | 'locality_policy' | 'classification' | 'data_classification'
>;

/** Both spellings may be sent if they are equal; the message names the invalid field. */
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

function areDisjoint(a: ReadonlySet<string> | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.size > 0 && b.length > 0 && !b.some((entry) => a.has(entry));
}

/** The value of either spelling; both must be equal. */
function agreed<T>(names: string, first: T | null | undefined, second: T | null | undefined) {
  if (first != null && second != null && canonicalJson(first) !== canonicalJson(second)) {
    refuse(names, 'must not differ when both are sent');
  }
  return first ?? second ?? undefined;
}
