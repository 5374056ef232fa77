/** Routes of executions, their effects and provenance, and live migration. */

import { list, TenantQuery } from './common.js';
import * as continuity from './continuity.js';
import * as handoff from './handoff.js';
import {
  act,
  anyShard,
  byBody,
  byId,
  created,
  did,
  front,
  get,
  getById,
  ok,
  type RouteRow,
} from './route-row.js';

const bare = { body: continuity.TenantBody, isBodyOptional: true } as const;

export const CONTINUITY_ROWS = {
  'continuity.create': byBody.post('/continuity/executions', {
    summary: 'Create an execution: a portable identity of an instance, with an owner and an epoch.',
    ledBy: { kind: 'id', members: ['instance_id'] },
    body: continuity.CreateExecution,
    replies: created(continuity.Execution, 404, 409, 413),
  }),
  'continuity.claim': byBody.post('/continuity/executions/claim', {
    summary: 'Claim an imported execution that its source has granted to this server.',
    body: handoff.ClaimExecution,
    repeats: 'the same body gets the same response',
    replies: ok(continuity.Execution, 404, 409, 413),
  }),
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
  'continuity.effects': front.get('/continuity/executions/{id}/effects', {
    summary: 'List the effect receipts of an execution; empty for an unknown one.',
    query: TenantQuery,
    replies: ok(list(continuity.EffectReceipt)),
  }),
  'continuity.checkpoints': getById(
    '/continuity/executions/{id}/checkpoints',
    'List the boundaries at which checkpoints of an execution were saved.',
    list(continuity.Boundary),
    { query: continuity.BoundaryListQuery },
  ),
  'continuity.checkpoint': front.get('/continuity/executions/{id}/checkpoints/{checkpoint_id}', {
    summary: 'Get a boundary with the changes since the previous one.',
    params: continuity.BoundaryParams,
    query: TenantQuery,
    replies: ok(continuity.BoundaryDetail, 404),
  }),
  'continuity.provenance': front.get('/continuity/executions/{id}/provenance', {
    summary: 'List the provenance chain of an execution; empty for an unknown one.',
    query: TenantQuery,
    replies: ok(list(continuity.ProvenanceEntry)),
  }),
  'continuity.appendProvenance': byId.post('/continuity/executions/{id}/provenance', {
    summary: 'Append an entry to the provenance chain.',
    body: continuity.AppendProvenance,
    replies: created(continuity.ProvenanceEntry, 404, 409, 413),
  }),
  'continuity.verifyProvenance': front.get('/continuity/executions/{id}/provenance/verify', {
    summary: 'Verify every link, hash and signature of the provenance chain.',
    query: continuity.VerifyProvenanceQuery,
    replies: ok(continuity.ProvenanceVerdict),
  }),
  'continuity.place': byId.post('/continuity/executions/{id}/placement', {
    summary: 'Evaluate every live runtime as a place for an execution.',
    body: handoff.PlaceExecution,
    bodySize: 'large',
    replies: ok(handoff.PlacementDecision, 404, 413),
  }),
  'continuity.preview': byId.post('/continuity/executions/{id}/handoff-preview', {
    summary: 'Evaluate one runtime as the destination of a handoff.',
    body: handoff.PreviewHandoff,
    bodySize: 'large',
    replies: ok(handoff.HandoffPreview, 404, 413),
  }),
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
    {
      body: continuity.ResolveEffect,
      action: did('effect', 'recorded the result of', { shows: ['state'] }),
    },
  ),
  'migrations.migrate': act(
    '/instances/{id}/migrate',
    'Migrate an instance to another version, if that is safe.',
    continuity.MigratedInstance,
    {
      body: continuity.MigrateTo,
      action: did('instance', 'migrated', {
        shows: ['sequence_id', 'version'],
        unless: ['dry_run'],
      }),
    },
  ),
  'sequences.migrateInstances': front.post('/sequences/{id}/migrate-instances', {
    summary: 'Migrate matching instances of a version to another one, where that is safe.',
    body: continuity.MigrateInstances,
    replies: ok(continuity.InstancesMigrated, 404, 413),
    action: did('sequence', 'migrated instances of', {
      shows: ['version', 'sequence_id'],
      // The calls that continue a migration are the same action.
      unless: ['dry_run', 'cursor'],
    }),
  }),
  'migrations.plan': byBody.post('/continuity/migrations/plan', {
    summary: 'Plan the migration of a live execution to another version.',
    ledBy: { kind: 'id', members: ['continuity_id'] },
    body: continuity.PlanMigration,
    bodySize: 'large',
    replies: ok(continuity.MigrationPlan, 404, 409, 413),
  }),
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
    { body: continuity.ApplyMigration, isBodyOptional: true, action: did('migration', 'applied') },
  ),
  'migrations.rollback': act(
    '/continuity/migrations/{id}/rollback',
    'Roll a migration back to its sealed capsule.',
    continuity.MigrationRecord,
    { ...bare, action: did('migration', 'rolled back') },
  ),
} as const satisfies Record<string, RouteRow>;

export const HANDOFF_ROWS = {
  'runtimes.register': anyShard.post('/runtimes/register', {
    summary: 'Register the facts of a runtime for some minutes.',
    body: handoff.RegisterRuntime,
    repeats: 'the last observation counts',
    replies: created(handoff.RuntimeCapabilities, 413),
  }),
  'runtimes.list': get(
    '/runtimes',
    'List live runtimes, last seen first.',
    list(handoff.RuntimeCapabilities),
    { query: TenantQuery },
  ),
  'handoffs.create': byBody.post('/continuity/handoffs', {
    summary: 'Start the handoff of an execution to the runtime of a current preview.',
    ledBy: { kind: 'id', members: ['placement_decision_id'] },
    body: handoff.CreateHandoff,
    replies: created(handoff.Handoff, 404, 409, 413),
  }),
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
  'capsules.import': byBody.post('/continuity/capsules/import', {
    summary: 'Create the paused instance of a capsule.',
    body: handoff.ImportCapsule,
    bodySize: 'large',
    repeats: 'the same body gets the same response',
    replies: created(handoff.CapsuleImported, 409, 413),
  }),
} as const satisfies Record<string, RouteRow>;
