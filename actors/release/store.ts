/** Commits each change of a release in one unit with its decision. */

import { mayMove, type ReleaseState } from '../../schema/release-states.js';
import { conflict } from '../../src/base/errors.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import { SEQUENCE } from '../catalog/tables.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { ReleaseRow } from './core/record.js';
import { RELEASE, RELEASE_DECISION } from './tables.js';

export interface Decision {
  readonly actor: string;
  readonly reason: string;
  /** Of the operator. */
  readonly request?: number;
}

export interface Move extends Decision {
  readonly to: ReleaseState;
  readonly set?: Partial<Pick<ReleaseRow, 'canary_percent' | 'validation_summary'>>;
}

/** Throws when the change is not allowed; called in the turn that makes its unit. */
export type Check = () => void;

/** The row after the move. @throws EngineError 409 for an invalid transition */
export function moved(row: ReleaseRow, { to, set }: Move, now: UnixMs): ReleaseRow {
  expectMove(row, to);
  // Decisions are listed by time, so a decision must not precede the last one when the clock is set back.
  const at = isoTime(Math.max(now, Date.parse(row.updated_at)));
  // Each start of a canary restarts the counts.
  const started = to === 'canary' ? { canary_started_at: at } : {};
  return { ...row, ...set, ...started, state: to, updated_at: at };
}

/**
 * Resolves when the release and its decision are durable, as one unit.
 * @throws EngineError of the check, or 503 when the outcome is unknown
 */
export async function commitRelease(
  { newId, log }: Pick<Kernel, 'newId' | 'log'>,
  service: Service,
  row: ReleaseRow,
  from: ReleaseState,
  { actor, reason, request }: Decision,
  check?: Check,
): Promise<void> {
  const id = newId();
  const { id: release_id, tenant_id, state: to, updated_at: decided_at } = row;
  const turn = new Turn(tenant_id, request);
  turn.put(RELEASE.set, release_id, row);
  const decision = { id, release_id, from_state: from, to_state: to, actor, reason, decided_at };
  turn.put(RELEASE_DECISION.insert, id, decision);
  turn.count('engine_release_decisions_total');
  if (to === 'promoted') {
    const candidate = row.candidate_sequence_id;
    turn.put(SEQUENCE.hold, candidate, { id: candidate, hold: false });
  }
  if (to === 'rolled_back') turn.count('engine_release_rollbacks_total');
  await service.commit(turn, { key: `release:${release_id}`, ...(check && { check }) });
  const fields = { releaseId: release_id, tenantId: tenant_id, from, to, actor };
  if (actor.startsWith('gate:')) log.warn(fields, 'a gate rolled a release back');
  else log.info(fields, 'release moved');
}

/** @throws EngineError 409 for an invalid transition */
export function expectMove(release: ReleaseRow, to: ReleaseState): void {
  const { id, state } = release;
  if (mayMove(state, to)) return;
  const ways = state === 'promoted' ? `; ${waysBack(release)}` : '';
  throw conflict(`release ${id} is ${state} and cannot become ${to}${ways}`);
}

/** The alternatives to reverting a promotion, which is impossible (docs/releases.md). */
function waysBack(release: ReleaseRow): string {
  const { baseline_version: old, candidate_version: promoted } = release;
  return (
    `to go back, deprecate version ${promoted} (POST /sequences/${release.candidate_sequence_id}/deprecate), ` +
    `or lead from version ${promoted} to version ${old} by a release of its own`
  );
}
