/** Wire shapes of runtimes, placement, handoffs and capsules. `core/continuity` checks rules between fields. */

import type { TSchema } from '@sinclair/typebox';
import * as t from './common.js';
import {
  CaptureCheckpoint,
  EffectReceipt,
  Epoch,
  Execution,
  PayloadArtifact,
  Sha256,
  Sha256Input,
  TenantField,
} from './continuity.js';
import {
  CAPABILITY_FACTS_MAX,
  CLAIMABLE_TRUST,
  CLASSIFICATIONS,
  CONNECTIVITIES,
  HANDOFF_STATES,
  POLICY_RULES_MAX,
  REQUIREMENT_FACTS_MAX,
  RUNTIME_KINDS,
  TRUST_LEVELS,
} from './continuity-words.js';

const Texts = t.list(t.text());
/** Name of a fact of a runtime, limited in bytes. */
const Fact = t.text({ pattern: '\\S', 'x-check': 'fact' });
const facts = (most: number) => t.list(Fact, { maxItems: most });
const OfferedFacts = facts(CAPABILITY_FACTS_MAX);
const WantedFacts = facts(REQUIREMENT_FACTS_MAX);
/** Facts that a runtime has and an execution may require. */
const factsOf = <T extends TSchema>(list: T) => ({
  handlers: list,
  plugins: list,
  credentials: list,
  regions: list,
  hardware: list,
});
const Kind = t.oneOf(RUNTIME_KINDS);
const Trust = t.oneOf(TRUST_LEVELS);
const Connectivity = t.oneOf(CONNECTIVITIES);
const Classification = t.oneOf(CLASSIFICATIONS);
const Percent = t.integer({ minimum: 0, maximum: 100 });

const CAPABILITY_FIELDS = {
  runtime_id: t.Uuid,
  kind: Kind,
  trust: t.oneOf(CLAIMABLE_TRUST),
  ...factsOf(t.nullish(OfferedFacts)),
  offline_capable: t.nullish(t.boolean()),
  draining: t.nullish(t.boolean()),
  connectivity: t.nullish(Connectivity),
  battery_percent: t.nullish(Percent),
  estimated_cost_microunits: t.nullish(t.Natural),
  estimated_latency_ms: t.nullish(t.Natural),
  capsule_signing_public_key: t.nullish(t.text({ maxLength: 64 })),
  observed_at: t.Timestamp,
  expires_at: t.Timestamp,
};

export const RegisterRuntime = t.named('RegisterRuntime', {
  tenant_id: TenantField,
  capabilities: t.object(
    CAPABILITY_FIELDS,
    'observed_at: at most 30 s ahead. expires_at: 5 min later at most. trust: unverified ' +
      'or registered. Lists: at most 256 entries of 256 bytes.',
  ),
});
export type RegisterRuntime = t.Static<typeof RegisterRuntime>;

/** Stored and shown without empty lists and absent members. */
export const RuntimeCapabilities = t.named('RuntimeCapabilities', 'Facts of a live runtime.', {
  runtime_id: t.Uuid,
  kind: Kind,
  trust: Trust,
  ...factsOf(t.optional(Texts)),
  offline_capable: t.boolean(),
  draining: t.boolean(),
  connectivity: t.optional(Connectivity),
  battery_percent: t.optional(Percent),
  estimated_cost_microunits: t.optional(t.Natural),
  estimated_latency_ms: t.optional(t.Natural),
  capsule_signing_public_key: t.optional(t.text()),
  observed_at: t.Timestamp,
  expires_at: t.Timestamp,
});
export type RuntimeCapabilities = t.Static<typeof RuntimeCapabilities>;

export const Requirements = t.named('Requirements', 'All of each list; one of the regions.', {
  ...factsOf(t.nullish(WantedFacts)),
  requires_network: t.nullish(t.boolean()),
  requires_human_ui: t.nullish(t.boolean()),
  minimum_trust: t.nullish(Trust),
});
export type Requirements = t.Static<typeof Requirements>;

