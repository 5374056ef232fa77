/**
 * Wire shapes of continuity: executions with an owner and an epoch, receipts of effects, provenance,
 * and live migration. Those of runtimes and handoffs are in `handoff.ts`.
 */

import { type Static, Type } from '@sinclair/typebox';
import { EFFECT_KINDS } from '../src/core/continuity/effects.js';
import { MIGRATION_VERDICTS } from '../src/core/continuity/migration-plan.js';
import { CALLER_PROVENANCE_KINDS } from '../src/core/continuity/provenance.js';
import {
  EFFECT_STATES,
  EXECUTION_STATES,
  MIGRATION_STATES,
} from '../src/core/continuity/states.js';
import { TRANSFORM_OPERATIONS, TRANSFORMS_MAX } from '../src/core/continuity/transforms.js';
import {
  AnyJson,
  INT32_MAX,
  INTEGER_MAX,
  InstanceStateWord,
  JsonObjectSchema,
  Limit,
  Natural,
  noted,
  oneOfWords,
  optional,
  orNull,
  Timestamp,
  Uuid,
} from './common.js';

/** Of whom a body speaks; absent: the header's tenant. */
export const TenantField = optional(Type.String());
export const TenantQuery = Type.Object({ tenant_id: Type.Optional(Type.String()) });
export type TenantQuery = Static<typeof TenantQuery>;

/** A body that says nothing but whose the object is. */
export const TenantBody = Type.Object({ tenant_id: TenantField }, { $id: 'TenantBody' });
export type TenantBody = Static<typeof TenantBody>;

/** SHA-256 in hexadecimal digits. */
export const SHA256_PATTERN = '^[0-9a-f]{64}$';
export const Sha256 = Type.String({ pattern: SHA256_PATTERN });
/** As callers may write it. */
export const SHA256_INPUT_PATTERN = '^[0-9a-fA-F]{64}$';
export const Sha256Input = Type.String({ pattern: SHA256_INPUT_PATTERN });
export const Epoch = Type.Integer({ minimum: 0, maximum: INTEGER_MAX });

// ---------------------------------------------------------------- executions

export const CreateExecution = Type.Object(
  { tenant_id: TenantField, instance_id: Uuid, runtime_id: Uuid },
  { $id: 'CreateExecution' },
);
export type CreateExecution = Static<typeof CreateExecution>;

export const Execution = Type.Object(
  {
    continuity_id: Uuid,
    tenant_id: Type.String(),
    current_instance_id: Uuid,
    owner_runtime_id: Uuid,
    epoch: Epoch,
    state: oneOfWords(EXECUTION_STATES),
    updated_at: Timestamp,
  },
  {
    $id: 'ContinuityExecution',
    description:
      'The portable identity of an instance. Its epoch grows with each change of owner or version.',
  },
);
export type Execution = Static<typeof Execution>;

export const Location = Type.Object(
  {
    continuity_id: Uuid,
    tenant_id: Type.String(),
    epoch: Epoch,
    runtime_id: Uuid,
    instance_id: Uuid,
    handoff_id: orNull(Uuid),
    entered_at: Timestamp,
  },
  { $id: 'ContinuityLocation' },
);
export type Location = Static<typeof Location>;

// ---------------------------------------------------------------- checkpoints

export const BoundaryListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  limit: Limit(1_000, 10_000),
});
export type BoundaryListQuery = Static<typeof BoundaryListQuery>;

export const BoundaryParams = Type.Object({ id: Uuid, checkpoint_id: Uuid });

export const Boundary = Type.Object(
  {
    checkpoint_id: Uuid,
    instance_id: Uuid,
    continuity_id: Uuid,
    epoch: Epoch,
    sequence_id: Uuid,
    sequence_version: Type.Integer(),
    block_id: Type.String(),
    checkpoint_sha256: Sha256,
    provenance_head: orNull(Sha256),
    created_at: Timestamp,
  },
  { $id: 'CheckpointBoundary', description: 'A checkpoint at one of the epochs of its instance.' },
);
export type Boundary = Static<typeof Boundary>;

