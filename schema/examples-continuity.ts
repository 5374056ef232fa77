/**
 * Examples of continuity: an instance of `order` goes over to the second version of its sequence, and
 * another one from a server to a laptop.
 */

import type { JsonValue } from '../src/base/json.js';
import { AT, EXAMPLE_IDS, EXAMPLE_TENANT, LATER, UNTIL } from './example-ids.js';

/** Stands for a digest; each differs in its first digit only. */
const digest = (digit: string): string => digit + '0123456789abcdef'.repeat(4).slice(1);
/** Stand for 32, 48 and 64 bytes. */
const BYTES_32 = `${'ZXhh'.repeat(10)}ZXg=`;
const BYTES_48 = 'ZXhh'.repeat(16);
const BYTES_64 = `${'ZXhh'.repeat(21)}ZQ==`;

/** What takes the place of these in a request that is really sent. */
export const EXAMPLE_DIGEST = digest('a');
export const EXAMPLE_TRANSFER_KEY = BYTES_32;

const tenant_id = EXAMPLE_TENANT;
const continuity_id = EXAMPLE_IDS.instance;
const of = { continuity_id, tenant_id };

const execution = {
  ...of,
  current_instance_id: EXAMPLE_IDS.instance,
  owner_runtime_id: EXAMPLE_IDS.runtime,
  epoch: 0,
  state: 'owned',
  updated_at: AT,
};

const boundary = {
  checkpoint_id: EXAMPLE_IDS.checkpoint,
  instance_id: EXAMPLE_IDS.instance,
  continuity_id,
  epoch: 0,
  sequence_id: EXAMPLE_IDS.sequence,
  sequence_version: 1,
  block_id: 'charge',
  checkpoint_sha256: digest('1'),
  provenance_head: null,
  created_at: LATER,
};

const checkpoint_data = {
  safe_boundary: 'charge',
  completed_blocks: [],
  context_snapshot: { amount: 4_200, size: 'large' },
};

const receipt = {
  id: EXAMPLE_IDS.task,
  ...of,
  epoch: 0,
  instance_id: EXAMPLE_IDS.instance,
  block_id: 'charge',
  attempt: 0,
  kind: 'worker',
  state: 'dispatched',
  destination_fingerprint: digest('2'),
  idempotency_key: null,
  request_sha256: digest('3'),
  provider_receipt_id: null,
  created_at: AT,
  updated_at: AT,
};

const entry = {
  id: EXAMPLE_IDS.entry,
  ...of,
  epoch: 0,
  kind: 'execution_created',
  redacted_summary: 'execution created',
  payload_sha256: digest('4'),
  previous_sha256: null,
  entry_sha256: digest('5'),
  signing_key_id: 'continuity-signing-5f0c2b7a91e4d836',
  signature: BYTES_64,
  created_at: AT,
};

const transform = {
  version: 1,
  transform: 'copy',
  from_path: 'context_snapshot.size',
  to_path: 'context_snapshot.order.size',
};

const plan = {
  id: EXAMPLE_IDS.migration,
  ...of,
  from_sequence_id: EXAMPLE_IDS.sequence,
  from_version: 1,
  to_sequence_id: EXAMPLE_IDS.nextSequence,
  to_version: 2,
  disposition: 'approval_required',
  verdict: 'approval_required',
  transforms: [transform],
  finding_codes: ['BLOCK_ADDED', 'HISTORICAL_REPLAY_PASS'],
  findings: [],
  rollback_capsule_required: true,
  created_at: LATER,
};

const artifact = {
  key: `capsules/${EXAMPLE_IDS.capsule}`,
  sha256: digest('6'),
  bytes: 1_421,
};
const signed = { public_key: BYTES_32, signature: BYTES_64 };

const capabilities = {
  runtime_id: EXAMPLE_IDS.laptop,
  kind: 'desktop',
  trust: 'registered',
  handlers: ['charge-card'],
  regions: ['eu'],
  offline_capable: true,
  draining: false,
  connectivity: 'wifi',
  battery_percent: 80,
  observed_at: AT,
  expires_at: UNTIL,
};

const requirements = { handlers: ['charge-card'], minimum_trust: 'registered' };
const locality_policy = {
  version: 1,
  rules: [{ classification: 'confidential', allowed_runtime_ids: [EXAMPLE_IDS.laptop] }],
};
const terms = { requirements, locality_policy, data_classification: 'confidential' };

