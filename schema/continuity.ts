/**
 * Wire shapes of continuity: executions with an owner and an epoch, effect receipts, provenance, and live migration.
 * Runtimes and handoffs are in `handoff.ts`.
 */

import * as t from './common.js';
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
export const TenantField = t.nullish(t.text());

export const TenantBody = t.named('TenantBody', { tenant_id: TenantField });

export const SHA256_PATTERN = '^[0-9a-f]{64}$';
export const Sha256 = t.text({ pattern: SHA256_PATTERN });
/** Callers may use upper case. */
export const SHA256_INPUT_PATTERN = '^[0-9a-fA-F]{64}$';
export const Sha256Input = t.text({ pattern: SHA256_INPUT_PATTERN });
export const Epoch = t.integer({ minimum: 0, maximum: t.INTEGER_MAX });

export const CreateExecution = t.named('CreateExecution', {
  tenant_id: TenantField,
  instance_id: t.Uuid,
  runtime_id: t.Uuid,
});

export const Execution = t.named('ContinuityExecution', 'Portable identity of an instance.', {
  continuity_id: t.Uuid,
  tenant_id: t.text(),
  current_instance_id: t.Uuid,
  owner_runtime_id: t.Uuid,
  epoch: t.noted(Epoch, 'Ownership epoch, raised by changes of owner or version.'),
  state: t.oneOf(EXECUTION_STATES),
  updated_at: t.Timestamp,
});
export type Execution = t.Static<typeof Execution>;

export const Location = t.named('ContinuityLocation', {
  continuity_id: t.Uuid,
  tenant_id: t.text(),
  epoch: Epoch,
  runtime_id: t.Uuid,
  instance_id: t.Uuid,
  handoff_id: t.nullable(t.Uuid),
  entered_at: t.Timestamp,
});
export type Location = t.Static<typeof Location>;

export const BoundaryListQuery = t.object({
  tenant_id: t.optional(t.text()),
  limit: t.Limit(1_000, 10_000),
});

export const BoundaryParams = t.object({ id: t.Uuid, checkpoint_id: t.Uuid });

export const Boundary = t.named('CheckpointBoundary', 'A checkpoint at an epoch of its instance.', {
  checkpoint_id: t.Uuid,
  instance_id: t.Uuid,
  continuity_id: t.Uuid,
  epoch: Epoch,
  sequence_id: t.Uuid,
  sequence_version: t.integer(),
  block_id: t.text(),
  checkpoint_sha256: Sha256,
  provenance_head: t.nullable(Sha256),
  created_at: t.Timestamp,
});
export type Boundary = t.Static<typeof Boundary>;

export const BoundaryDetail = t.named('CheckpointBoundaryDetail', {
  boundary: Boundary,
  checkpoint_data: t.noted(t.AnyJson, 'Value of the checkpoint; not redacted, unlike the diff.'),
  previous_checkpoint_id: t.nullable(t.Uuid),
  redacted_state_diff: t.list(t.object({ path: t.text(), before: t.AnyJson, after: t.AnyJson })),
});
export type BoundaryDetail = t.Static<typeof BoundaryDetail>;

