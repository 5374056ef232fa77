/**
 * Wire shapes of continuity: executions with an owner and an epoch, effect receipts, provenance, and live migration.
 * Runtimes and handoffs are in `handoff.ts`.
 */

import { type Static, Type } from '@sinclair/typebox';
import {
  AnyJson,
  Cursor,
  flag,
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
  refOrNull,
  TenantQuery,
  Timestamp,
  Uuid,
  Version,
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
import { Checkpoint } from './edits.js';
import { InstanceFilter } from './instance-filter.js';

/** Default: the tenant of the header. */
export const TenantField = optional(Type.String());

export const TenantBody = named('TenantBody', { tenant_id: TenantField });

export const SHA256_PATTERN = '^[0-9a-f]{64}$';
export const Sha256 = Type.String({ pattern: SHA256_PATTERN });
/** Callers may use upper case. */
export const SHA256_INPUT_PATTERN = '^[0-9a-fA-F]{64}$';
export const Sha256Input = Type.String({ pattern: SHA256_INPUT_PATTERN });
export const Epoch = Type.Integer({ minimum: 0, maximum: INTEGER_MAX });

export const CreateExecution = named('CreateExecution', {
  tenant_id: TenantField,
  instance_id: Uuid,
  runtime_id: Uuid,
});

export const Execution = named(
  'ContinuityExecution',
  'Portable identity of an instance. Changes of owner or version raise its epoch.',
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

export const BoundaryListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  limit: Limit(1_000, 10_000),
});

export const BoundaryParams = Type.Object({ id: Uuid, checkpoint_id: Uuid });

export const Boundary = named('CheckpointBoundary', 'A checkpoint at an epoch of its instance.', {
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
});
export type Boundary = Static<typeof Boundary>;

export const BoundaryDetail = named(
  'CheckpointBoundaryDetail',
  'Probable secrets are [REDACTED] in the diff, not in the data.',
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

export const EffectReceipt = named(
  'EffectReceipt',
  'External effect of a step attempt: prepared (unclaimed), ' +
    'dispatched (in progress), then committed, failed or unknown.',
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

export const ResolveEffect = named('ResolveEffect', {
  tenant_id: TenantField,
  state: oneOfWords(EFFECT_STATES),
  provider_receipt_id: optional(Type.String({ maxLength: 256 })),
});

export const AppendProvenance = named('AppendProvenance', {
  tenant_id: TenantField,
  kind: oneOfWords(CALLER_PROVENANCE_KINDS),
  payload_sha256: Sha256Input,
});

export const ProvenanceEntry = named('ProvenanceEntry', 'A decision, with the previous hash.', {
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
});
export type ProvenanceEntry = Static<typeof ProvenanceEntry>;

export const VerifyProvenanceQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  expected_head: Type.Optional(Type.String()),
});

export const ProvenanceVerdict = named('ProvenanceVerdict', 'code: error of the first bad entry.', {
  valid: Type.Boolean(),
  entries_checked: Type.Integer(),
  first_invalid_index: orNull(Type.Integer()),
  code: orNull(Type.String()),
  head_sha256: orNull(Sha256),
});
export type ProvenanceVerdict = Static<typeof ProvenanceVerdict>;

/** Path rules are in `core/continuity/transforms`. */
export const Transform = named(
  'Transform',
  'Paths are dotted, within checkpoint_data; context_snapshot becomes context.data.',
  {
    version: optional(Type.Unsafe<1>({ type: 'integer', enum: [1], default: 1 })),
    transform: oneOfWords(TRANSFORM_OPERATIONS),
    from_path: Type.String(),
    to_path: optional(Type.String({ description: 'Required for copy and move; none for drop.' })),
  },
);
export type Transform = Static<typeof Transform>;

export const CaptureCheckpoint = Type.Boolean({
  default: false,
  description: 'First saves a checkpoint of the live state.',
});

const RollbackRetention = noted(
  optional(Type.Integer({ default: 86_400 })),
  'At least 60 and at most 2,592,000; default: 86,400.',
);

export const PlanMigration = named('PlanMigration', 'Moves data to where the target expects it.', {
  tenant_id: TenantField,
  continuity_id: Uuid,
  to_sequence_id: Uuid,
  to_version: noted(Version, 'Version of to_sequence_id, else 404.'),
  transforms: optional(Type.Array(Transform, { maxItems: TRANSFORMS_MAX, default: [] })),
  rollback_retention_seconds: RollbackRetention,
  capture_checkpoint: noted(
    optional(CaptureCheckpoint),
    'First saves a checkpoint of the live state. Without any checkpoint: 409.',
  ),
});
export type PlanMigration = Static<typeof PlanMigration>;

export const ApplyMigration = named('ApplyMigration', {
  tenant_id: TenantField,
  approved: flag(false),
});

export const MigrationVerdict = oneOfWords(MIGRATION_VERDICTS);
export type MigrationVerdict = Static<typeof MigrationVerdict>;

