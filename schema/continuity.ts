/**
 * Wire shapes of continuity: executions with an owner and an epoch, receipts of effects, provenance,
 * and live migration. Those of runtimes and handoffs are in `handoff.ts`.
 */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  Cursor,
  INT32_MAX,
  INTEGER_MAX,
  InstanceStateWord,
  JsonObjectSchema,
  LIST_LIMIT_MAX,
  Limit,
  Natural,
  named,
  noted,
  oneOfWords,
  optional,
  orNull,
  TenantQuery,
  Timestamp,
  Uuid,
} from './common.js';
import {
  CALLER_PROVENANCE_KINDS,
  EFFECT_KINDS,
  EFFECT_STATES,
  EXECUTION_STATES,
  MIGRATION_STATES,
  MIGRATION_VERDICTS,
  TRANSFORM_OPERATIONS,
  TRANSFORMS_MAX,
} from './continuity-words.js';
import { InstanceFilter } from './instance-filter.js';

/** Of whom a body speaks; absent: the header's tenant. */
export const TenantField = optional(Type.String());

/** A body that says nothing but whose the object is. */
export const TenantBody = named('TenantBody', { tenant_id: TenantField });
export type TenantBody = Static<typeof TenantBody>;

/** SHA-256 in hexadecimal digits. */
export const SHA256_PATTERN = '^[0-9a-f]{64}$';
export const Sha256 = Type.String({ pattern: SHA256_PATTERN });
/** As callers may write it. */
export const SHA256_INPUT_PATTERN = '^[0-9a-fA-F]{64}$';
export const Sha256Input = Type.String({ pattern: SHA256_INPUT_PATTERN });
export const Epoch = Type.Integer({ minimum: 0, maximum: INTEGER_MAX });

// ---------------------------------------------------------------- executions

export const CreateExecution = named('CreateExecution', {
  tenant_id: TenantField,
  instance_id: Uuid,
  runtime_id: Uuid,
});
export type CreateExecution = Static<typeof CreateExecution>;

export const Execution = named(
  'ContinuityExecution',
  'The portable identity of an instance. Its epoch grows with each change of owner or version.',
  {
    continuity_id: Uuid,
    tenant_id: Type.String(),
    current_instance_id: Uuid,
    owner_runtime_id: Uuid,
    epoch: Epoch,
    state: oneOfWords(EXECUTION_STATES),
    updated_at: Timestamp,
  },
);
export type Execution = Static<typeof Execution>;

export const Location = named('ContinuityLocation', {
  continuity_id: Uuid,
  tenant_id: Type.String(),
  epoch: Epoch,
  runtime_id: Uuid,
  instance_id: Uuid,
  handoff_id: orNull(Uuid),
  entered_at: Timestamp,
});
export type Location = Static<typeof Location>;

// ---------------------------------------------------------------- checkpoints

export const BoundaryListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  limit: Limit(1_000, 10_000),
});
export type BoundaryListQuery = Static<typeof BoundaryListQuery>;

export const BoundaryParams = Type.Object({ id: Uuid, checkpoint_id: Uuid });

export const Boundary = named(
  'CheckpointBoundary',
  'A checkpoint at one of the epochs of its instance.',
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
);
export type Boundary = Static<typeof Boundary>;

export const BoundaryDetail = named(
  'CheckpointBoundaryDetail',
  'Whatever looks like a secret is [REDACTED] in the difference, and as it is in the data.',
  {
    boundary: Boundary,
    checkpoint_data: AnyJson,
    previous_checkpoint_id: orNull(Uuid),
    redacted_state_diff: Type.Array(
      Type.Object({ path: Type.String(), before: AnyJson, after: AnyJson }),
    ),
  },
);
export type BoundaryDetail = Static<typeof BoundaryDetail>;

// ---------------------------------------------------------------- effects

export const EffectReceipt = named(
  'EffectReceipt',
  'What a try of a step did outside: prepared while nobody has it, dispatched while somebody is at ' +
    'it, then committed, failed where that is known, or unknown.',
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
);
export type EffectReceipt = Static<typeof EffectReceipt>;

export const EffectListQuery = Type.Object({
  ...TenantQuery.properties,
  limit: Limit(LIST_LIMIT_MAX, LIST_LIMIT_MAX, 1),
  cursor: Cursor,
});
export type EffectListQuery = Static<typeof EffectListQuery>;

export const ResolveEffect = named('ResolveEffect', {
  tenant_id: TenantField,
  state: oneOfWords(EFFECT_STATES),
  provider_receipt_id: optional(Type.String({ maxLength: 256 })),
});
export type ResolveEffect = Static<typeof ResolveEffect>;

// ---------------------------------------------------------------- provenance

