/** Wire shapes of runtimes, placement, handoffs and capsules. `core/continuity` checks rules between fields. */

import { type Static, type TSchema, Type } from '@sinclair/typebox';
import {
  INTEGER_MAX,
  Natural,
  named,
  noted,
  oneOfWords,
  optional,
  orNull,
  refOrNull,
  Timestamp,
  Uuid,
  withDefault,
} from './common.js';
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

const Texts = Type.Array(Type.String());
/** Name of a fact of a runtime, limited in bytes. */
const Fact = Type.String({ pattern: '\\S', 'x-check': 'fact' });
const facts = (most: number) => Type.Array(Fact, { maxItems: most });
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
const Kind = oneOfWords(RUNTIME_KINDS);
const Trust = oneOfWords(TRUST_LEVELS);
const Connectivity = oneOfWords(CONNECTIVITIES);
const Classification = oneOfWords(CLASSIFICATIONS);
const Percent = Type.Integer({ minimum: 0, maximum: 100 });

const CAPABILITY_FIELDS = {
  runtime_id: Uuid,
  kind: Kind,
  trust: oneOfWords(CLAIMABLE_TRUST),
  ...factsOf(optional(OfferedFacts)),
  offline_capable: optional(Type.Boolean()),
  draining: optional(Type.Boolean()),
  connectivity: optional(Connectivity),
  battery_percent: optional(Percent),
  estimated_cost_microunits: optional(Natural),
  estimated_latency_ms: optional(Natural),
  capsule_signing_public_key: optional(Type.String({ maxLength: 64 })),
  observed_at: Timestamp,
  expires_at: Timestamp,
};

export const RegisterRuntime = named('RegisterRuntime', {
  tenant_id: TenantField,
  capabilities: Type.Object(CAPABILITY_FIELDS, {
    description:
      'observed_at: at most 30 s ahead. expires_at: 5 min later at most. trust: unverified ' +
      'or registered. Lists: at most 256 entries of 256 bytes.',
  }),
});
export type RegisterRuntime = Static<typeof RegisterRuntime>;

/** Stored and shown without empty lists and absent members. */
export const RuntimeCapabilities = named(
  'RuntimeCapabilities',
  'Registered facts of a runtime, live until expires_at.',
  {
    runtime_id: Uuid,
    kind: Kind,
    trust: Trust,
    ...factsOf(Type.Optional(Texts)),
    offline_capable: Type.Boolean(),
    draining: Type.Boolean(),
    connectivity: Type.Optional(Connectivity),
    battery_percent: Type.Optional(Percent),
    estimated_cost_microunits: Type.Optional(Natural),
    estimated_latency_ms: Type.Optional(Natural),
    capsule_signing_public_key: Type.Optional(Type.String()),
    observed_at: Timestamp,
    expires_at: Timestamp,
  },
);
export type RuntimeCapabilities = Static<typeof RuntimeCapabilities>;

export const Requirements = named(
  'Requirements',
  'Requirements on a runtime: all of each list, but one of the regions.',
  {
    ...factsOf(optional(WantedFacts)),
    requires_network: optional(Type.Boolean()),
    requires_human_ui: optional(Type.Boolean()),
    minimum_trust: optional(Trust),
  },
);
export type Requirements = Static<typeof Requirements>;

export const LocalityPolicy = named(
  'LocalityPolicy',
  'Where data of a classification may go; all matching rules apply.',
  {
    version: Type.Integer({ minimum: 1, maximum: INTEGER_MAX }),
    rules: Type.Array(
      Type.Object({
        classification: Classification,
        allowed_runtime_ids: optional(Type.Array(Uuid, { maxItems: REQUIREMENT_FACTS_MAX })),
        allowed_runtime_kinds: optional(Type.Array(Kind, { maxItems: REQUIREMENT_FACTS_MAX })),
        allowed_regions: optional(WantedFacts),
        minimum_trust: optional(Trust),
        require_offline: optional(Type.Boolean()),
        require_hardware: optional(Fact),
        allowed_connectivity: optional(
          Type.Array(Connectivity, { maxItems: REQUIREMENT_FACTS_MAX }),
        ),
        minimum_battery_percent: optional(Percent),
        maximum_cost_microunits: optional(Natural),
        maximum_latency_ms: optional(Natural),
      }),
      { maxItems: POLICY_RULES_MAX },
    ),
  },
);
export type LocalityPolicy = Static<typeof LocalityPolicy>;

