/** Handoffs as rows: how one is found, and moved. */

import { handoffStateAt, handoffTerms } from '../../src/core/continuity/handoff-view.js';
import type { HandoffState } from '../../src/core/continuity/states.js';
import { mayMoveHandoff } from '../../src/core/continuity/states.js';
import { isoTime } from '../../src/core/time.js';
import { conflict, notFound } from '../../src/errors.js';
import type { Turn } from '../runtime/turn.js';
import type { ExecutionService } from './execution-service.js';
import type { Asked, ContinuityOperation } from './operation.js';
import type { HandoffRow } from './rows.js';

/** @throws EngineError 404 when the tenant ('' is any) has none of that id */
export async function handoffOf(
  service: ExecutionService,
  tenant: string,
  id: string,
): Promise<HandoffRow> {
  const row = await service.rows.handoff(id);
  if (row === undefined || (tenant !== '' && row.tenant_id !== tenant)) {
    throw notFound(`handoff ${id}`);
  }
  return row;
}

/** For every operation on a handoff. */
export async function lineOfHandoff<Id extends ContinuityOperation>(
  service: ExecutionService,
  { tenant, id }: Asked<Id>,
): Promise<string> {
  return (await handoffOf(service, tenant, id)).continuity_id;
}

/** @throws EngineError 409 unless the handoff is in that state now */
export function requireState(
  service: ExecutionService,
  handoff: HandoffRow,
  state: HandoffState,
): void {
  const is = handoffStateAt(handoff, service.now);
  if (is !== state) throw conflict(`handoff ${handoff.id} is ${is}, not ${state}`);
}

/** A new one, as it is. */
export function insertHandoff(turn: Turn, row: HandoffRow): void {
  turn.put('handoff.set', row.id, { ...row, terms: handoffTerms(row) });
}

/** The unit has to change or touch the execution too: its version is what guards the move. */
export function moveHandoff(
  service: ExecutionService,
  turn: Turn,
  before: HandoffRow,
  state: HandoffState,
  changes: Partial<Pick<HandoffRow, 'capsule_id' | 'capsule_expires_at' | 'failure_code'>> = {},
): HandoffRow {
  if (!mayMoveHandoff(before.state, state)) {
    throw conflict(`handoff ${before.id} is ${before.state} and cannot become ${state}`);
  }
  const version = before.version + 1;
  const after = { ...before, ...changes, state, version, updated_at: isoTime(service.now) };
  insertHandoff(turn, after);
  return after;
}