/** What callers may add to a chain; the server adds the rest itself. */
export const AppendProvenance = named('AppendProvenance', {
  tenant_id: TenantField,
  kind: oneOfWords(CALLER_PROVENANCE_KINDS),
  payload_sha256: Sha256Input,
});
export type AppendProvenance = Static<typeof AppendProvenance>;

export const ProvenanceEntry = named(
  'ProvenanceEntry',
  'One decision; holds the hash of the entry before it.',
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
);
export type ProvenanceEntry = Static<typeof ProvenanceEntry>;

export const VerifyProvenanceQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  expected_head: Type.Optional(Type.String()),
});
export type VerifyProvenanceQuery = Static<typeof VerifyProvenanceQuery>;

export const ProvenanceVerdict = named(
  'ProvenanceVerdict',
  'code says what is wrong with the first entry that is not right.',
  {
    valid: Type.Boolean(),
    entries_checked: Type.Integer(),
    first_invalid_index: orNull(Type.Integer()),
    code: orNull(Type.String()),
    head_sha256: orNull(Sha256),
  },
);
export type ProvenanceVerdict = Static<typeof ProvenanceVerdict>;

// ---------------------------------------------------------------- live migration

/** The rules of paths are those of `core/continuity/transforms`. */
export const Transform = named(
  'Transform',
  'Paths are dotted and lead into checkpoint_data; what stands under context_snapshot becomes ' +
    'context.data.',
  {
    version: optional(Type.Unsafe<1>({ type: 'integer', enum: [1], default: 1 })),
    transform: oneOfWords(TRANSFORM_OPERATIONS),
    from_path: Type.String(),
    to_path: optional(Type.String({ description: 'Of copy and move; none of drop.' })),
  },
);
export type Transform = Static<typeof Transform>;

export const CaptureCheckpoint = Type.Boolean({
  default: false,
  description: 'First save a checkpoint of the live state.',
});

const RollbackRetention = optional(
  Type.Integer({
    default: 86_400,
    description: 'At least 60 and at most 2,592,000; 86,400 by default.',
  }),
);

export const PlanMigration = named(
  'PlanMigration',
  'What a checkpoint of the source has is moved to where the target looks for it.',
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
    rollback_retention_seconds: RollbackRetention,
    capture_checkpoint: optional(
      noted(
        CaptureCheckpoint,
        'First save a checkpoint of the live state. Without one, and with none saved, 409.',
      ),
    ),
  },
);
export type PlanMigration = Static<typeof PlanMigration>;

export const ApplyMigration = named('ApplyMigration', {
  tenant_id: TenantField,
  approved: optional(Type.Boolean({ default: false })),
});
export type ApplyMigration = Static<typeof ApplyMigration>;

export const MigrationVerdict = oneOfWords(MIGRATION_VERDICTS);
export type MigrationVerdict = Static<typeof MigrationVerdict>;

export const MigrationFinding = named(
  'MigrationFinding',
  'Something that keeps a migration from being automatic.',
  {
    code: Type.String({ description: 'Those that are in finding_codes, and further ones.' }),
    block_id: orNull(Type.String()),
    path: orNull(Type.String({ description: 'With the passes of the loops around it.' })),
    summary: Type.String(),
    remedy: Type.String({ description: 'What would change that.' }),
  },
);
export type MigrationFinding = Static<typeof MigrationFinding>;

export const MigrationPlan = named(
  'MigrationPlan',
  'verdict, also named disposition: automatic may be applied, approval_required with approved ' +
    'true, pin and incompatible never.',
  {
    id: Uuid,
    tenant_id: Type.String(),
    continuity_id: Uuid,
    from_sequence_id: Uuid,
    from_version: Type.Integer(),
    to_sequence_id: Uuid,
    to_version: Type.Integer(),
    disposition: MigrationVerdict,
    verdict: MigrationVerdict,
    transforms: Type.Array(Transform),
    finding_codes: Type.Array(Type.String()),
    findings: noted(
      Type.Array(MigrationFinding),
      'What keeps it from being automatic, in words; empty where nothing does.',
    ),
    rollback_capsule_required: Type.Boolean(),
    created_at: Timestamp,
  },
);
export type MigrationPlan = Static<typeof MigrationPlan>;

const ToSequence = noted(Uuid, 'The version that it goes over to.');
const TargetVersion = noted(
  Type.Integer({ minimum: -INT32_MAX, maximum: INT32_MAX }),
  'Of the same sequence.',
);

/** The check: one of `version` and the ids, and no two different ids. */
const TARGET = {
  version: optional(TargetVersion),
  sequence_id: optional(ToSequence),
  to_sequence_id: optional(noted(Uuid, 'The same as sequence_id.')),
  target_sequence_id: optional(noted(Uuid, 'The same as sequence_id.')),
};

const MigrateDryRun = optional(
  Type.Boolean({ default: false, description: 'Only judges: nothing is changed.' }),
);

const MigrateApproved = optional(
  Type.Boolean({ default: false, description: 'Also where the verdict is approval_required.' }),
);