export const LocalityPolicy = t.named('LocalityPolicy', 'All matching rules apply.', {
  version: t.integer({ minimum: 1, maximum: t.INTEGER_MAX }),
  rules: t.list(
    t.object({
      classification: Classification,
      allowed_runtime_ids: t.nullish(t.list(t.Uuid, { maxItems: REQUIREMENT_FACTS_MAX })),
      allowed_runtime_kinds: t.nullish(t.list(Kind, { maxItems: REQUIREMENT_FACTS_MAX })),
      allowed_regions: t.nullish(WantedFacts),
      minimum_trust: t.nullish(Trust),
      require_offline: t.nullish(t.boolean()),
      require_hardware: t.nullish(Fact),
      allowed_connectivity: t.nullish(t.list(Connectivity, { maxItems: REQUIREMENT_FACTS_MAX })),
      minimum_battery_percent: t.nullish(Percent),
      maximum_cost_microunits: t.nullish(t.Natural),
      maximum_latency_ms: t.nullish(t.Natural),
    }),
    { maxItems: POLICY_RULES_MAX },
  ),
});
export type LocalityPolicy = t.Static<typeof LocalityPolicy>;

const PLACEMENT_FIELDS = {
  tenant_id: TenantField,
  requirements: t.nullish(Requirements),
  policy: t.nullish(LocalityPolicy, 'Alias of locality_policy.'),
  locality_policy: t.nullish(LocalityPolicy),
  classification: t.nullish(Classification, 'Alias of data_classification.'),
  data_classification: t.nullish(t.withDefault(Classification, 'internal')),
};

export const PlaceExecution = t.named('PlaceExecution', PLACEMENT_FIELDS);
export type PlaceExecution = t.Static<typeof PlaceExecution>;

export const PreviewHandoff = t.named('PreviewHandoff', {
  ...PLACEMENT_FIELDS,
  destination_runtime_id: t.Uuid,
});

export const PlacementDecision = t.named('PlacementDecision', 'Evaluation of all live runtimes.', {
  id: t.Uuid,
  tenant_id: t.text(),
  continuity_id: t.Uuid,
  epoch: Epoch,
  selected_runtime_id: t.nullable(t.Uuid),
  requirements: Requirements,
  policy: t.optional(LocalityPolicy),
  classification: Classification,
  policy_version: t.nullable(t.integer()),
  candidates: t.list(
    t.object({
      runtime_id: t.Uuid,
      outcome: t.oneOf(['allow', 'deny', 'unknown'] as const),
      score: t.integer(),
      score_factors: t.object({
        trust: t.integer(),
        current_runtime: t.integer(),
        offline_capable: t.integer(),
        battery_rank: t.integer(),
        cost_rank: t.integer(),
        latency_rank: t.integer(),
      }),
      finding_codes: Texts,
    }),
  ),
  created_at: t.Timestamp,
});
export type PlacementDecision = t.Static<typeof PlacementDecision>;

export const HandoffPreview = t.named(
  'HandoffPreview',
  "Valid while the execution, its effects, the destination's facts and the policy are unchanged.",
  {
    continuity_id: t.Uuid,
    source_runtime_id: t.Uuid,
    destination_runtime_id: t.Uuid,
    compatible: t.boolean(),
    findings: t.list(
      t.object({
        code: t.text(),
        status: t.oneOf(['pass', 'fail', 'unknown'] as const),
        summary: t.text(),
        remedy: t.optional(t.text('How to resolve a finding about the execution.')),
      }),
    ),
    unresolved_effects: t.list(EffectReceipt),
    placement_decision: PlacementDecision,
    placement_decision_id: t.Uuid,
    preview_sha256: Sha256,
  },
);
export type HandoffPreview = t.Static<typeof HandoffPreview>;

export const CreateHandoff = t.named('CreateHandoff', 'Must equal the previewed terms.', {
  ...PLACEMENT_FIELDS,
  continuity_id: t.nullish(t.Uuid),
  placement_decision_id: t.Uuid,
  preview_sha256: Sha256Input,
  destination_runtime_id: t.Uuid,
});