const decision = {
  id: EXAMPLE_IDS.placement,
  tenant_id,
  continuity_id,
  epoch: 0,
  selected_runtime_id: EXAMPLE_IDS.laptop,
  requirements,
  policy: locality_policy,
  classification: 'confidential',
  policy_version: 1,
  candidates: [
    {
      runtime_id: EXAMPLE_IDS.laptop,
      outcome: 'allow',
      score: 23,
      score_factors: {
        trust: 10,
        current_runtime: 0,
        offline_capable: 3,
        battery_rank: 10,
        cost_rank: 0,
        latency_rank: 0,
      },
      finding_codes: ['COMPATIBLE', 'POLICY_ALLOW'],
    },
  ],
  created_at: AT,
};

const handoff = {
  id: EXAMPLE_IDS.handoff,
  ...of,
  source_runtime_id: EXAMPLE_IDS.runtime,
  destination_runtime_id: EXAMPLE_IDS.laptop,
  expected_epoch: 0,
  state: 'requested',
  capsule_id: null,
  placement_decision_id: EXAMPLE_IDS.placement,
  preview_sha256: EXAMPLE_DIGEST,
  version: 0,
  failure_code: null,
  ...terms,
  created_at: AT,
  updated_at: AT,
};
const exported = {
  ...handoff,
  state: 'exported',
  capsule_id: EXAMPLE_IDS.capsule,
  version: 2,
  updated_at: LATER,
};

const manifest = {
  schema: { major: 1, minor: 0 },
  capsule_id: EXAMPLE_IDS.capsule,
  continuity_id,
  source_instance_id: EXAMPLE_IDS.instance,
  epoch: 0,
  tenant_id,
  source_runtime_id: EXAMPLE_IDS.runtime,
  allowed_destination_runtime_id: EXAMPLE_IDS.laptop,
  sequence: { id: EXAMPLE_IDS.sequence, version: 1, content_sha256: digest('7') },
  checkpoint: { block_id: 'charge', sha256: digest('8') },
  requirements_sha256: digest('9'),
  payload_artifact: artifact,
  provenance_head: entry.entry_sha256,
  issued_at: LATER,
  expires_at: UNTIL,
  signing_key_id: entry.signing_key_id,
  encryption_key_id: 'continuity-transfer-0a61d7f3c5b2e948',
};
const capsule = { manifest, manifest_sha256: digest('b'), ...signed };
const payload_base64 = BYTES_48;

const imported = JSON.stringify({ capsule_id: EXAMPLE_IDS.capsule, kind: 'capsule_imported' });
const granted = JSON.stringify({ capsule_id: EXAMPLE_IDS.capsule, kind: 'ownership_granted' });
const importReceipt = { statement: imported, ...signed };
const ownershipGrant = { statement: granted, ...signed };

/** By the `$id` of the schema. */
const claimed = {
  code: 'CLAIMED_CALL_CHANGED',
  block_id: 'charge',
  path: 'orders[2]/charge',
  summary: 'a worker has a task of step charge, whose params are others in the target',
  remedy:
    'let the worker complete or fail the task, and ask again; or keep handler and params of the step',
};
const manyClaimed = {
  code: claimed.code,
  count: 1,
  summary: claimed.summary,
  remedy: claimed.remedy,
  example_ids: [EXAMPLE_IDS.instance],
};

