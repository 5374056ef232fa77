/**
 * Handoffs: the creation, bound to a fresh preview, and every move but the export.
 */

import { creationConflict, requestedHandoff } from '../../src/core/continuity/handoff.js';
import { handoffView } from '../../src/core/continuity/handoff-view.js';
import type { PlacementDecision } from '../../src/core/continuity/placement.js';
import { conflict, notFound } from '../../src/errors.js';
import { Turn } from '../runtime/turn.js';
import { acceptHandoff, resumeHandoff } from './acceptance.js';
import type { ExecutionService, OperationReply } from './execution-service.js';
import { executionOf, touchExecution } from './executions.js';
import { insertHandoff, lineOfHandoff, moveHandoff, requireState } from './handoff-rows.js';
import type { Asked, ExecutionOperations } from './operation.js';
import { previewOf, termsIn } from './placements.js';
import { handoffAndExecution, openHandoff, reclaim } from './reconciliation.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

export const HANDOFF_OPERATIONS = {
  'handoffs.create': {
    ledBy: (body) => body.placement_decision_id,
    lineOf: async (service, { tenant, id }) =>
      (await decisionOf(service, tenant, id)).continuity_id,
    serve: createHandoff,
  },
  'handoffs.accept': { lineOf: lineOfHandoff, serve: acceptHandoff },
  'handoffs.resume': { lineOf: lineOfHandoff, serve: resumeHandoff },
  'handoffs.reject': { lineOf: lineOfHandoff, serve: rejectHandoff },
  'handoffs.revoke': { lineOf: lineOfHandoff, serve: revokeHandoff },
} satisfies Partial<ExecutionOperations>;

async function createHandoff(
  service: ExecutionService,
  { tenant, id, body }: Asked<'handoffs.create'>,
): Promise<OperationReply> {
  const decision = await decisionOf(service, tenant, id);
  const terms = termsIn(body);
  const execution = await executionOf(service, decision.tenant_id, decision.continuity_id);
  const destination = body.destination_runtime_id;
  const seen = await previewOf(service, execution, terms, destination);
  const asked = { ...body, terms };
  if (seen === undefined) throw conflict(`the destination ${destination} is not live`);
  const objection = creationConflict(asked, decision, seen);
  if (objection !== undefined) throw conflict(objection);
  const free = await reclaim(service, execution);
  const open = await openHandoff(service, free);
  if (open !== undefined) {
    throw conflict(`execution ${free.continuity_id} is being handed over by handoff ${open.id}`);
  }
  const row = requestedHandoff(
    service.newIdLike(free.continuity_id),
    asked,
    seen,
    decision,
    service.now,
  );
  const turn = new Turn();
  insertHandoff(turn, row);
  touchExecution(turn, free);
  await service.commit(turn);
  return { status: 201, body: handoffView(row, service.now) };
}

/** @throws EngineError 404 when the tenant ('' is any) has none of that id */
export async function decisionOf(
  service: ExecutionService,
  tenant: string,
  id: string,
): Promise<PlacementDecision> {
  const row = await service.rows.decision(id);
  if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) {
    throw notFound(`placement decision ${id}`);
  }
  return JSON.parse(row.record) as PlacementDecision;
}

async function rejectHandoff(
  service: ExecutionService,
  { tenant, id }: Asked<'handoffs.reject'>,
): Promise<OperationReply> {
  const { handoff, execution } = await handoffAndExecution(service, tenant, id);
  requireState(service, handoff, 'requested');
  return moveOnly(service, execution, handoff, 'rejected');
}

/** The execution stays `transferring`: whoever begins something new takes it back. */
async function revokeHandoff(
  service: ExecutionService,
  { tenant, id }: Asked<'handoffs.revoke'>,
): Promise<OperationReply> {
  const { handoff, execution } = await handoffAndExecution(service, tenant, id);
  requireState(service, handoff, 'exported');
  return moveOnly(service, execution, handoff, 'revoked');
}

async function moveOnly(
  service: ExecutionService,
  execution: ExecutionRow,
  handoff: HandoffRow,
  state: 'rejected' | 'revoked',
): Promise<OperationReply> {
  const turn = new Turn();
  const moved = moveHandoff(service, turn, handoff, state);
  touchExecution(turn, execution);
  await service.commit(turn);
  return { status: 200, body: handoffView(moved, service.now) };
}