export const MigrateTo = Type.Object(
  {
    tenant_id: TenantField,
    ...TARGET,
    transforms: optional(Type.Array(Transform, { maxItems: TRANSFORMS_MAX, default: [] })),
    approved: MigrateApproved,
    rollback_retention_seconds: RollbackRetention,
    dry_run: MigrateDryRun,
  },
  { $id: 'MigrateTo', 'x-check': 'migration-target', additionalProperties: false },
);
export type MigrateTo = Static<typeof MigrateTo>;

const SequenceVersion = Type.Object({ sequence_id: Uuid, version: Type.Integer() });

export const MigratedInstance = named(
  'MigratedInstance',
  'migrated is false for a dry run, and where the instance has that version already.',
  {
    migrated: Type.Boolean(),
    instance_id: Uuid,
    from: SequenceVersion,
    to: SequenceVersion,
    verdict: MigrationVerdict,
    finding_codes: Type.Array(Type.String()),
    findings: Type.Array(MigrationFinding),
    state: noted(InstanceStateWord, 'Of the instance, which it keeps.'),
    migration_id: noted(orNull(Uuid), 'What can be rolled back; null when nothing was migrated.'),
    rollback_expires_at: noted(orNull(Timestamp), 'Null when it cannot be rolled back.'),
    dry_run: Type.Optional(Type.Literal(true)),
  },
);
export type MigratedInstance = Static<typeof MigratedInstance>;

export const MIGRATE_MANY_LIMIT_DEFAULT = 200;
export const MIGRATE_MANY_LIMIT_MAX = 1_000;

export const MigrateInstances = Type.Object(
  {
    ...TARGET,
    filter: optional(InstanceFilter),
    approved: MigrateApproved,
    dry_run: MigrateDryRun,
    limit: optional(
      Type.Integer({
        minimum: 1,
        maximum: MIGRATE_MANY_LIMIT_MAX,
        default: MIGRATE_MANY_LIMIT_DEFAULT,
        description: 'Instances that one call looks at.',
      }),
    ),
    cursor: optional(
      Type.String({
        'x-check': 'empty-is-absent',
        description: 'next_cursor of the call before.',
      }),
    ),
  },
  { $id: 'MigrateInstances', 'x-check': 'migration-target', additionalProperties: false },
);
export type MigrateInstances = Static<typeof MigrateInstances>;

const FindingOfMany = named('FindingOfMany', 'What keeps some of them where they are.', {
  code: Type.String(),
  count: noted(Natural, 'Instances.'),
  summary: noted(Type.String(), 'Of the first one.'),
  remedy: Type.String(),
  example_ids: Type.Array(Uuid),
});

const MigrationOfMany = named('MigrationOfMany', 'One that went over.', {
  instance_id: Uuid,
  migration_id: noted(Uuid, 'What can be rolled back.'),
});

export const InstancesMigrated = named(
  'InstancesMigrated',
  'What became of the instances that this call has looked at.',
  {
    count: noted(Natural, 'All of them.'),
    automatic: noted(Natural, 'Those that could go over.'),
    migrated: noted(Natural, 'Those that did: none in a dry run.'),
    approval_required: noted(Natural, 'Those that go over when they are approved.'),
    pinned: Natural,
    incompatible: Natural,
    failed: noted(Natural, 'Refused for another reason, such as a step at work: ask again.'),
    findings: Type.Array(FindingOfMany),
    migrations: noted(Type.Array(MigrationOfMany), 'Of those that did, in no order.'),
    done: noted(Type.Boolean(), 'False: there are more, behind next_cursor.'),
    next_cursor: orNull(Type.String()),
    dry_run: Type.Boolean(),
  },
);
export type InstancesMigrated = Static<typeof InstancesMigrated>;

export const PayloadArtifact = named('PayloadArtifact', {
  key: Type.String(),
  sha256: Sha256,
  bytes: Natural,
});
export type PayloadArtifact = Static<typeof PayloadArtifact>;

export const RollbackCapsule = named('RollbackCapsule', {
  capsule_id: Uuid,
  payload_artifact: PayloadArtifact,
  manifest_sha256: Sha256,
  public_key: Type.String(),
  signature: Type.String(),
});
export type RollbackCapsule = Static<typeof RollbackCapsule>;

const CheckpointRecord = Type.Object({
  id: Uuid,
  instance_id: Uuid,
  checkpoint_data: AnyJson,
  created_at: Timestamp,
});
export type CheckpointRecord = Static<typeof CheckpointRecord>;

export const MigrationRecord = named('MigrationRecord', 'A plan, and what became of it.', {
  plan: MigrationPlan,
  expected_epoch: Epoch,
  source_checkpoint: CheckpointRecord,
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
});
export type MigrationRecord = Static<typeof MigrationRecord>;
