/**
 * The move of a tenant between two cells as a state machine: the rows of the directory and of both cells determine the
 * next step, so that a command continues after a crash of any part. Pure.
 *
 *   copying ─► suspend target ─► suspend source ─► copy ─► switch ═► switched ─► admit ─► depart ─► clear ─► done
 *      ╚═ give up ═► given_up ─► readmit source ─► clear target ─► ended
 *
 * Each double line is one commit in the directory, and only one of the two can happen: until the switch the tenant is
 * settled in the source, afterwards in the target. The target is suspended first, because the tenant waits from the
 * suspension of the source on. A step that concerns one cell does not read the other, which may be lost.
 */

import type { EngineReport, MoveRow } from './directory.js';

/** The row of `tenant_moves` in one of the cells. */
export interface CellMove {
  readonly moveId: string;
  readonly state: 'leaving' | 'arriving' | 'left' | 'admitted';
  /** Acknowledged by the engine: no owner, current or later, works for the tenant. */
  readonly isSuspended: boolean;
  /** All rows were copied and compared. */
  readonly isCopied: boolean;
}

export interface MoveFacts {
  readonly moveId: string;
  readonly state: MoveRow['state'];
  readonly isEnded: boolean;
  /** Undefined: no row. unknown: not read yet. */
  readonly source: CellMove | undefined | 'unknown';
  readonly target: CellMove | undefined | 'unknown';
}

export type Step =
  /** Reads the row of the cell. */
  | 'ask-source'
  | 'ask-target'
  /** Writes the row: the tenant is leaving, or arriving. */
  | 'suspend-source'
  | 'suspend-target'
  /** Waits for the engine of the cell. */
  | 'await-source'
  | 'await-target'
  | 'await-admission'
  | 'await-readmission'
  /** Copies all rows in one transaction, and compares them. */
  | 'copy'
  /** Settles the tenant in the target, in one commit. */
  | 'switch'
  | 'admit-target'
  | 'depart-source'
  /** Deletes the rows of the cell that does not have the tenant, and ends the move. */
  | 'clear-source'
  | 'clear-target'
  | 'readmit-source'
  | 'end'
  | 'nothing';

/** The message says how to continue. */
export class MoveError extends Error {
  override readonly name = 'MoveError';
}

/** From the last report of the owner. */
export type CellTraits = Pick<EngineReport, 'cell' | 'migration' | 'key_ids'>;

/** Other tables and columns than this program knows would not be copied. @throws MoveError */
export function expectSameMigration(
  source: Omit<CellTraits, 'key_ids'>,
  target: Omit<CellTraits, 'key_ids'>,
  own: number,
): void {
  if (source.migration !== target.migration) {
    throw new MoveError(
      `cell ${source.cell} has migration ${source.migration}, cell ${target.cell} has ` +
        `${target.migration}: upgrade the older one first`,
    );
  }
  if (source.migration === own) return;
  throw new MoveError(
    `the cells have migration ${source.migration}, this program ${own}: ` +
      'use the program of the version that they run',
  );
}

/** The target must be able to open the sealed data of the source. @throws MoveError */
export function expectCompatible(source: CellTraits, target: CellTraits, own: number): void {
  expectSameMigration(source, target, own);
  if (source.key_ids.every((id) => target.key_ids.includes(id))) return;
  throw new MoveError(
    `cell ${target.cell} does not have the encryption key of cell ${source.cell}, so that secrets would be ` +
      'of no use there: start the engines of both with the same ENGINE_ENCRYPTION_KEY',
  );
}

export function nextStep(facts: MoveFacts): Step {
  if (facts.isEnded) return 'nothing';
  if (facts.state === 'copying') return beforeSwitch(facts);
  if (facts.state === 'switched') return afterSwitch(facts);
  return facts.state === 'given_up' ? afterGivingUp(facts) : 'end';
}

function beforeSwitch({ moveId, source, target }: MoveFacts): Step {
  if (target === 'unknown') return 'ask-target';
  if (source === 'unknown') return 'ask-source';
  // A row of another move remains from an earlier one: a tenant has one move at a time.
  if (target?.moveId !== moveId) return 'suspend-target';
  expectOwn(target, moveId, 'target', 'arriving');
  if (!target.isSuspended) return 'await-target';
  if (source?.moveId !== moveId) return 'suspend-source';
  expectOwn(source, moveId, 'source', 'leaving');
  if (!source.isSuspended) return 'await-source';
  return target.isCopied ? 'switch' : 'copy';
}

function afterSwitch({ moveId, source, target }: MoveFacts): Step {
  if (target === 'unknown') return 'ask-target';
  if (target?.moveId === moveId) {
    if (target.state === 'arriving') return 'admit-target';
    if (target.state === 'admitted') return 'await-admission';
  }
  if (source === 'unknown') return 'ask-source';
  if (source?.moveId !== moveId) {
    throw new MoveError('the source has no row of the move that the tenant left by');
  }
  return source.state === 'leaving' ? 'depart-source' : 'clear-source';
}

function afterGivingUp({ moveId, source, target }: MoveFacts): Step {
  if (source === 'unknown') return 'ask-source';
  // First, because the tenant waits for it.
  if (source?.moveId === moveId) {
    if (source.state === 'leaving') return 'readmit-source';
    if (source.state === 'admitted') return 'await-readmission';
  }
  if (target === 'unknown') return 'ask-target';
  return target?.moveId === moveId && target.state === 'arriving' ? 'clear-target' : 'end';
}

function expectOwn(
  row: CellMove,
  moveId: string,
  cell: 'source' | 'target',
  state: CellMove['state'],
): void {
  if (row.moveId === moveId && row.state === state) return;
  throw new MoveError(
    `in the ${cell}, the tenant is ${row.state} by move ${row.moveId}, not ${state} by ${moveId}`,
  );
}
