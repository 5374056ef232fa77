/** Rows of the operations on executions, their effects and provenance, and live migration. */

import { IdParams, TenantQuery } from './common.js';
import * as continuity from './continuity.js';
import * as handoff from './handoff.js';
import { actById as act, listOf, type RouteRow, readById, refusals } from './route-row.js';

const create = { method: 'POST', owner: 'by-body' } as const;
const read = { ...readById, query: TenantQuery } as const;
/** A body that only says whose the object is. */
const bare = { body: continuity.TenantBody, isBodyOptional: true } as const;

export const CONTINUITY_ROWS = {
  'continuity.create': {
    ...create,
    path: '/continuity/executions',
    summary: 'Give an instance a portable identity with an owner and an epoch.',
    body: continuity.CreateExecution,
    replies: { 201: continuity.Execution, ...refusals(400, 404, 409, 413) },
  },
  'continuity.claim': {
    ...create,
    path: '/continuity/executions/claim',
    summary: 'Take over an imported execution that its source has granted to this server.',
    body: handoff.ClaimExecution,
    replies: { 200: continuity.Execution, ...refusals(400, 404, 409, 413) },
  },
  'continuity.get': {
    ...read,
    path: '/continuity/executions/{id}',
    summary: 'Get an execution.',
    replies: { 200: continuity.Execution, ...refusals(400, 404) },
  },
  'continuity.locations': {
    ...read,
    path: '/continuity/executions/{id}/locations',
    summary: 'List where an execution has been, by epoch.',
    replies: { 200: listOf(continuity.Location), ...refusals(400, 404) },
  },
  'continuity.effects': {
    ...read,
    path: '/continuity/executions/{id}/effects',
    summary: 'List the receipts of what an execution did outside; none of an unknown one.',
    replies: { 200: listOf(continuity.EffectReceipt), ...refusals(400) },
  },
  'continuity.checkpoints': {
    ...read,
    path: '/continuity/executions/{id}/checkpoints',
    summary: 'List the boundaries at which checkpoints of an execution were saved.',
    query: continuity.BoundaryListQuery,
    replies: { 200: listOf(continuity.Boundary), ...refusals(400, 404) },
  },
  'continuity.checkpoint': {
    method: 'GET',
    path: '/continuity/executions/{id}/checkpoints/{checkpoint_id}',
    summary: 'Get one of them, with what changed since the one before.',
    params: continuity.BoundaryParams,
    owner: 'front',
    query: TenantQuery,
    replies: { 200: continuity.BoundaryDetail, ...refusals(400, 404) },
  },
  'continuity.provenance': {
    ...read,
    path: '/continuity/executions/{id}/provenance',
    summary: 'List the chain of what was decided about an execution; empty of an unknown one.',
    replies: { 200: listOf(continuity.ProvenanceEntry), ...refusals(400) },
  },
  'continuity.appendProvenance': {
    ...act,
    path: '/continuity/executions/{id}/provenance',
    summary: 'Append an entry of your own to the chain.',
    body: continuity.AppendProvenance,
    replies: { 201: continuity.ProvenanceEntry, ...refusals(400, 404, 409, 413) },
  },
  'continuity.verifyProvenance': {
    ...read,
    path: '/continuity/executions/{id}/provenance/verify',
    summary: 'Check every link, hash and signature of the chain.',
    query: continuity.VerifyProvenanceQuery,
    replies: { 200: continuity.ProvenanceVerdict, ...refusals(400) },
  },
  'continuity.place': {
    ...act,
    path: '/continuity/executions/{id}/placement',
    summary: 'Judge every live runtime as a place for an execution.',
    body: handoff.PlaceExecution,
    bodySize: 'large',
    replies: { 200: handoff.PlacementDecision, ...refusals(400, 404, 413) },
  },
  'continuity.preview': {
    ...act,
    path: '/continuity/executions/{id}/handoff-preview',
    summary: 'Judge one runtime as the destination of a handoff.',
    body: handoff.PreviewHandoff,
    bodySize: 'large',
    replies: { 200: handoff.HandoffPreview, ...refusals(400, 404, 413) },
  },
  'instances.effects': {
    ...read,
    path: '/instances/{id}/effects',
    summary: 'List the receipts of what an instance did outside, oldest first.',
    query: continuity.EffectListQuery,
    replies: { 200: listOf(continuity.EffectReceipt), ...refusals(400, 404) },
  },
  'continuity.resolveEffect': {
    ...act,
    path: '/continuity/effects/{id}/resolve',
    summary: 'Say what became of an effect.',
    body: continuity.ResolveEffect,
    replies: { 200: continuity.EffectReceipt, ...refusals(400, 404, 409, 413) },
  },
  'migrations.migrate': {
    ...act,
    path: '/instances/{id}/migrate',
    summary: 'Have an instance go over to another version, where that is safe.',
    body: continuity.MigrateTo,
    replies: { 200: continuity.MigratedInstance, ...refusals(400, 404, 409, 413) },
  },
  'sequences.migrateInstances': {
    method: 'POST',
    owner: 'front',
    params: IdParams,
    path: '/sequences/{id}/migrate-instances',
    summary: 'Have matching instances of a version go over to another one, where that is safe.',
    body: continuity.MigrateInstances,
    replies: { 200: continuity.InstancesMigrated, ...refusals(400, 404, 413) },
  },
  'migrations.plan': {
    ...create,
    path: '/continuity/migrations/plan',
    summary: 'Judge whether a live execution can go over to another version.',
    body: continuity.PlanMigration,
    bodySize: 'large',
    replies: { 200: continuity.MigrationPlan, ...refusals(400, 404, 409, 413) },
  },
  'migrations.get': {
    ...read,
    path: '/continuity/migrations/{id}',
    summary: 'Get a migration.',
    replies: { 200: continuity.MigrationRecord, ...refusals(400, 404) },
  },
  'migrations.apply': {
    ...act,
    path: '/continuity/migrations/{id}/apply',
    summary: 'Go over to the other version, and stay paused there.',
    body: continuity.ApplyMigration,
    isBodyOptional: true,
    replies: { 200: continuity.MigrationRecord, ...refusals(400, 404, 409, 413) },
  },
  'migrations.rollback': {
    ...act,
    path: '/continuity/migrations/{id}/rollback',
    summary: 'Go back to what the sealed capsule of the migration holds.',
    ...bare,
    replies: { 200: continuity.MigrationRecord, ...refusals(400, 404, 409, 413) },
  },
} as const satisfies Record<string, RouteRow>;