export const CONTINUITY_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  TenantBody: { tenant_id },
  CreateExecution: {
    tenant_id,
    instance_id: EXAMPLE_IDS.instance,
    runtime_id: EXAMPLE_IDS.runtime,
  },
  ContinuityExecution: execution,
  ContinuityLocation: {
    ...of,
    epoch: 0,
    runtime_id: EXAMPLE_IDS.runtime,
    instance_id: EXAMPLE_IDS.instance,
    handoff_id: null,
    entered_at: AT,
  },
  CheckpointBoundary: boundary,
  CheckpointBoundaryDetail: {
    boundary,
    checkpoint_data,
    previous_checkpoint_id: null,
    redacted_state_diff: [{ path: 'safe_boundary', before: null, after: 'charge' }],
  },
  EffectReceipt: receipt,
  ResolveEffect: { state: 'verified', provider_receipt_id: 'ch_77' },
  AppendProvenance: { kind: 'package_identity', payload_sha256: EXAMPLE_DIGEST },
  ProvenanceEntry: entry,
  ProvenanceVerdict: {
    valid: true,
    entries_checked: 1,
    first_invalid_index: null,
    code: null,
    head_sha256: entry.entry_sha256,
  },

  MigrationFinding: claimed,
  MigrateTo: { version: 2 },
  MigratedInstance: {
    migrated: true,
    instance_id: EXAMPLE_IDS.instance,
    from: { sequence_id: EXAMPLE_IDS.sequence, version: 1 },
    to: { sequence_id: EXAMPLE_IDS.nextSequence, version: 2 },
    verdict: 'automatic',
    finding_codes: ['BLOCK_ADDED', 'HISTORICAL_REPLAY_PASS'],
    findings: [],
    state: 'waiting',
    migration_id: plan.id,
    rollback_expires_at: '2026-11-03T08:00:01.250Z',
  },
  MigrateInstances: { version: 2, filter: { states: ['waiting'] }, dry_run: true },
  FindingOfMany: manyClaimed,
  MigrationOfMany: { instance_id: EXAMPLE_IDS.instance, migration_id: plan.id },
  InstancesMigrated: {
    count: 2,
    automatic: 1,
    migrated: 1,
    approval_required: 0,
    pinned: 1,
    incompatible: 0,
    failed: 0,
    findings: [manyClaimed],
    migrations: [{ instance_id: EXAMPLE_IDS.instance, migration_id: plan.id }],
    done: true,
    next_cursor: null,
    dry_run: false,
  },
  Transform: transform,
  PlanMigration: {
    continuity_id,
    to_sequence_id: EXAMPLE_IDS.nextSequence,
    to_version: 2,
    transforms: [transform],
    capture_checkpoint: true,
  },
  MigrationPlan: plan,
  ApplyMigration: { approved: true },
  PayloadArtifact: artifact,
  RollbackCapsule: {
    capsule_id: EXAMPLE_IDS.capsule,
    payload_artifact: artifact,
    manifest_sha256: capsule.manifest_sha256,
    ...signed,
  },
  MigrationRecord: {
    plan,
    expected_epoch: 0,
    source_checkpoint: {
      id: EXAMPLE_IDS.checkpoint,
      instance_id: EXAMPLE_IDS.instance,
      checkpoint_data,
      created_at: LATER,
    },
    source_context: { data: checkpoint_data.context_snapshot },
    source_state: 'paused',
    rollback_capsule: null,
    state: 'planned',
    applied_epoch: null,
    rollback_expires_at: '2026-11-03T08:00:01.250Z',
    applied_at: null,
    rolled_back_at: null,
  },

  RegisterRuntime: { capabilities },
  RuntimeCapabilities: capabilities,
  Requirements: requirements,
  LocalityPolicy: locality_policy,
  PlaceExecution: terms,
  PlacementDecision: decision,
  PreviewHandoff: { ...terms, destination_runtime_id: EXAMPLE_IDS.laptop },
  HandoffPreview: {
    continuity_id,
    source_runtime_id: EXAMPLE_IDS.runtime,
    destination_runtime_id: EXAMPLE_IDS.laptop,
    compatible: true,
    findings: [
      { code: 'COMPATIBLE', status: 'pass', summary: 'the runtime offers all that is required' },
    ],
    unresolved_effects: [],
    placement_decision: decision,
    placement_decision_id: EXAMPLE_IDS.placement,
    preview_sha256: EXAMPLE_DIGEST,
  },
  CreateHandoff: {
    ...terms,
    placement_decision_id: EXAMPLE_IDS.placement,
    preview_sha256: EXAMPLE_DIGEST,
    destination_runtime_id: EXAMPLE_IDS.laptop,
  },
  Handoff: handoff,
  ExportHandoff: {
    requirements,
    expires_in_seconds: 300,
    payload_key_base64: EXAMPLE_TRANSFER_KEY,
    capture_checkpoint: true,
  },
  CapsuleManifest: manifest,
  Capsule: capsule,
  HandoffExported: { handoff: exported, capsule, payload_base64 },
  ImportCapsule: {
    destination_runtime_id: EXAMPLE_IDS.laptop,
    expected_epoch: 0,
    capsule,
    payload_base64,
    payload_key_base64: EXAMPLE_TRANSFER_KEY,
  },
  ImportReceipt: importReceipt,
  OwnershipGrant: ownershipGrant,
  CapsuleImported: {
    instance_id: EXAMPLE_IDS.arrived,
    state: 'paused',
    import_receipt: importReceipt,
  },
  AcceptHandoff: {
    destination_instance_id: EXAMPLE_IDS.arrived,
    import_receipt: importReceipt,
  },
  HandoffAccepted: {
    handoff: { ...exported, state: 'accepted', version: 3 },
    execution: {
      ...execution,
      current_instance_id: EXAMPLE_IDS.arrived,
      owner_runtime_id: EXAMPLE_IDS.laptop,
      epoch: 1,
      updated_at: LATER,
    },
    ownership_grant: ownershipGrant,
  },
  ClaimExecution: { ownership_grant: ownershipGrant },
  AttachCapsule: {
    destination_instance_id: EXAMPLE_IDS.arrived,
    capsule,
    payload_base64,
    payload_key_base64: EXAMPLE_TRANSFER_KEY,
  },
  CapsuleAttached: { handoff: exported, destination_instance_id: EXAMPLE_IDS.arrived },
};
