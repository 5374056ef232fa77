/** Routes of executions, their effects and provenance, and live migration. */

import { IdParams, list, TenantQuery } from './common.js';
import * as continuity from './continuity.js';
import * as handoff from './handoff.js';
import { act, actById, get, getById, type RouteRow, readById, refusals } from './route-row.js';

const create = { method: 'POST', owner: 'by-body' } as const;
const read = { ...readById, query: TenantQuery } as const;
const bare = { body: continuity.TenantBody, isBodyOptional: true } as const;

export const CONTINUITY_ROWS = {
  'continuity.create': {
    ...create,
    ledBy: { kind: 'id', members: ['instance_id'] },
    path: '/continuity/executions',
    summary: 'Create an execution: a portable identity of an instance, with an owner and an epoch.',
    body: continuity.CreateExecution,
    replies: { 201: continuity.Execution, ...refusals(400, 404, 409, 413) },
  },
  'continuity.claim': {
    ...create,
    path: '/continuity/executions/claim',
    summary: 'Claim an imported execution that its source has granted to this server.',
    body: handoff.ClaimExecution,
    repeats: 'the same body gets the same response',
    replies: { 200: continuity.Execution, ...refusals(400, 404, 409, 413) },
  },
  'continuity.get': getById(
    '/continuity/executions/{id}',
    'Get an execution.',
    continuity.Execution,
    { query: TenantQuery },
  ),
  'continuity.locations': getById(
    '/continuity/executions/{id}/locations',
    'List the locations of an execution by epoch.',
    list(continuity.Location),
    { query: TenantQuery },
  ),
  'continuity.effects': {
    ...read,
    path: '/continuity/executions/{id}/effects',
    summary: 'List the effect receipts of an execution; empty for an unknown one.',
    replies: { 200: list(continuity.EffectReceipt), ...refusals(400) },
  },
  'continuity.checkpoints': getById(
    '/continuity/executions/{id}/checkpoints',
    'List the boundaries at which checkpoints of an execution were saved.',
    list(continuity.Boundary),
    { query: continuity.BoundaryListQuery },
  ),
  'continuity.checkpoint': {
    method: 'GET',
    path: '/continuity/executions/{id}/checkpoints/{checkpoint_id}',
    summary: 'Get a boundary with the changes since the previous one.',
    params: continuity.BoundaryParams,
    owner: 'front',
    query: TenantQuery,
    replies: { 200: continuity.BoundaryDetail, ...refusals(400, 404) },
  },
  'continuity.provenance': {
    ...read,
    path: '/continuity/executions/{id}/provenance',
    summary: 'List the provenance chain of an execution; empty for an unknown one.',
    replies: { 200: list(continuity.ProvenanceEntry), ...refusals(400) },
  },
  'continuity.appendProvenance': {
    ...actById,
    path: '/continuity/executions/{id}/provenance',
    summary: 'Append an entry to the provenance chain.',
    body: continuity.AppendProvenance,
    replies: { 201: continuity.ProvenanceEntry, ...refusals(400, 404, 409, 413) },
  },
  'continuity.verifyProvenance': {
    ...read,
    path: '/continuity/executions/{id}/provenance/verify',
    summary: 'Verify every link, hash and signature of the provenance chain.',
    query: continuity.VerifyProvenanceQuery,
    replies: { 200: continuity.ProvenanceVerdict, ...refusals(400) },
  },
  'continuity.place': {
    ...actById,
    path: '/continuity/executions/{id}/placement',
    summary: 'Evaluate every live runtime as a place for an execution.',
    body: handoff.PlaceExecution,
    bodySize: 'large',
    replies: { 200: handoff.PlacementDecision, ...refusals(400, 404, 413) },
  },
  'continuity.preview': {
    ...actById,
    path: '/continuity/executions/{id}/handoff-preview',
    summary: 'Evaluate one runtime as the destination of a handoff.',
    body: handoff.PreviewHandoff,
    bodySize: 'large',
    replies: { 200: handoff.HandoffPreview, ...refusals(400, 404, 413) },
  },
  'instances.effects': getById(
    '/instances/{id}/effects',
    'List the effect receipts of an instance, oldest first.',
    list(continuity.EffectReceipt),
    { query: continuity.EffectListQuery },
  ),
  'continuity.resolveEffect': act(
    '/continuity/effects/{id}/resolve',
    'Record the result of an effect.',
    continuity.EffectReceipt,
    { body: continuity.ResolveEffect },
  ),
  'migrations.migrate': act(
    '/instances/{id}/migrate',
    'Migrate an instance to another version, if that is safe.',
    continuity.MigratedInstance,
    { body: continuity.MigrateTo },
  ),
  'sequences.migrateInstances': {
    method: 'POST',
    owner: 'front',
    params: IdParams,
    path: '/sequences/{id}/migrate-instances',
    summary: 'Migrate matching instances of a version to another one, where that is safe.',
    body: continuity.MigrateInstances,
    replies: { 200: continuity.InstancesMigrated, ...refusals(400, 404, 413) },
  },
  'migrations.plan': {
    ...create,
    ledBy: { kind: 'id', members: ['continuity_id'] },
    path: '/continuity/migrations/plan',
    summary: 'Plan the migration of a live execution to another version.',
    body: continuity.PlanMigration,
    bodySize: 'large',
    replies: { 200: continuity.MigrationPlan, ...refusals(400, 404, 409, 413) },
  },
  'migrations.get': getById(
    '/continuity/migrations/{id}',
    'Get a migration.',
    continuity.MigrationRecord,
    { query: TenantQuery },
  ),
  'migrations.apply': act(
    '/continuity/migrations/{id}/apply',
    'Migrate to the other version and leave the instance paused.',
    continuity.MigrationRecord,
    { body: continuity.ApplyMigration, isBodyOptional: true },
  ),
  'migrations.rollback': act(
    '/continuity/migrations/{id}/rollback',
    'Roll a migration back to its sealed capsule.',
    continuity.MigrationRecord,
    bare,
  ),
} as const satisfies Record<string, RouteRow>;