export const Handoff = t.named('Handoff', {
  id: t.Uuid,
  continuity_id: t.Uuid,
  tenant_id: t.text(),
  source_runtime_id: t.Uuid,
  destination_runtime_id: t.Uuid,
  expected_epoch: Epoch,
  state: t.oneOf(HANDOFF_STATES),
  capsule_id: t.nullable(t.Uuid),
  placement_decision_id: t.Uuid,
  preview_sha256: Sha256,
  version: t.integer(),
  failure_code: t.nullable(t.text()),
  data_classification: Classification,
  locality_policy: t.optional(LocalityPolicy),
  requirements: Requirements,
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type Handoff = t.Static<typeof Handoff>;

const Base64 = t.text();

export const ExportHandoff = t.named('ExportHandoff', {
  tenant_id: TenantField,
  requirements: t.nullish(Requirements, 'Findings of the placement decision.'),
  expires_in_seconds: t.nullish(t.integer({ minimum: 1, maximum: 3_600, default: 300 })),
  payload_key_base64: t.nullish(
    Base64,
    'A single-use key of 32 bytes, made by the destination. Default: only servers with the ' +
      'same encryption key can open the capsule.',
  ),
  capture_checkpoint: t.nullish(CaptureCheckpoint),
});
export type ExportHandoff = t.Static<typeof ExportHandoff>;

export const CapsuleManifest = t.named('CapsuleManifest', {
  schema: t.object({ major: t.Natural, minor: t.Natural }),
  capsule_id: t.Uuid,
  continuity_id: t.Uuid,
  source_instance_id: t.Uuid,
  epoch: Epoch,
  tenant_id: t.text(),
  source_runtime_id: t.Uuid,
  allowed_destination_runtime_id: t.nullable(t.Uuid),
  sequence: t.object({ id: t.Uuid, version: t.Natural, content_sha256: Sha256 }),
  checkpoint: t.object({ block_id: t.text(), sha256: Sha256 }),
  requirements_sha256: Sha256,
  payload_artifact: PayloadArtifact,
  provenance_head: t.nullable(Sha256),
  issued_at: t.Timestamp,
  expires_at: t.Timestamp,
  signing_key_id: t.text(),
  encryption_key_id: t.text(),
});
export type CapsuleManifest = t.Static<typeof CapsuleManifest>;

export const Capsule = t.named('Capsule', 'Content, recipient and expiry, signed by its sealer.', {
  manifest: CapsuleManifest,
  manifest_sha256: Sha256,
  signature: t.text(),
  public_key: t.text(),
});
export type Capsule = t.Static<typeof Capsule>;

export const HandoffExported = t.named('HandoffExported', {
  handoff: Handoff,
  capsule: Capsule,
  payload_base64: Base64,
});
export type HandoffExported = t.Static<typeof HandoffExported>;

export const ImportCapsule = t.named('ImportCapsule', {
  tenant_id: TenantField,
  destination_runtime_id: t.Uuid,
  expected_epoch: Epoch,
  destination_instance_id: t.nullish(t.Uuid, 'Default: generated.'),
  capsule: Capsule,
  payload_base64: t.nullish(Base64, 'Default: the capsule that this server sealed.'),
  payload_key_base64: t.nullish(Base64),
});
export type ImportCapsule = t.Static<typeof ImportCapsule>;

/** Signed statements exchanged by two servers with separate databases. */
const STATEMENT = {
  statement: t.text('Canonical JSON of the statement.'),
  public_key: t.text(),
  signature: t.text(),
};

export const ImportReceipt = t.named(
  'ImportReceipt',
  'A signed statement: this server has the instance of the capsule.',
  STATEMENT,
);
export type ImportReceipt = t.Static<typeof ImportReceipt>;

export const OwnershipGrant = t.named(
  'OwnershipGrant',
  'A signed statement: from this epoch on the destination owns the execution.',
  STATEMENT,
);
export type OwnershipGrant = t.Static<typeof OwnershipGrant>;

export const CapsuleImported = t.named('CapsuleImported', {
  instance_id: t.Uuid,
  state: t.typed<'paused'>({ type: 'string', enum: ['paused'] }),
  import_receipt: ImportReceipt,
});
export type CapsuleImported = t.Static<typeof CapsuleImported>;

export const AcceptHandoff = t.named('AcceptHandoff', {
  tenant_id: TenantField,
  destination_instance_id: t.Uuid,
  import_receipt: t.optional(t.refOrNull(ImportReceipt), 'For an instance on another server.'),
});
export type AcceptHandoff = t.Static<typeof AcceptHandoff>;

export const HandoffAccepted = t.named('HandoffAccepted', {
  handoff: Handoff,
  execution: Execution,
  ownership_grant: t.optional(OwnershipGrant),
});
export type HandoffAccepted = t.Static<typeof HandoffAccepted>;

/** Claims ownership of an imported execution, on the destination. */
export const ClaimExecution = t.named('ClaimExecution', {
  tenant_id: TenantField,
  ownership_grant: OwnershipGrant,
});
export type ClaimExecution = t.Static<typeof ClaimExecution>;

export const AttachCapsule = t.named('AttachCapsule', {
  tenant_id: TenantField,
  destination_instance_id: t.Uuid,
  capsule: Capsule,
  payload_base64: Base64,
  payload_key_base64: Base64,
});

export const CapsuleAttached = t.named('CapsuleAttached', {
  handoff: Handoff,
  destination_instance_id: t.Uuid,
});
export type CapsuleAttached = t.Static<typeof CapsuleAttached>;
