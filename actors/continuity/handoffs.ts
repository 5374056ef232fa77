/**
 * Handoffs: the creation, bound to a fresh preview, and every move but the export.
 */

import { conflict } from '../../src/base/errors.js';
import { Turn } from '../runtime/turn.js';
import { creationConflict, requestedHandoff } from './core/handoff.js';
import { handoffView } from './core/handoff-view.js';
import { touchExecution } from './executions.js';
import { decisionOf, moveHandoff, putHandoff, requireState } from './handoff-rows.js';
import { refuseFor, type Serve } from './operation.js';
import { previewOf, termsIn } from './placements.js';
import { handoffAndExecution, openHandoff, reclaim, takeBack } from './reconciliation.js';

export const createHandoff: Serve<'handoffs.create'> = async (service, { tenant, id, body }) => {
  const decision = await decisionOf(service, tenant, id);
  const terms = termsIn(body);
  const execution = await service.rows.owned(
    'execution',
    decision.tenant_id,
    decision.continuity_id,
  );
  const destination = body.destination_runtime_id;
  const seen = await previewOf(service, execution, terms, destination);
  const asked = { ...body, terms };
  if (seen === undefined) throw conflict(`the destination ${destination} is not live`);
  refuseFor(creationConflict(asked, decision, seen));
  const free = await reclaim(service, execution);
  const open = await openHandoff(service, free);
  if (open !== undefined) {
    throw conflict(`execution ${free.continuity_id} is being handed over by handoff ${open.id}`);
  }
  const handoffId = service.newIdLike(free.continuity_id);
  const row = requestedHandoff(handoffId, asked, seen, decision, service.now);
  const turn = new Turn();
  putHandoff(turn, row);
  touchExecution(turn, free);
  await service.commit(turn);
  return handoffView(row, service.now);
};

export const rejectHandoff: Serve<'handoffs.reject'> = async (service, { tenant, id }) => {
  const { handoff, execution } = await handoffAndExecution(service, tenant, id);
  requireState(service, handoff, 'requested');
  const turn = new Turn();
  const moved = moveHandoff(service, turn, handoff, 'rejected');
  touchExecution(turn, execution);
  await service.commit(turn);
  return handoffView(moved, service.now);
};

/** In one unit the capsule is worth nothing any more and the instance goes on; nobody else is asked. */
export const revokeHandoff: Serve<'handoffs.revoke'> = async (service, { tenant, id }) => {
  const { handoff, execution } = await handoffAndExecution(service, tenant, id);
  requireState(service, handoff, 'exported');
  const turn = new Turn();
  const moved = moveHandoff(service, turn, handoff, 'revoked');
  await takeBack(service, execution, turn);
  return handoffView(moved, service.now);
};