export const MigrationFinding = named('MigrationFinding', 'Why a migration is not automatic.', {
  code: Type.String({ description: 'The codes of finding_codes, and further ones.' }),
  block_id: orNull(Type.String()),
  path: orNull(Type.String({ description: 'Includes the iterations of enclosing loops.' })),
  summary: Type.String(),
  remedy: Type.String({ description: 'How to resolve it.' }),
});
export type MigrationFinding = Static<typeof MigrationFinding>;

export const MigrationPlan = named(
  'MigrationPlan',
  'automatic: can be applied. approval_required: only with approved true. ' +
    'pin, incompatible: never. disposition is an alias of verdict.',
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
    findings: noted(Type.Array(MigrationFinding), 'Why it is not automatic; empty if it is.'),
    rollback_capsule_required: Type.Boolean(),
    created_at: Timestamp,
  },
);
export type MigrationPlan = Static<typeof MigrationPlan>;

const ToSequence = noted(Uuid, 'Id of the target version.');
const TargetVersion = noted(Version, 'Version of the same sequence.');

/** The check: a version or an id is required, and all ids are equal. */
const TARGET = {
  version: optional(TargetVersion),
  sequence_id: optional(ToSequence),
  to_sequence_id: optional(noted(Uuid, 'Alias of sequence_id.')),
  target_sequence_id: optional(noted(Uuid, 'Alias of sequence_id.')),
};

const MigrateDryRun = noted(flag(false), 'Only returns the verdict: nothing is changed.');

const MigrateApproved = noted(flag(false), 'Also migrates where the verdict is approval_required.');

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
  'migrated is false in a dry run, or if the version is the same.',
  {
    migrated: Type.Boolean(),
    instance_id: Uuid,
    from: SequenceVersion,
    to: SequenceVersion,
    verdict: MigrationVerdict,
    finding_codes: Type.Array(Type.String()),
    findings: Type.Array(MigrationFinding),
    state: noted(InstanceStateWord, 'State of the instance, which does not change.'),
    migration_id: noted(orNull(Uuid), 'Required for a rollback; null if nothing was migrated.'),
    rollback_expires_at: noted(orNull(Timestamp), 'Null if it cannot be rolled back.'),
    dry_run: Type.Optional(Type.Literal(true)),
  },
);
export type MigratedInstance = Static<typeof MigratedInstance>;

export const MIGRATE_MANY_LIMIT_DEFAULT = 200;
const MIGRATE_MANY_LIMIT_MAX = 1_000;

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
        description: 'Instances examined by one request.',
      }),
    ),
    cursor: noted(
      optional(Type.String({ 'x-check': 'empty-is-absent' })),
      'next_cursor of the previous response.',
    ),
  },
  { $id: 'MigrateInstances', 'x-check': 'migration-target', additionalProperties: false },
);
export type MigrateInstances = Static<typeof MigrateInstances>;

const FindingOfMany = named('FindingOfMany', 'A reason why some instances were not migrated.', {
  code: Type.String(),
  count: noted(Natural, 'Affected instances.'),
  summary: noted(Type.String(), 'Summary for the first one.'),
  remedy: Type.String(),
  example_ids: Type.Array(Uuid),
});

const MigrationOfMany = named('MigrationOfMany', 'A migrated instance.', {
  instance_id: Uuid,
  migration_id: noted(Uuid, 'Required for a rollback.'),
});

export const InstancesMigrated = named('InstancesMigrated', 'Results for the examined instances.', {
  count: noted(Natural, 'Examined instances.'),
  automatic: noted(Natural, 'Instances that can be migrated.'),
  migrated: noted(Natural, 'Migrated instances; 0 in a dry run.'),
  approval_required: noted(Natural, 'Instances that need approval.'),
  pinned: Natural,
  incompatible: Natural,
  failed: noted(Natural, 'Refused for another reason, such as a running step; try later.'),
  findings: Type.Array(FindingOfMany),
  migrations: noted(Type.Array(MigrationOfMany), 'The migrated instances, in no order.'),
  done: noted(Type.Boolean(), 'False: continue with next_cursor.'),
  next_cursor: orNull(Type.String()),
  dry_run: Type.Boolean(),
});
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

const CheckpointRecord = Type.Object(Checkpoint.properties);
export type CheckpointRecord = Static<typeof CheckpointRecord>;

export const MigrationRecord = named('MigrationRecord', 'A plan and its result.', {
  plan: MigrationPlan,
  expected_epoch: Epoch,
  source_checkpoint: CheckpointRecord,
  source_context: JsonObjectSchema,
  source_state: InstanceStateWord,
  rollback_capsule: refOrNull(RollbackCapsule),
  state: oneOfWords(MIGRATION_STATES),
  applied_epoch: orNull(Epoch),
  rollback_expires_at: Timestamp,
  applied_at: orNull(Timestamp),
  rolled_back_at: orNull(Timestamp),
});
export type MigrationRecord = Static<typeof MigrationRecord>;