export const HANDOFF_ROWS = {
  'runtimes.register': {
    method: 'POST',
    path: '/runtimes/register',
    summary: 'Register the facts of a runtime for some minutes.',
    owner: 'any-shard',
    body: handoff.RegisterRuntime,
    repeats: 'the last observation counts',
    replies: { 201: handoff.RuntimeCapabilities, ...refusals(400, 413) },
  },
  'runtimes.list': get(
    '/runtimes',
    'List live runtimes, last seen first.',
    list(handoff.RuntimeCapabilities),
    { query: TenantQuery },
  ),
  'handoffs.create': {
    ...create,
    ledBy: { kind: 'id', members: ['placement_decision_id'] },
    path: '/continuity/handoffs',
    summary: 'Start the handoff of an execution to the runtime of a current preview.',
    body: handoff.CreateHandoff,
    replies: { 201: handoff.Handoff, ...refusals(400, 404, 409, 413) },
  },
  'handoffs.get': getById('/continuity/handoffs/{id}', 'Get a handoff.', handoff.Handoff, {
    query: TenantQuery,
  }),
  'handoffs.export': act(
    '/continuity/handoffs/{id}/export',
    'Seal the execution into a capsule for its destination.',
    handoff.HandoffExported,
    { body: handoff.ExportHandoff, isBodyOptional: true },
  ),
  'handoffs.attach': act(
    '/continuity/handoffs/{id}/attach-device-capsule',
    'Import a capsule sealed by an isolated device, as the export of its handoff.',
    handoff.CapsuleAttached,
    { body: handoff.AttachCapsule, bodySize: 'large' },
  ),
  'handoffs.accept': act(
    '/continuity/handoffs/{id}/accept',
    'Make the destination the owner.',
    handoff.HandoffAccepted,
    { body: handoff.AcceptHandoff, repeats: 'the same body gets the same response' },
  ),
  'handoffs.resume': act(
    '/continuity/handoffs/{id}/resume',
    'Start running at the destination.',
    handoff.Handoff,
    bare,
  ),
  'handoffs.reject': act(
    '/continuity/handoffs/{id}/reject',
    'Reject a handoff before its export.',
    handoff.Handoff,
    bare,
  ),
  'handoffs.revoke': act(
    '/continuity/handoffs/{id}/revoke',
    'Revoke an exported capsule before it is accepted.',
    handoff.Handoff,
    bare,
  ),
  'capsules.import': {
    ...create,
    path: '/continuity/capsules/import',
    summary: 'Create the paused instance of a capsule.',
    body: handoff.ImportCapsule,
    bodySize: 'large',
    repeats: 'the same body gets the same response',
    replies: { 201: handoff.CapsuleImported, ...refusals(400, 409, 413) },
  },
} as const satisfies Record<string, RouteRow>;