export const HANDOFF_ROWS = {
  'runtimes.register': {
    method: 'POST',
    path: '/runtimes/register',
    summary: 'Tell what a runtime offers, for some minutes.',
    owner: 'any-shard',
    body: handoff.RegisterRuntime,
    replies: { 201: handoff.RuntimeCapabilities, ...refusals(400, 413) },
  },
  'runtimes.list': {
    method: 'GET',
    path: '/runtimes',
    summary: 'List the runtimes that are live, those seen last first.',
    owner: 'front',
    query: TenantQuery,
    replies: { 200: listOf(handoff.RuntimeCapabilities), ...refusals(400) },
  },
  'handoffs.create': {
    ...create,
    path: '/continuity/handoffs',
    summary: 'Begin to hand an execution to the runtime of a fresh preview.',
    body: handoff.CreateHandoff,
    replies: { 201: handoff.Handoff, ...refusals(400, 404, 409, 413) },
  },
  'handoffs.get': {
    ...read,
    path: '/continuity/handoffs/{id}',
    summary: 'Get a handoff.',
    replies: { 200: handoff.Handoff, ...refusals(400, 404) },
  },
  'handoffs.export': {
    ...act,
    path: '/continuity/handoffs/{id}/export',
    summary: 'Seal the execution into a capsule for its destination.',
    body: handoff.ExportHandoff,
    isBodyOptional: true,
    replies: { 200: handoff.HandoffExported, ...refusals(400, 404, 409, 413) },
  },
  'handoffs.attach': {
    ...act,
    path: '/continuity/handoffs/{id}/attach-device-capsule',
    summary: 'Import a capsule that an isolated device sealed, as the export of its handoff.',
    body: handoff.AttachCapsule,
    bodySize: 'large',
    replies: { 200: handoff.CapsuleAttached, ...refusals(400, 404, 409, 413) },
  },
  'handoffs.accept': {
    ...act,
    path: '/continuity/handoffs/{id}/accept',
    summary: 'Make the destination the owner.',
    body: handoff.AcceptHandoff,
    replies: { 200: handoff.HandoffAccepted, ...refusals(400, 404, 409, 413) },
  },
  'handoffs.resume': {
    ...act,
    path: '/continuity/handoffs/{id}/resume',
    summary: 'Let the destination run.',
    ...bare,
    replies: { 200: handoff.Handoff, ...refusals(400, 404, 409, 413) },
  },
  'handoffs.reject': {
    ...act,
    path: '/continuity/handoffs/{id}/reject',
    summary: 'Refuse a handoff before its export.',
    ...bare,
    replies: { 200: handoff.Handoff, ...refusals(400, 404, 409, 413) },
  },
  'handoffs.revoke': {
    ...act,
    path: '/continuity/handoffs/{id}/revoke',
    summary: 'Take an exported capsule back before it is accepted.',
    ...bare,
    replies: { 200: handoff.Handoff, ...refusals(400, 404, 409, 413) },
  },
  'capsules.import': {
    ...create,
    path: '/continuity/capsules/import',
    summary: 'Create the paused instance that a capsule holds.',
    body: handoff.ImportCapsule,
    bodySize: 'large',
    replies: { 201: handoff.CapsuleImported, ...refusals(400, 409, 413) },
  },
} as const satisfies Record<string, RouteRow>;
