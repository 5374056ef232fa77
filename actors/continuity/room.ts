/** The room of executions: its operations run on the shard of the execution, in its line. */

import { type BodyOf, ROUTES } from '../../schema/routes.js';
import { routeOf } from '../../src/base/ids.js';
import type { Offload } from '../../src/base/offload.js';
import { tenantOf } from '../../src/base/tenancy.js';
import type { Keyring } from '../../src/core/sealing/keys.js';
import type { CatalogRoom } from '../catalog/room.js';
import type { OrderAnswer } from '../instance/orders.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Call, Operation } from '../runtime/operation.js';
import type { Messages, Room } from '../runtime/room.js';
import { ExecutionService, type ExecutionServiceDeps } from './execution-service.js';
import {
  acceptHandoff,
  appendProvenance,
  claimExecution,
  createExecution,
  effectOf,
  executionIn,
  settleEffect,
} from './executions.js';
import { attachCapsule, exportHandoff } from './exports.js';
import {
  answerFence,
  createHandoff,
  place,
  preview,
  registerRuntime,
  rejectHandoff,
  resumeHandoff,
  revokeHandoff,
} from './handoffs.js';
import { importCapsule } from './imports.js';
import { rollBack } from './migration-rollback.js';
import {
  applyMigration,
  executionOfInstance,
  migrateInstance,
  planMigration,
} from './migrations.js';
import type {
  ContinuityOperation,
  ExecutionOperation,
  ExecutionOperations,
  RequestTarget,
} from './operation.js';
import type { ContinuityRows } from './rows.js';

const OPERATIONS: ExecutionOperations = {
  'continuity.create': { ledBy: (body) => body.instance_id, serve: createExecution },
  'continuity.claim': { ledBy: executionIn, serve: claimExecution },
  'continuity.appendProvenance': { serve: appendProvenance },
  'continuity.resolveEffect': {
    lineOf: async (service, { tenant, id }) => (await effectOf(service, tenant, id)).continuity_id,
    serve: settleEffect,
  },
  'runtimes.register': {
    // Any shard may serve it: the statement keeps the latest observation, whatever the order.
    lineOf: async (_, { body }) => body.capabilities.runtime_id,
    serve: registerRuntime,
  },
  'continuity.place': { serve: place },
  'continuity.preview': { serve: preview },
  'handoffs.create': {
    ledBy: (body) => body.placement_decision_id,
    lineOf: lineBy('decision'),
    serve: createHandoff,
  },
  'handoffs.export': { lineOf: lineBy('handoff'), serve: exportHandoff },
  'handoffs.attach': { lineOf: lineBy('handoff'), serve: attachCapsule },
  'handoffs.accept': { lineOf: lineBy('handoff'), serve: acceptHandoff },
  'handoffs.resume': { lineOf: lineBy('handoff'), serve: resumeHandoff },
  'handoffs.reject': { lineOf: lineBy('handoff'), serve: rejectHandoff },
  'handoffs.revoke': { lineOf: lineBy('handoff'), serve: revokeHandoff },
  'capsules.import': {
    ledBy: ({ capsule }) => capsule.manifest.continuity_id,
    serve: importCapsule,
  },
  'migrations.migrate': { lineOf: executionOfInstance, serve: migrateInstance },
  'migrations.plan': { ledBy: (body) => body.continuity_id, serve: planMigration },
  'migrations.apply': { lineOf: lineBy('migration'), serve: applyMigration },
  'migrations.rollback': { lineOf: lineBy('migration'), serve: rollBack },
};

export class Continuity implements Room {
  readonly service: ExecutionService;

  readonly messages = {
    'continuity.answer': ({ ticket, answer }) =>
      this.service.answered(ticket, JSON.parse(answer) as OrderAnswer),
    'continuity.ask': ({ execution, instance }) =>
      this.service.runInBackground(execution, () => answerFence(this.service, execution, instance)),
  } satisfies Messages;

  constructor(deps: ExecutionServiceDeps) {
    this.service = new ExecutionService(deps);
  }

  peerBack(shard: number): void {
    this.service.shardBack(shard);
  }

  /** @throws EngineError 403 when the body names another tenant than the header */
  serve<Id extends ContinuityOperation>(
    route: Id,
    { ledBy, lineOf, serve }: ExecutionOperation<Id>,
    { request, target, body, tenant: header }: Call<BodyOf<Id>>,
  ): void {
    const { service } = this;
    const named = body as { readonly tenant_id?: string | null } | undefined;
    const tenant = tenantOf(header, named?.tenant_id);
    const call = { request, tenant, id: ledBy?.(body) ?? target, body };
    const line = async () => (await lineOf?.(service, call)) ?? call.id;
    const status = 201 in ROUTES[route].replies ? 201 : 200;
    service.serve(request, status, line, () => serve(service, call));
  }
}

export function continuityOperations(continuity: Continuity) {
  const rows = Object.entries(OPERATIONS as Record<string, ExecutionOperation<never>>);
  return Object.fromEntries(
    rows.map(([id, operation]) => {
      const { ledBy } = operation;
      const row: Operation = {
        ...(ledBy && { leadsTo: (body: never) => routeOf(ledBy(body)) }),
        serve: (call) => continuity.serve(id as never, operation, call),
      };
      return [id, row];
    }),
  ) as { readonly [Id in ContinuityOperation]: Operation };
}

function lineBy(name: 'decision' | 'handoff' | 'migration') {
  return async ({ rows }: ExecutionService, { tenant, id }: RequestTarget): Promise<string> =>
    (await rows.owned(name, tenant, id)).continuity_id;
}

interface ContinuityNeeds extends Pick<CatalogRoom, 'plans'> {
  readonly keyring?: Keyring | undefined;
  readonly offload: Offload;
  readonly continuityRows: ContinuityRows;
}

export function openContinuity(kernel: Kernel, needs: ContinuityNeeds) {
  const { plans, keyring, offload, continuityRows: rows } = needs;
  const newIdLike = (id: string) => kernel.ids.next(routeOf(id));
  const continuity = new Continuity({ ...kernel, plans, keyring, offload, rows, newIdLike });
  return { parts: [continuity], operations: continuityOperations(continuity) };
}
