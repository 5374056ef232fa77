/**
 * Placement of an execution and the preview of its handoff (05 §6 and §7). Both store the decision
 * that they answer with; a handoff is then bound to it.
 */

import type { RuntimeCapabilities } from '../../src/core/continuity/capabilities.js';
import {
  liveCandidates,
  type PlacementDecision,
  placeExecution,
  placementDecision,
} from '../../src/core/continuity/placement.js';
import { type HandoffPreview, previewHandoff } from '../../src/core/continuity/preview.js';
import {
  type PlacementTerms,
  parsePlacementTerms,
} from '../../src/core/continuity/requirements.js';
import type { JsonObject } from '../../src/core/json.js';
import { isoTime } from '../../src/core/time.js';
import { invalid, notFound } from '../../src/errors.js';
import { Turn } from '../turn.js';
import type { Desk, DeskReply } from './desk.js';
import { executionOf } from './executions.js';
import type { Asked, Office, Services } from './office.js';
import type { ExecutionRow } from './rows.js';

export const PLACEMENT_SERVICES = {
  'continuity.place': { serve: place },
  'continuity.preview': { serve: preview },
} satisfies Services;

async function place(
  { desk }: Office,
  { tenant, id, body }: Asked<'continuity.place'>,
): Promise<DeskReply> {
  const terms = termsIn(body);
  const execution = await executionOf(desk, tenant, id);
  const runtimes = await desk.deps.rows.runtimes(execution.tenant_id, desk.now);
  const { now } = desk;
  const { owner_runtime_id: owner } = execution;
  const placement = placeExecution(liveCandidates(runtimes, now), terms, owner, now);
  const decision = placementDecision(newDecision(desk, execution), execution, terms, placement);
  await store(desk, decision);
  return { status: 200, body: decision };
}

async function preview(
  { desk }: Office,
  { tenant, id, body }: Asked<'continuity.preview'>,
): Promise<DeskReply> {
  const terms = termsIn(body);
  const execution = await executionOf(desk, tenant, id);
  const seen = await previewOf(desk, execution, terms, body.destination_runtime_id);
  if (seen === undefined) throw notFound(`live runtime ${body.destination_runtime_id}`);
  await store(desk, seen.placement_decision);
  return { status: 200, body: seen };
}

/** @throws EngineError 400 */
export function termsIn(body: object): PlacementTerms {
  const terms = parsePlacementTerms(body as JsonObject);
  if (!terms.ok) throw invalid(terms.message);
  return terms.value;
}

/** As of now; undefined when the destination is not registered or no longer live. */
export async function previewOf(
  desk: Desk,
  execution: ExecutionRow,
  terms: PlacementTerms,
  destination: string,
): Promise<HandoffPreview | undefined> {
  const { rows } = desk.deps;
  const runtimes = await runtimesWith(desk, execution.tenant_id, destination);
  const effects = await rows.unresolvedEffects(execution);
  return previewHandoff({
    execution,
    runtimes,
    destination_runtime_id: destination,
    terms,
    effects,
    now: desk.now,
    decision: newDecision(desk, execution),
  });
}

/** The candidates, and the destination among them however long ago it was seen. */
async function runtimesWith(
  { deps: { rows }, now }: Desk,
  tenant: string,
  destination: string,
): Promise<RuntimeCapabilities[]> {
  const runtimes = await rows.runtimes(tenant, now);
  if (runtimes.some(({ runtime_id }) => runtime_id === destination)) return runtimes;
  const wanted = await rows.runtime(tenant, destination);
  return wanted === undefined ? runtimes : [...runtimes, wanted];
}

function newDecision({ deps, now }: Desk, { continuity_id }: ExecutionRow) {
  return { id: deps.newIdLike(continuity_id), created_at: isoTime(now) };
}

function store(desk: Desk, decision: PlacementDecision): Promise<void> {
  const { id, continuity_id, tenant_id, created_at } = decision;
  const turn = new Turn();
  const row = { id, continuity_id, tenant_id, record: decision, created_at };
  turn.put('placement.insert', id, row);
  return desk.commit(turn);
}