export const EffectReceipt = t.named('EffectReceipt', 'An external effect of a step attempt.', {
  id: t.Uuid,
  tenant_id: t.text(),
  continuity_id: t.Uuid,
  epoch: Epoch,
  instance_id: t.Uuid,
  block_id: t.text(),
  attempt: t.integer(),
  kind: t.oneOf(EFFECT_KINDS),
  state: t.oneOf(EFFECT_STATES, 'prepared: unclaimed; dispatched: in progress.'),
  destination_fingerprint: Sha256,
  idempotency_key: t.nullable(t.text()),
  request_sha256: Sha256,
  provider_receipt_id: t.nullable(t.text()),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type EffectReceipt = t.Static<typeof EffectReceipt>;

export const EffectListQuery = t.object({
  ...t.TenantQuery.properties,
  limit: t.Limit(t.LIST_LIMIT_MAX, t.LIST_LIMIT_MAX, 1),
  cursor: t.Cursor,
});

export const ResolveEffect = t.named('ResolveEffect', {
  tenant_id: TenantField,
  state: t.oneOf(EFFECT_STATES),
  provider_receipt_id: t.nullish(t.text({ maxLength: 256 })),
});

export const AppendProvenance = t.named('AppendProvenance', {
  tenant_id: TenantField,
  kind: t.oneOf(CALLER_PROVENANCE_KINDS),
  payload_sha256: Sha256Input,
});

export const ProvenanceEntry = t.named('ProvenanceEntry', 'A decision, with the previous hash.', {
  id: t.Uuid,
  continuity_id: t.Uuid,
  tenant_id: t.text(),
  epoch: Epoch,
  kind: t.text(),
  redacted_summary: t.optional(t.text()),
  payload_sha256: Sha256,
  previous_sha256: t.nullable(Sha256),
  entry_sha256: Sha256,
  signing_key_id: t.nullable(t.text()),
  signature: t.nullable(t.text()),
  created_at: t.Timestamp,
});
export type ProvenanceEntry = t.Static<typeof ProvenanceEntry>;

export const VerifyProvenanceQuery = t.object({
  tenant_id: t.optional(t.text()),
  expected_head: t.optional(t.text()),
});

export const ProvenanceVerdict = t.named('ProvenanceVerdict', {
  valid: t.boolean(),
  entries_checked: t.integer(),
  first_invalid_index: t.nullable(t.integer()),
  code: t.nullable(t.text(), 'Error code of the first invalid entry.'),
  head_sha256: t.nullable(Sha256),
});
export type ProvenanceVerdict = t.Static<typeof ProvenanceVerdict>;

/** Path rules are in `core/continuity/transforms`. */
export const Transform = t.named('Transform', {
  version: t.nullish(t.typed<1>({ type: 'integer', enum: [1], default: 1 })),
  transform: t.oneOf(TRANSFORM_OPERATIONS),
  from_path: t.text('Dotted path in checkpoint_data; context_snapshot becomes context.data.'),
  to_path: t.nullish(t.text('Target path, for copy and move only.')),
});
export type Transform = t.Static<typeof Transform>;

export const CaptureCheckpoint = t.boolean({
  default: false,
  description: 'First saves a checkpoint of the live state.',
});

const RollbackRetention = t.nullish(
  t.integer({ default: 86_400 }),
  'Time for a rollback in seconds: 60 to 2,592,000; default: 86,400.',
);

export const PlanMigration = t.named('PlanMigration', {
  tenant_id: TenantField,
  continuity_id: t.Uuid,
  to_sequence_id: t.Uuid,
  to_version: t.noted(t.Version, 'Version of to_sequence_id, else 404.'),
  transforms: t.nullish(t.list(Transform, { maxItems: TRANSFORMS_MAX, default: [] })),
  rollback_retention_seconds: RollbackRetention,
  capture_checkpoint: t.nullish(
    CaptureCheckpoint,
    'First saves a checkpoint of the live state. Without any checkpoint: 409.',
  ),
});
export type PlanMigration = t.Static<typeof PlanMigration>;

export const ApplyMigration = t.named('ApplyMigration', {
  tenant_id: TenantField,
  approved: t.flag(false),
});

export const MigrationVerdict = t.oneOf(MIGRATION_VERDICTS);
export type MigrationVerdict = t.Static<typeof MigrationVerdict>;

export const MigrationFinding = t.named('MigrationFinding', 'Why a migration is not automatic.', {
  code: t.text('One of finding_codes, or another code.'),
  block_id: t.nullable(t.text()),
  path: t.nullable(t.text('Path with the iterations of enclosing loops.')),
  summary: t.text(),
  remedy: t.text('How to resolve the finding.'),
});
export type MigrationFinding = t.Static<typeof MigrationFinding>;

export const MigrationPlan = t.named('MigrationPlan', {
  id: t.Uuid,
  tenant_id: t.text(),
  continuity_id: t.Uuid,
  from_sequence_id: t.Uuid,
  from_version: t.integer(),
  to_sequence_id: t.Uuid,
  to_version: t.integer(),
  disposition: t.noted(MigrationVerdict, 'Alias of verdict.'),
  verdict: t.noted(
    MigrationVerdict,
    'automatic: can be applied; approval_required: with approved true; pin, incompatible: never.',
  ),
  transforms: t.list(Transform),
  finding_codes: t.list(t.text()),
  findings: t.list(MigrationFinding, 'Why the migration is not automatic; empty if it is.'),
  rollback_capsule_required: t.boolean(),
  created_at: t.Timestamp,
});
export type MigrationPlan = t.Static<typeof MigrationPlan>;

const ToSequence = t.noted(t.Uuid, 'Id of the target version.');
const TargetVersion = t.noted(t.Version, 'Version of the same sequence.');

/** The check: a version or an id is required, and all ids are equal. */
const TARGET = {
  version: t.nullish(TargetVersion),
  sequence_id: t.nullish(ToSequence),
  to_sequence_id: t.nullish(t.Uuid, 'Alias of sequence_id.'),
  target_sequence_id: t.nullish(t.Uuid, 'Alias of sequence_id.'),
};

const MigrateDryRun = t.flag(false, 'Only returns the verdict: nothing is changed.');

const MigrateApproved = t.flag(false, 'Also migrates where the verdict is approval_required.');

export const MigrateTo = t.object(
  {
    tenant_id: TenantField,
    ...TARGET,
    transforms: t.nullish(t.list(Transform, { maxItems: TRANSFORMS_MAX, default: [] })),
    approved: MigrateApproved,
    rollback_retention_seconds: RollbackRetention,
    dry_run: MigrateDryRun,
  },
  { $id: 'MigrateTo', 'x-check': 'migration-target', additionalProperties: false },
);
export type MigrateTo = t.Static<typeof MigrateTo>;

const SequenceVersion = t.object({ sequence_id: t.Uuid, version: t.integer() });

export const MigratedInstance = t.named('MigratedInstance', {
  migrated: t.boolean('False in a dry run, or if the version is the same.'),
  instance_id: t.Uuid,
  from: SequenceVersion,
  to: SequenceVersion,
  verdict: MigrationVerdict,
  finding_codes: t.list(t.text()),
  findings: t.list(MigrationFinding),
  state: t.noted(t.InstanceStateWord, 'State of the instance, which does not change.'),
  migration_id: t.nullable(t.Uuid, 'Required for a rollback; null if nothing was migrated.'),
  rollback_expires_at: t.nullable(t.Timestamp, 'Deadline of a rollback; null: none.'),
  dry_run: t.optional(t.literal(true)),
});
export type MigratedInstance = t.Static<typeof MigratedInstance>;

export const MIGRATE_MANY_LIMIT_DEFAULT = 200;
const MIGRATE_MANY_LIMIT_MAX = 1_000;

export const MigrateInstances = t.object(
  {
    ...TARGET,
    filter: t.nullish(InstanceFilter),
    approved: MigrateApproved,
    dry_run: MigrateDryRun,
    limit: t.nullish(
      t.integer({
        minimum: 1,
        maximum: MIGRATE_MANY_LIMIT_MAX,
        default: MIGRATE_MANY_LIMIT_DEFAULT,
        description: 'Maximum number of instances examined by one request.',
      }),
    ),
    cursor: t.nullish(t.text({ 'x-check': 'empty-is-absent' }), 'The previous next_cursor.'),
  },
  { $id: 'MigrateInstances', 'x-check': 'migration-target', additionalProperties: false },
);
export type MigrateInstances = t.Static<typeof MigrateInstances>;

const FindingOfMany = t.named('FindingOfMany', 'A reason why some instances were not migrated.', {
  code: t.text(),
  count: t.noted(t.Natural, 'Number of affected instances.'),
  summary: t.text('Summary for the first affected instance.'),
  remedy: t.text(),
  example_ids: t.list(t.Uuid),
});

const MigrationOfMany = t.named('MigrationOfMany', 'A migrated instance.', {
  instance_id: t.Uuid,
  migration_id: t.noted(t.Uuid, 'Id of the migration, for a rollback.'),
});

export const InstancesMigrated = t.named('InstancesMigrated', {
  count: t.noted(t.Natural, 'Number of examined instances.'),
  automatic: t.noted(t.Natural, 'Number of instances that can be migrated.'),
  migrated: t.noted(t.Natural, 'Number of migrated instances; 0 in a dry run.'),
  approval_required: t.noted(t.Natural, 'Number of instances that need approval.'),
  pinned: t.Natural,
  incompatible: t.Natural,
  failed: t.noted(t.Natural, 'Number refused for another reason, such as a running step.'),
  findings: t.list(FindingOfMany),
  migrations: t.list(MigrationOfMany, 'The migrated instances, in no order.'),
  done: t.boolean('False: continue with next_cursor.'),
  next_cursor: t.nullable(t.text()),
  dry_run: t.boolean(),
});
export type InstancesMigrated = t.Static<typeof InstancesMigrated>;

export const PayloadArtifact = t.named('PayloadArtifact', {
  key: t.text(),
  sha256: Sha256,
  bytes: t.Natural,
});

export const RollbackCapsule = t.named('RollbackCapsule', {
  capsule_id: t.Uuid,
  payload_artifact: PayloadArtifact,
  manifest_sha256: Sha256,
  public_key: t.text(),
  signature: t.text(),
});
export type RollbackCapsule = t.Static<typeof RollbackCapsule>;

const CheckpointRecord = t.object(Checkpoint.properties);
export type CheckpointRecord = t.Static<typeof CheckpointRecord>;

export const MigrationRecord = t.named('MigrationRecord', 'A plan and its result.', {
  plan: MigrationPlan,
  expected_epoch: Epoch,
  source_checkpoint: CheckpointRecord,
  source_context: t.JsonObjectSchema,
  source_state: t.InstanceStateWord,
  rollback_capsule: t.refOrNull(RollbackCapsule),
  state: t.oneOf(MIGRATION_STATES),
  applied_epoch: t.nullable(Epoch),
  rollback_expires_at: t.Timestamp,
  applied_at: t.nullable(t.Timestamp),
  rolled_back_at: t.nullable(t.Timestamp),
});
export type MigrationRecord = t.Static<typeof MigrationRecord>;
