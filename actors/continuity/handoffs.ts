/**
 * Handoffs, and the placements that precede them. Placement and preview store their decision; a handoff
 * is bound to it and to a fresh preview. Each request first reconciles the execution with an expired
 * capsule, an interrupted export, or an instance that is still fenced after its handoff ended.
 */

import type { Execution } from '../../schema/continuity.js';
import { type HandoffState, holdsExecution } from '../../schema/continuity-words.js';
import type { Execution as Position } from '../../schema/execution.js';
import type { Handoff } from '../../schema/handoff.js';
import { conflict, invalid, notFound } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import { familyFindings } from '../instance/core/family.js';
import { Turn } from '../runtime/turn.js';
import {
  creationConflict,
  EXPORT_FAILED,
  type HandoffPreview,
  handoffStateAt,
  handoffView,
  liveCandidates,
  type PlacementDecision,
  placeExecution,
  placementDecision,
  previewHandoff,
  requestedHandoff,
} from './core/handoff.js';
import {
  capabilitiesOf,
  type PlacementTerms,
  placementTerms,
  type SentTerms,
} from './core/runtimes.js';
import { type ExecutionService, ExecutionUnit } from './execution-service.js';
import { type RequestTarget, refuseFor, type Serve, unwrapped } from './operation.js';
import type { ExecutionRow, HandoffRow } from './rows.js';
import { PLACEMENT, RUNTIME } from './tables.js';

export const createHandoff: Serve<'handoffs.create'> = async (service, { tenant, id, body }) => {
  const decision = await decisionOf(service, tenant, id);
  const terms = termsIn(body);
  const { tenant_id, continuity_id } = decision;
  const execution = await service.rows.owned('execution', tenant_id, continuity_id);
  const destination = body.destination_runtime_id;
  const seen = await previewOf(service, execution, terms, destination);
  const request = { ...body, terms };
  if (seen === undefined) throw conflict(`the destination ${destination} is not live`);
  refuseFor(creationConflict(request, decision, seen));
  const free = await reclaim(service, execution);
  const open = await openHandoff(service, free);
  if (open !== undefined) {
    throw conflict(`execution ${continuity_id} is being handed over by handoff ${open.id}`);
  }
  const handoffId = service.newIdLike(continuity_id);
  const row = requestedHandoff(handoffId, request, seen, decision, service.now);
  const unit = new ExecutionUnit(service, free);
  unit.putHandoff(row);
  await unit.commit();
  return handoffView(row, service.now);
};

export const rejectHandoff = mover('requested', 'rejected', (unit) => unit.commit());

/** One unit invalidates the capsule and resumes the source instance. */
export const revokeHandoff = mover('exported', 'revoked', takeBack, { state: 'owned' });

export const resumeHandoff = mover('accepted', 'resumed', async (unit, handoff) => {
  const { continuity_id, owner_runtime_id, current_instance_id, epoch } = unit.execution;
  if (owner_runtime_id !== handoff.destination_runtime_id) {
    throw conflict(`execution ${continuity_id} has another owner by now`);
  }
  const evidence = { handoff_id: handoff.id, instance_id: current_instance_id, epoch };
  await unit.enter({ kind: 'execution_resumed', summary: 'execution resumed', evidence });
  const expect = { states: ['paused'], fence: 'none' } as const;
  await unit.commit({ expect, changes: [{ kind: 'resume' }] });
});

/** @param commit adds to the unit, which already moves the handoff, and commits it */
function mover(
  from: Handoff['state'],
  to: Handoff['state'],
  commit: (unit: ExecutionUnit, handoff: HandoffRow) => Promise<unknown>,
  changes?: Pick<Execution, 'state'>,
) {
  return async (service: ExecutionService, { tenant, id }: RequestTarget) => {
    const { handoff, execution } = await handoffAndExecution(service, tenant, id);
    requireState(service, handoff, from);
    const unit = new ExecutionUnit(service, execution, changes);
    const moved = unit.moveHandoff(handoff, to);
    await commit(unit, handoff);
    return handoffView(moved, service.now);
  };
}

export interface HandoffAndExecution {
  readonly handoff: HandoffRow;
  readonly execution: ExecutionRow;
}

export async function decisionOf({ rows }: ExecutionService, tenant: string, id: string) {
  return JSON.parse((await rows.owned('decision', tenant, id)).record) as PlacementDecision;
}

export function requireState(service: ExecutionService, handoff: HandoffRow, state: HandoffState) {
  const is = handoffStateAt(handoff, service.now);
  if (is !== state) throw conflict(`handoff ${handoff.id} is ${is}, not ${state}`);
}

