/**
 * The rows of releases as last committed, and their changes: each in one unit with its decision. Nothing is read while
 * units of a failed writer are unsettled.
 */

import { mayMove, type ReleaseState } from '../../schema/release-states.js';
import { conflict } from '../../src/base/errors.js';
import { isoTime } from '../../src/base/time.js';
import type { CatalogLoads } from '../catalog/loads.js';
import { SEQUENCE } from '../catalog/tables.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { ReleaseRow } from './core/record.js';
import type { ReleaseLoads } from './loads.js';
import { RELEASE, RELEASE_DECISION } from './tables.js';

export type StoreLoads = ReleaseLoads & Pick<CatalogLoads, 'sequence'>;

export interface ReleaseStoreDeps
  extends Pick<Kernel<StoreLoads>, 'loader' | 'now' | 'newId' | 'log'> {
  readonly service: Service;
}

export interface Decision {
  readonly actor: string;
  readonly reason: string;
}

export interface Move extends Decision {
  readonly to: ReleaseState;
  /** Further columns to set. */
  readonly set?: Partial<Pick<ReleaseRow, 'canary_percent' | 'validation_summary'>>;
}

/** Throws when the change is not allowed; called in the turn that makes its unit. */
export type Check = () => void;

const NO_CHECK: Check = () => undefined;

export class ReleaseStore {
  readonly #deps: ReleaseStoreDeps;

  constructor(deps: ReleaseStoreDeps) {
    this.#deps = deps;
  }

  /** @throws EngineError 503 when the rows cannot be read */
  read<T>(ask: (rows: StoreLoads) => Promise<T>): Promise<T> {
    const { service, loader } = this.#deps;
    return service.read(() => ask(loader));
  }

  /** Resolves when the new release is durable. Rejects as the check does, or with 503. */
  create(row: ReleaseRow, decision: Decision, check: Check): Promise<void> {
    return this.#commit(row, row.state, decision, check);
  }

  /**
   * @param row as stored; nothing else changes it meanwhile
   *
   * @returns the row after the move
   * @throws EngineError 409 for an invalid transition; 503 when the outcome is unknown
   */
  async move(
    row: ReleaseRow,
    { to, set, ...decision }: Move,
    check = NO_CHECK,
  ): Promise<ReleaseRow> {
    expectMove(row, to);
    // Decisions are listed in the order of their times, also after the clock was set back.
    const at = isoTime(Math.max(this.#deps.now(), Date.parse(row.updated_at)));
    // Each start of a canary counts anew.
    const started = to === 'canary' ? { canary_started_at: at } : {};
    const moved: ReleaseRow = { ...row, ...set, ...started, state: to, updated_at: at };
    await this.#commit(moved, row.state, decision, check);
    return moved;
  }

  async #commit(
    row: ReleaseRow,
    from: ReleaseState,
    { actor, reason }: Decision,
    check: Check,
  ): Promise<void> {
    const { newId, log, service } = this.#deps;
    const id = newId();
    const { id: release_id, state: to_state, updated_at: decided_at } = row;
    const turn = new Turn(row.tenant_id);
    turn.put(RELEASE.set, release_id, row);
    turn.put(RELEASE_DECISION.insert, id, {
      id,
      release_id,
      from_state: from,
      to_state,
      actor,
      reason,
      decided_at,
    });
    turn.count('engine_release_decisions_total');
    if (to_state === 'promoted') {
      const candidate = row.candidate_sequence_id;
      turn.put(SEQUENCE.hold, candidate, { id: candidate, hold: false });
    }
    if (to_state === 'rolled_back') turn.count('engine_release_rollbacks_total');
    await service.commit(turn, { key: `release:${release_id}`, check });
    const told = { releaseId: release_id, tenantId: row.tenant_id, from, to: to_state, actor };
    if (actor.startsWith('gate:')) log.warn(told, 'a gate rolled a release back');
    else log.info(told, 'release moved');
  }
}

/** @throws EngineError 409 for an invalid transition */
export function expectMove(release: ReleaseRow, to: ReleaseState): void {
  const { id, state } = release;
  if (mayMove(state, to)) return;
  const ways = state === 'promoted' ? `; ${waysBack(release)}` : '';
  throw conflict(`release ${id} is ${state} and cannot become ${to}${ways}`);
}

/** A promotion cannot be reverted (docs/releases.md): suggests what can be done instead. */
function waysBack(release: ReleaseRow): string {
  const { baseline_version: old, candidate_version: promoted } = release;
  return (
    `to go back, deprecate version ${promoted} (POST /sequences/${release.candidate_sequence_id}/deprecate), ` +
    `or lead from version ${promoted} to version ${old} by a release of its own`
  );
}
