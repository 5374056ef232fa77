/**
 * Handoffs: the creation, bound to a fresh preview (05 §8), and every move but the export (05 §9).
 */

import { creationConflict, requestedHandoff } from '../../src/core/continuity/handoff.js';
import type { PlacementDecision } from '../../src/core/continuity/placement.js';
import { conflict, notFound } from '../../src/errors.js';
import { handoffView } from '../../src/handoff-view.js';
import { Turn } from '../turn.js';
import { acceptHandoff, resumeHandoff } from './arrivals.js';
import type { DeskReply } from './desk.js';
import { executionOf, touchExecution } from './executions.js';
import { insertHandoff, lineOfHandoff, moveHandoff, requireState } from './handoff-rows.js';
import { handoffAndExecution, openHandoff, reclaim } from './healing.js';
import type { Asked, Office, Services } from './office.js';
import { previewOf, termsIn } from './placements.js';
import type { ExecutionRow, HandoffRow } from './rows.js';

export const HANDOFF_SERVICES = {
  'handoffs.create': {
    ledBy: (body) => body.placement_decision_id,
    lineOf: async (office, { tenant, id }) => (await decisionOf(office, tenant, id)).continuity_id,
    serve: createHandoff,
  },
  'handoffs.accept': { lineOf: lineOfHandoff, serve: acceptHandoff },
  'handoffs.resume': { lineOf: lineOfHandoff, serve: resumeHandoff },
  'handoffs.reject': { lineOf: lineOfHandoff, serve: rejectHandoff },
  'handoffs.revoke': { lineOf: lineOfHandoff, serve: revokeHandoff },
} satisfies Services;

async function createHandoff(
  office: Office,
  { tenant, id, body }: Asked<'handoffs.create'>,
): Promise<DeskReply> {
  const { desk } = office;
  const decision = await decisionOf(office, tenant, id);
  const terms = termsIn(body);
  const execution = await executionOf(desk, decision.tenant_id, decision.continuity_id);
  const destination = body.destination_runtime_id;
  const seen = await previewOf(desk, execution, terms, destination);
  const asked = { ...body, terms };
  if (seen === undefined) throw conflict(`the destination ${destination} is not live`);
  const objection = creationConflict(asked, decision, seen);
  if (objection !== undefined) throw conflict(objection);
  const free = await reclaim(office, execution);
  const open = await openHandoff(desk, free);
  if (open !== undefined) {
    throw conflict(`execution ${free.continuity_id} is being handed over by handoff ${open.id}`);
  }
  const made = requestedHandoff(
    desk.deps.newIdLike(free.continuity_id),
    asked,
    seen,
    decision,
    desk.now,
  );
  const { data_classification: _c, locality_policy: _p, requirements: _r, ...shown } = made;
  const row: HandoffRow = { ...shown, capsule_expires_at: null, terms: JSON.stringify(terms) };
  const turn = new Turn();
  insertHandoff(turn, row);
  touchExecution(turn, free);
  await desk.commit(turn);
  return { status: 201, body: handoffView(row, desk.now) };
}

/** @throws EngineError 404 when the tenant ('' is any) has none of that id */
export async function decisionOf(
  { desk }: Office,
  tenant: string,
  id: string,
): Promise<PlacementDecision> {
  const row = await desk.deps.rows.decision(id);
  if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) {
    throw notFound(`placement decision ${id}`);
  }
  return JSON.parse(row.record) as PlacementDecision;
}

async function rejectHandoff(
  office: Office,
  { tenant, id }: Asked<'handoffs.reject'>,
): Promise<DeskReply> {
  const { desk } = office;
  const { handoff, execution } = await handoffAndExecution(office, tenant, id);
  requireState(desk, handoff, 'requested');
  return moveOnly(office, execution, handoff, 'rejected');
}

/** The execution stays `transferring`: whoever begins something new takes it back (05 §9). */
async function revokeHandoff(
  office: Office,
  { tenant, id }: Asked<'handoffs.revoke'>,
): Promise<DeskReply> {
  const { desk } = office;
  const { handoff, execution } = await handoffAndExecution(office, tenant, id);
  requireState(desk, handoff, 'exported');
  return moveOnly(office, execution, handoff, 'revoked');
}

async function moveOnly(
  { desk }: Office,
  execution: ExecutionRow,
  handoff: HandoffRow,
  state: 'rejected' | 'revoked',
): Promise<DeskReply> {
  const turn = new Turn();
  const moved = moveHandoff(desk, turn, handoff, state);
  touchExecution(turn, execution);
  await desk.commit(turn);
  return { status: 200, body: handoffView(moved, desk.now) };
}