/** @throws EngineError 409 unless the source owns the execution in that state and at the agreed epoch */
export function requireExecution(
  { handoff, execution }: HandoffAndExecution,
  state: ExecutionRow['state'],
): void {
  const isSame =
    execution.state === state &&
    execution.epoch === handoff.expected_epoch &&
    execution.owner_runtime_id === handoff.source_runtime_id;
  if (!isSame) throw conflict(`execution ${execution.continuity_id} was changed meanwhile`);
}

/** Ends interrupted, expired and completed handoffs. @returns the execution after that */
export async function settle(service: ExecutionService, execution: ExecutionRow) {
  const { rows, now } = service;
  const handoffs = await rows.all('handoffs', execution.continuity_id);
  const open = handoffs.find(isOpen);
  if (open !== undefined) {
    const unit = new ExecutionUnit(service, execution, { state: 'owned' });
    // Exports run in this line: an open one was interrupted.
    if (open.state === 'quiescing') {
      unit.moveHandoff(open, 'failed', { failure_code: EXPORT_FAILED });
    } else if (handoffStateAt(open, now) === 'expired') unit.moveHandoff(open, 'expired');
    else return execution;
    return takeBack(unit);
  }
  const resumed = handoffs.findLast(({ state }) => state === 'resumed');
  if (resumed === undefined) return execution;
  const epoch = resumed.expected_epoch + 1;
  const destination = await rows.one('stateAt', execution.continuity_id, epoch);
  if (handoffStateAt(resumed, now, destination?.state) !== 'completed') return execution;
  const unit = new ExecutionUnit(service, execution);
  unit.moveHandoff(resumed, 'completed');
  await unit.commit();
  return unit.row;
}

/** Both after `settle`. */
export async function handoffAndExecution(service: ExecutionService, tenant: string, id: string) {
  const { rows } = service;
  const { tenant_id, continuity_id } = await rows.owned('handoff', tenant, id);
  const execution = await settle(service, await rows.owned('execution', tenant_id, continuity_id));
  return { handoff: await rows.owned('handoff', tenant, id), execution };
}

/** Settles, and takes back an execution in transfer without an open handoff. */
export async function reclaim(service: ExecutionService, before: ExecutionRow) {
  const execution = await settle(service, before);
  if (execution.state !== 'transferring') return execution;
  const open = await openHandoff(service, execution);
  return open === undefined
    ? takeBack(new ExecutionUnit(service, execution, { state: 'owned' }))
    : execution;
}

async function openHandoff({ rows }: ExecutionService, { continuity_id }: ExecutionRow) {
  return (await rows.all('handoffs', continuity_id)).find(isOpen);
}

const isOpen = ({ state }: HandoffRow) => holdsExecution(state);

/** Answers a fenced instance that asks whether its fence still applies. */
export async function answerFence(
  service: ExecutionService,
  continuityId: string,
  instance: string,
): Promise<void> {
  const found = await service.rows.one('execution', continuityId);
  if (found === undefined) return;
  if (found.current_instance_id !== instance) {
    await fenceMoved(service, { ...found, current_instance_id: instance });
    return;
  }
  const execution = await reclaim(service, found);
  const open = await openHandoff(service, execution);
  const { epoch } = execution;
  const expect = { fence: 'transferring', epoch } as const;
  if (open !== undefined) {
    const fence = { reason: 'transferring', until: open.capsule_expires_at } as const;
    await service.order(execution, { expect, changes: [{ kind: 'fence', fence }] });
  } else if (found.version === execution.version) {
    const unit = new ExecutionUnit(service, execution);
    await service.order(execution, { expect, changes: [{ kind: 'own', epoch }] }, unit);
  }
}

/** The execution continues as another instance; this one never runs again. */
export const MOVED_FENCE = { kind: 'fence', fence: { reason: 'moved', until: null } } as const;

export async function fenceMoved(
  service: ExecutionService,
  source: Pick<ExecutionRow, 'current_instance_id' | 'tenant_id'>,
): Promise<void> {
  await service.order(source, { expect: { fence: 'transferring' }, changes: [MOVED_FENCE] });
}

/** The source owns the execution again at the same epoch; its instance, if here, continues. */
async function takeBack(unit: ExecutionUnit): Promise<ExecutionRow> {
  const { epoch } = unit.execution;
  const expect = { fence: 'transferring', epoch } as const;
  await unit.commit({ expect, changes: [{ kind: 'own', epoch }] });
  return unit.row;
}

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
    execution: JSON.parse(row.execution) as Position,
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
