/**
 * Registrations of runtimes and the placement of executions. Placement and preview store their
 * decision, to which a handoff is bound.
 */

import type { Execution } from '../../schema/execution.js';
import { invalid, notFound } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import { familyFindings } from '../instance/core/family.js';
import { Turn } from '../runtime/turn.js';
import {
  type HandoffPreview,
  liveCandidates,
  type PlacementDecision,
  placeExecution,
  placementDecision,
  previewHandoff,
} from './core/placement.js';
import {
  capabilitiesOf,
  type PlacementTerms,
  placementTerms,
  type SentTerms,
} from './core/runtimes.js';
import type { ExecutionService } from './execution-service.js';
import { type Serve, unwrapped } from './operation.js';
import type { ExecutionRow } from './rows.js';
import { PLACEMENT, RUNTIME } from './tables.js';

export const registerRuntime: Serve<'runtimes.register'> = async (service, { tenant, body }) => {
  if (tenant === '') throw invalid('tenant_id is required');
  const capabilities = unwrapped(capabilitiesOf(body.capabilities, service.now), invalid);
  const { runtime_id, observed_at, expires_at } = capabilities;
  const turn = new Turn();
  const row = { tenant_id: tenant, runtime_id, capabilities, observed_at, expires_at };
  turn.put(RUNTIME.set, `${tenant}:${runtime_id}`, row);
  await service.commit(turn);
  return capabilities;
};

export const place: Serve<'continuity.place'> = async (service, { tenant, id, body }) => {
  const terms = termsIn(body);
  const execution = await service.rows.owned('execution', tenant, id);
  const { now } = service;
  const runtimes = await service.rows.runtimes(execution.tenant_id, now);
  const { owner_runtime_id: owner } = execution;
  const placement = placeExecution(liveCandidates(runtimes, now), terms, owner, now);
  const decision = placementDecision(newDecision(service, execution), execution, terms, placement);
  await store(service, decision);
  return decision;
};

export const preview: Serve<'continuity.preview'> = async (service, { tenant, id, body }) => {
  const terms = termsIn(body);
  const execution = await service.rows.owned('execution', tenant, id);
  const seen = await previewOf(service, execution, terms, body.destination_runtime_id);
  if (seen === undefined) throw notFound(`live runtime ${body.destination_runtime_id}`);
  await store(service, seen.placement_decision);
  return seen;
};

export function termsIn(body: SentTerms): PlacementTerms {
  return unwrapped(placementTerms(body), invalid);
}

export async function previewOf(
  service: ExecutionService,
  execution: ExecutionRow,
  terms: PlacementTerms,
  destination: string,
): Promise<HandoffPreview | undefined> {
  const { rows, now } = service;
  const { tenant_id, current_instance_id: instance } = execution;
  const live = await rows.runtimes(tenant_id, now);
  // The destination is a candidate even after its registration has become too old.
  const isLive = live.some(({ runtime_id }) => runtime_id === destination);
  const late = isLive ? undefined : await rows.runtime(tenant_id, destination);
  const effects = await rows.unresolvedEffects(execution);
  // Parents and children keep an instance here. The export checks the instance itself.
  const row = await rows.one('kin', instance);
  const family = row && {
    instance,
    parent: row.parent_instance_id,
    execution: JSON.parse(row.execution) as Execution,
  };
  return previewHandoff({
    execution,
    runtimes: late === undefined ? live : [...live, late],
    destination_runtime_id: destination,
    terms,
    effects,
    obstacles: family === undefined ? [] : familyFindings(family),
    now: service.now,
    decision: newDecision(service, execution),
  });
}

function newDecision(service: ExecutionService, { continuity_id }: ExecutionRow) {
  return { id: service.newIdLike(continuity_id), created_at: isoTime(service.now) };
}

function store(service: ExecutionService, decision: PlacementDecision): Promise<void> {
  const { id, continuity_id, tenant_id, created_at } = decision;
  const turn = new Turn();
  turn.put(PLACEMENT.insert, id, { id, continuity_id, tenant_id, record: decision, created_at });
  return service.commit(turn);
}
