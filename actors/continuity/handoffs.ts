/**
 * Handoffs: the creation, bound to a fresh preview (05 §8), and every move but the export (05 §9).
 */

import { canonicalJson } from '../../src/core/continuity/canonical-json.js';
import { type PlacementDecision, termsOf } from '../../src/core/continuity/placement.js';
import type { HandoffPreview } from '../../src/core/continuity/preview.js';
import { areSameTerms, type PlacementTerms } from '../../src/core/continuity/requirements.js';
import { isoTime } from '../../src/core/time.js';
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
  const seen = await previewOf(desk, execution, terms, body.destination_runtime_id);
  const named = body.continuity_id ?? decision.continuity_id;
  const facts = { terms, seen, hash: body.preview_sha256.toLowerCase(), named };
  const fresh = freshPreview(decision, execution, body.destination_runtime_id, facts);
  const free = await reclaim(office, execution);
  const open = await openHandoff(desk, free);
  if (open !== undefined) {
    throw conflict(`execution ${free.continuity_id} is being handed over by handoff ${open.id}`);
  }
  const now = isoTime(desk.now);
  const row: HandoffRow = {
    id: desk.deps.newIdLike(free.continuity_id),
    continuity_id: free.continuity_id,
    tenant_id: free.tenant_id,
    source_runtime_id: free.owner_runtime_id,
    destination_runtime_id: body.destination_runtime_id,
    expected_epoch: free.epoch,
    state: 'requested',
    capsule_id: null,
    capsule_expires_at: null,
    placement_decision_id: decision.id,
    preview_sha256: fresh.preview_sha256,
    version: 0,
    failure_code: null,
    terms: JSON.stringify(terms),
    created_at: now,
    updated_at: now,
  };
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

/** What the caller means, and what a preview shows now. */
interface Facts {
  readonly terms: PlacementTerms;
  readonly seen: HandoffPreview | undefined;
  readonly hash: string;
  readonly named: string;
}

/**
 * Steps 5 to 8 of 05 §8: everything is as it was when the caller looked.
 *
 * @throws EngineError 409
 */
function freshPreview(
  decision: PlacementDecision,
  execution: ExecutionRow,
  destination: string,
  { terms, seen, hash, named }: Facts,
): HandoffPreview {
  if (seen === undefined) throw conflict(`the destination ${destination} is not live`);
  if (!seen.compatible) throw conflict(`the destination ${destination} is not compatible`);
  if (seen.preview_sha256 !== hash) {
    throw conflict('the placement preview is stale: what it showed has changed');
  }
  const now = seen.placement_decision;
  const isSame =
    named === decision.continuity_id &&
    execution.epoch === decision.epoch &&
    decision.selected_runtime_id === destination &&
    now.selected_runtime_id === destination &&
    areSameTerms(termsOf(decision), terms) &&
    canonicalJson(decision.candidates) === canonicalJson(now.candidates);
  if (!isSame) throw conflict('the placement decision is stale: it is not what the preview shows');
  return seen;
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
