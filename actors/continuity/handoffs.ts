/** Handoffs: the creation, bound to a fresh preview, and the moves that need no capsule. */

import type { Handoff } from '../../schema/handoff.js';
import { conflict } from '../../src/base/errors.js';
import { Turn } from '../runtime/turn.js';
import { creationConflict, requestedHandoff } from './core/handoff.js';
import { handoffView } from './core/handoff-view.js';
import type { ExecutionService } from './execution-service.js';
import { commitWith, touchExecution } from './executions.js';
import {
  decisionOf,
  type HandoffAndExecution,
  moveHandoff,
  putHandoff,
  requireState,
} from './handoff-rows.js';
import { type ExecutionRequest, refuseFor, type Serve } from './operation.js';
import { previewOf, termsIn } from './placements.js';
import { putNextEntry } from './provenance.js';
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

export const rejectHandoff = mover('requested', 'rejected', async (service, turn, of) => {
  touchExecution(turn, of.execution);
  await service.commit(turn);
});

/** One unit invalidates the capsule and resumes the source instance. */
export const revokeHandoff = mover('exported', 'revoked', (service, turn, { execution }) =>
  takeBack(service, execution, turn),
);

export const resumeHandoff = mover('accepted', 'resumed', async (service, turn, of) => {
  const { handoff, execution } = of;
  if (execution.owner_runtime_id !== handoff.destination_runtime_id) {
    throw conflict(`execution ${execution.continuity_id} has another owner by now`);
  }
  const { current_instance_id: instance_id, epoch } = execution;
  touchExecution(turn, execution);
  await putNextEntry(service, turn, execution, {
    kind: 'execution_resumed',
    summary: 'execution resumed',
    evidence: { handoff_id: handoff.id, instance_id, epoch },
  });
  const expect = { states: ['paused'], fence: 'none' } as const;
  await commitWith(service, turn, execution, { expect, changes: [{ kind: 'resume' }] });
});

type Moves = 'handoffs.reject' | 'handoffs.revoke' | 'handoffs.resume';

/** @param commit commits the turn, in which the move already is, with what else belongs to it */
function mover(
  from: Handoff['state'],
  to: Handoff['state'],
  commit: (service: ExecutionService, turn: Turn, of: HandoffAndExecution) => Promise<unknown>,
) {
  return async (service: ExecutionService, { tenant, id }: ExecutionRequest<Moves>) => {
    const found = await handoffAndExecution(service, tenant, id);
    requireState(service, found.handoff, from);
    const turn = new Turn();
    const moved = moveHandoff(service, turn, found.handoff, to);
    await commit(service, turn, found);
    return handoffView(moved, service.now);
  };
}