const PLACEMENT_FIELDS = {
  tenant_id: TenantField,
  requirements: optional(Requirements),
  policy: optional(LocalityPolicy),
  locality_policy: optional(LocalityPolicy),
  classification: optional(Classification),
  data_classification: optional(withDefault(Classification, 'internal')),
};

export const PlaceExecution = named('PlaceExecution', PLACEMENT_FIELDS);
export type PlaceExecution = Static<typeof PlaceExecution>;

export const PreviewHandoff = named('PreviewHandoff', {
  ...PLACEMENT_FIELDS,
  destination_runtime_id: Uuid,
});

export const PlacementDecision = named('PlacementDecision', 'Evaluation of all live runtimes.', {
  id: Uuid,
  tenant_id: Type.String(),
  continuity_id: Uuid,
  epoch: Epoch,
  selected_runtime_id: orNull(Uuid),
  requirements: Requirements,
  policy: Type.Optional(LocalityPolicy),
  classification: Classification,
  policy_version: orNull(Type.Integer()),
  candidates: Type.Array(
    Type.Object({
      runtime_id: Uuid,
      outcome: oneOfWords(['allow', 'deny', 'unknown'] as const),
      score: Type.Integer(),
      score_factors: Type.Object({
        trust: Type.Integer(),
        current_runtime: Type.Integer(),
        offline_capable: Type.Integer(),
        battery_rank: Type.Integer(),
        cost_rank: Type.Integer(),
        latency_rank: Type.Integer(),
      }),
      finding_codes: Texts,
    }),
  ),
  created_at: Timestamp,
});
export type PlacementDecision = Static<typeof PlacementDecision>;

export const HandoffPreview = named(
  'HandoffPreview',
  "Valid while the execution, its effects, the destination's facts and the policy are unchanged.",
  {
    continuity_id: Uuid,
    source_runtime_id: Uuid,
    destination_runtime_id: Uuid,
    compatible: Type.Boolean(),
    findings: Type.Array(
      Type.Object({
        code: Type.String(),
        status: oneOfWords(['pass', 'fail', 'unknown'] as const),
        summary: Type.String(),
        remedy: Type.Optional(
          noted(Type.String(), 'How to resolve findings about the execution itself.'),
        ),
      }),
    ),
    unresolved_effects: Type.Array(EffectReceipt),
    placement_decision: PlacementDecision,
    placement_decision_id: Uuid,
    preview_sha256: Sha256,
  },
);
export type HandoffPreview = Static<typeof HandoffPreview>;

export const CreateHandoff = named(
  'CreateHandoff',
  'Must equal the preview. policy and classification are aliases.',
  {
    ...PLACEMENT_FIELDS,
    continuity_id: optional(Uuid),
    placement_decision_id: Uuid,
    preview_sha256: Sha256Input,
    destination_runtime_id: Uuid,
  },
);