export const BoundaryDetail = Type.Object(
  {
    boundary: Boundary,
    checkpoint_data: AnyJson,
    previous_checkpoint_id: orNull(Uuid),
    redacted_state_diff: Type.Array(
      Type.Object({ path: Type.String(), before: AnyJson, after: AnyJson }),
    ),
  },
  {
    $id: 'CheckpointBoundaryDetail',
    description:
      'Whatever looks like a secret is [REDACTED] in the difference, and as it is in the data.',
  },
);
export type BoundaryDetail = Static<typeof BoundaryDetail>;

// ---------------------------------------------------------------- effects

export const EffectReceipt = Type.Object(
  {
    id: Uuid,
    tenant_id: Type.String(),
    continuity_id: Uuid,
    epoch: Epoch,
    instance_id: Uuid,
    block_id: Type.String(),
    attempt: Type.Integer(),
    kind: oneOfWords(EFFECT_KINDS),
    state: oneOfWords(EFFECT_STATES),
    destination_fingerprint: Sha256,
    idempotency_key: orNull(Type.String()),
    request_sha256: Sha256,
    provider_receipt_id: orNull(Type.String()),
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  {
    $id: 'EffectReceipt',
    description:
      'What a try of a step did outside: dispatched until its outcome is known, then committed or ' +
      'unknown.',
  },
);
export type EffectReceipt = Static<typeof EffectReceipt>;

export const ResolveEffect = Type.Object(
  {
    tenant_id: TenantField,
    state: oneOfWords(EFFECT_STATES),
    provider_receipt_id: optional(Type.String({ maxLength: 256 })),
  },
  { $id: 'ResolveEffect' },
);
export type ResolveEffect = Static<typeof ResolveEffect>;

// ---------------------------------------------------------------- provenance

/** What callers may add to a chain; the server adds the rest itself. */
export const AppendProvenance = Type.Object(
  {
    tenant_id: TenantField,
    kind: oneOfWords(CALLER_PROVENANCE_KINDS),
    payload_sha256: Sha256Input,
  },
  { $id: 'AppendProvenance' },
);
export type AppendProvenance = Static<typeof AppendProvenance>;

export const ProvenanceEntry = Type.Object(
  {
    id: Uuid,
    continuity_id: Uuid,
    tenant_id: Type.String(),
    epoch: Epoch,
    kind: Type.String(),
    redacted_summary: Type.Optional(Type.String()),
    payload_sha256: Sha256,
    previous_sha256: orNull(Sha256),
    entry_sha256: Sha256,
    signing_key_id: orNull(Type.String()),
    signature: orNull(Type.String()),
    created_at: Timestamp,
  },
  { $id: 'ProvenanceEntry', description: 'One decision; holds the hash of the entry before it.' },
);
export type ProvenanceEntry = Static<typeof ProvenanceEntry>;

export const VerifyProvenanceQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  expected_head: Type.Optional(Type.String()),
});
export type VerifyProvenanceQuery = Static<typeof VerifyProvenanceQuery>;

export const ProvenanceVerdict = Type.Object(
  {
    valid: Type.Boolean(),
    entries_checked: Type.Integer(),
    first_invalid_index: orNull(Type.Integer()),
    code: orNull(Type.String()),
    head_sha256: orNull(Sha256),
  },
  {
    $id: 'ProvenanceVerdict',
    description: 'code says what is wrong with the first entry that is not right.',
  },
);
export type ProvenanceVerdict = Static<typeof ProvenanceVerdict>;

// ---------------------------------------------------------------- live migration

/** The rules of paths are those of `core/continuity/transforms`. */
export const Transform = Type.Object(
  {
    version: optional(Type.Unsafe<1>({ type: 'integer', enum: [1], default: 1 })),
    transform: oneOfWords(TRANSFORM_OPERATIONS),
    from_path: Type.String(),
    to_path: optional(Type.String({ description: 'Of copy and move; none of drop.' })),
  },
  {
    $id: 'Transform',
    description:
      'Paths are dotted and lead into checkpoint_data; what stands under context_snapshot becomes ' +
      'context.data.',
  },
);
export type Transform = Static<typeof Transform>;

