/** Handoffs and the placement decisions they are bound to, as rows. */

import { type HandoffState, mayMoveHandoff } from '../../schema/continuity-words.js';
import { conflict } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import type { Turn } from '../runtime/turn.js';
import { handoffStateAt, handoffTerms } from './core/handoff-view.js';
import type { PlacementDecision } from './core/placement.js';
import type { ExecutionService } from './execution-service.js';
import type { ExecutionRow, HandoffRow } from './rows.js';
import { HANDOFF } from './tables.js';

export interface HandoffAndExecution {
  readonly handoff: HandoffRow;
  readonly execution: ExecutionRow;
}

/** Rejects with 404 when the tenant ('' is any) has none of that id. */
export async function decisionOf(
  { rows }: ExecutionService,
  tenant: string,
  id: string,
): Promise<PlacementDecision> {
  return JSON.parse((await rows.owned('decision', tenant, id)).record) as PlacementDecision;
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

export function putHandoff(turn: Turn, row: HandoffRow): void {
  turn.put(HANDOFF.set, row.id, { ...row, terms: handoffTerms(row) });
}

/** The unit has to put or touch the execution too: its version guards the move. */
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
  putHandoff(turn, after);
  return after;
}