export const Handoff = named('Handoff', {
  id: Uuid,
  continuity_id: Uuid,
  tenant_id: Type.String(),
  source_runtime_id: Uuid,
  destination_runtime_id: Uuid,
  expected_epoch: Epoch,
  state: oneOfWords(HANDOFF_STATES),
  capsule_id: orNull(Uuid),
  placement_decision_id: Uuid,
  preview_sha256: Sha256,
  version: Type.Integer(),
  failure_code: orNull(Type.String()),
  data_classification: Classification,
  locality_policy: Type.Optional(LocalityPolicy),
  requirements: Requirements,
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Handoff = Static<typeof Handoff>;

const Base64 = Type.String();

export const ExportHandoff = named('ExportHandoff', {
  tenant_id: TenantField,
  requirements: optional(noted(Requirements, 'Findings of the placement decision.')),
  expires_in_seconds: optional(Type.Integer({ minimum: 1, maximum: 3_600, default: 300 })),
  payload_key_base64: noted(
    optional(Base64),
    'A single-use key of 32 bytes, made by the destination. Default: only servers with the ' +
      'same encryption key can open the capsule.',
  ),
  capture_checkpoint: optional(CaptureCheckpoint),
});
export type ExportHandoff = Static<typeof ExportHandoff>;

export const CapsuleManifest = named('CapsuleManifest', {
  schema: Type.Object({ major: Natural, minor: Natural }),
  capsule_id: Uuid,
  continuity_id: Uuid,
  source_instance_id: Uuid,
  epoch: Epoch,
  tenant_id: Type.String(),
  source_runtime_id: Uuid,
  allowed_destination_runtime_id: orNull(Uuid),
  sequence: Type.Object({ id: Uuid, version: Natural, content_sha256: Sha256 }),
  checkpoint: Type.Object({ block_id: Type.String(), sha256: Sha256 }),
  requirements_sha256: Sha256,
  payload_artifact: PayloadArtifact,
  provenance_head: orNull(Sha256),
  issued_at: Timestamp,
  expires_at: Timestamp,
  signing_key_id: Type.String(),
  encryption_key_id: Type.String(),
});
export type CapsuleManifest = Static<typeof CapsuleManifest>;

export const Capsule = named('Capsule', 'Content, recipient and expiry, signed by its sealer.', {
  manifest: CapsuleManifest,
  manifest_sha256: Sha256,
  signature: Type.String(),
  public_key: Type.String(),
});
export type Capsule = Static<typeof Capsule>;

export const HandoffExported = named('HandoffExported', {
  handoff: Handoff,
  capsule: Capsule,
  payload_base64: Base64,
});
export type HandoffExported = Static<typeof HandoffExported>;

export const ImportCapsule = named('ImportCapsule', {
  tenant_id: TenantField,
  destination_runtime_id: Uuid,
  expected_epoch: Epoch,
  destination_instance_id: optional(noted(Uuid, 'Default: generated.')),
  capsule: Capsule,
  payload_base64: optional(noted(Base64, 'Default: the capsule that this server sealed.')),
  payload_key_base64: optional(Base64),
});
export type ImportCapsule = Static<typeof ImportCapsule>;

/** Signed statements exchanged by two servers with separate databases. */
const Statement = Type.Object({
  statement: Type.String({ description: 'Canonical JSON of the statement.' }),
  public_key: Type.String(),
  signature: Type.String(),
});

/** Signed by the destination: it has the capsule's instance, and no other one. */
export const ImportReceipt = named(
  'ImportReceipt',
  'A signed statement: this server has the instance of the capsule.',
  { ...Statement.properties },
);
export type ImportReceipt = Static<typeof ImportReceipt>;

/** Signed by the source: the destination owns the execution from an epoch on. */
export const OwnershipGrant = named(
  'OwnershipGrant',
  'A signed statement: from this epoch on the destination owns the execution.',
  { ...Statement.properties },
);
export type OwnershipGrant = Static<typeof OwnershipGrant>;

export const CapsuleImported = named('CapsuleImported', {
  instance_id: Uuid,
  state: Type.Unsafe<'paused'>({ type: 'string', enum: ['paused'] }),
  import_receipt: ImportReceipt,
});
export type CapsuleImported = Static<typeof CapsuleImported>;

export const AcceptHandoff = named('AcceptHandoff', {
  tenant_id: TenantField,
  destination_instance_id: Uuid,
  import_receipt: noted(
    Type.Optional(refOrNull(ImportReceipt)),
    'Import receipt of an instance on another server.',
  ),
});
export type AcceptHandoff = Static<typeof AcceptHandoff>;

export const HandoffAccepted = named('HandoffAccepted', {
  handoff: Handoff,
  execution: Execution,
  ownership_grant: Type.Optional(OwnershipGrant),
});
export type HandoffAccepted = Static<typeof HandoffAccepted>;

/** Claims ownership of an imported execution, on the destination. */
export const ClaimExecution = named('ClaimExecution', {
  tenant_id: TenantField,
  ownership_grant: OwnershipGrant,
});
export type ClaimExecution = Static<typeof ClaimExecution>;

export const AttachCapsule = named('AttachCapsule', {
  tenant_id: TenantField,
  destination_instance_id: Uuid,
  capsule: Capsule,
  payload_base64: Base64,
  payload_key_base64: Base64,
});

export const CapsuleAttached = named('CapsuleAttached', {
  handoff: Handoff,
  destination_instance_id: Uuid,
});
export type CapsuleAttached = Static<typeof CapsuleAttached>;