export const CaptureCheckpoint = Type.Boolean({
  default: false,
  description: 'First save a checkpoint of the live state.',
});

export const PlanMigration = Type.Object(
  {
    tenant_id: TenantField,
    continuity_id: Uuid,
    to_sequence_id: Uuid,
    to_version: Type.Integer({
      minimum: -INT32_MAX,
      maximum: INT32_MAX,
      description: 'That of to_sequence_id, else 404.',
    }),
    transforms: optional(Type.Array(Transform, { maxItems: TRANSFORMS_MAX, default: [] })),
    rollback_retention_seconds: optional(
      Type.Integer({
        default: 86_400,
        description: 'At least 60 and at most 2,592,000; 86,400 by default.',
      }),
    ),
    capture_checkpoint: optional(
      noted(
        CaptureCheckpoint,
        'First save a checkpoint of the live state. Without one, and with none saved, 409.',
      ),
    ),
  },
  {
    $id: 'PlanMigration',
    description: 'What a checkpoint of the source has is moved to where the target looks for it.',
  },
);
export type PlanMigration = Static<typeof PlanMigration>;

export const ApplyMigration = Type.Object(
  { tenant_id: TenantField, approved: optional(Type.Boolean({ default: false })) },
  { $id: 'ApplyMigration' },
);
export type ApplyMigration = Static<typeof ApplyMigration>;

export const MigrationPlan = Type.Object(
  {
    id: Uuid,
    tenant_id: Type.String(),
    continuity_id: Uuid,
    from_sequence_id: Uuid,
    from_version: Type.Integer(),
    to_sequence_id: Uuid,
    to_version: Type.Integer(),
    disposition: oneOfWords(MIGRATION_VERDICTS),
    verdict: oneOfWords(MIGRATION_VERDICTS),
    transforms: Type.Array(Transform),
    finding_codes: Type.Array(Type.String()),
    rollback_capsule_required: Type.Boolean(),
    created_at: Timestamp,
  },
  {
    $id: 'MigrationPlan',
    description:
      'verdict, also named disposition: automatic may be applied, approval_required with approved ' +
      'true, pin and incompatible never.',
  },
);
export type MigrationPlan = Static<typeof MigrationPlan>;

export const PayloadArtifact = Type.Object(
  { key: Type.String(), sha256: Sha256, bytes: Natural },
  { $id: 'PayloadArtifact' },
);
export type PayloadArtifact = Static<typeof PayloadArtifact>;

export const RollbackCapsule = Type.Object(
  {
    capsule_id: Uuid,
    payload_artifact: PayloadArtifact,
    manifest_sha256: Sha256,
    public_key: Type.String(),
    signature: Type.String(),
  },
  { $id: 'RollbackCapsule' },
);
export type RollbackCapsule = Static<typeof RollbackCapsule>;

export const MigrationRecord = Type.Object(
  {
    plan: MigrationPlan,
    expected_epoch: Epoch,
    source_checkpoint: Type.Object({
      id: Uuid,
      instance_id: Uuid,
      checkpoint_data: AnyJson,
      created_at: Timestamp,
    }),
    source_context: JsonObjectSchema,
    source_state: InstanceStateWord,
    rollback_capsule: Type.Unsafe<RollbackCapsule | null>({
      anyOf: [RollbackCapsule, { type: 'null' }],
    }),
    state: oneOfWords(MIGRATION_STATES),
    applied_epoch: orNull(Epoch),
    rollback_expires_at: Timestamp,
    applied_at: orNull(Timestamp),
    rolled_back_at: orNull(Timestamp),
  },
  { $id: 'MigrationRecord', description: 'A plan, and what became of it.' },
);
export type MigrationRecord = Static<typeof MigrationRecord>;
