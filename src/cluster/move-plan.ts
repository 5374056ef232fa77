/**
 * The move of a tenant from one cell to another as a state machine: from what the directory and the two cells say
 * follows the one step that comes next. Nothing else is remembered, so whoever looks after a crash goes on where it
 * was. Pure.
 *
 *   copying ──► hold target ──► hold source ──► copy ──► switch ═► switched ──► admit ──► depart ──► clear ──► done
 *      ╚═ give up ═► given_up ──► readmit source ──► clear target ──► ended
 *
 * The double lines are single commits in the directory: before the first the tenant lives in the source, behind it
 * in the target, and of the two only one can happen. The target is held first: from the hold of the source on the
 * tenant waits. What one cell alone decides does not ask the other, which may be lost.
 */

import type { MoveState } from './directory.js';

/** The row of `tenant_moves` in one of the cells. */
export interface CellSays {
  readonly moveId: string;
  readonly state: 'leaving' | 'arriving' | 'left' | 'admitted';
  /** The engine has said that it does nothing of the tenant, nor ever will before it is told to. */
  readonly isHeld: boolean;
  /** All rows have come, and were found equal. */
  readonly isCopied: boolean;
}

export interface MoveFacts {
  readonly moveId: string;
  readonly state: MoveState;
  readonly isEnded: boolean;
  /** Undefined: there is no row. */
  readonly source: CellSays | undefined | 'unasked';
  readonly target: CellSays | undefined | 'unasked';
}

export type Step =
  /** What that cell says has to be known. */
  | 'ask-source'
  | 'ask-target'
  /** Writes that the tenant is leaving, or arriving. */
  | 'hold-source'
  | 'hold-target'
  /** The engine of that cell has yet to say something. */
  | 'await-source'
  | 'await-target'
  | 'await-admission'
  | 'await-readmission'
  /** All rows in one transaction, which ends with a comparison. */
  | 'copy'
  /** In one commit the tenant lives in the target. */
  | 'switch'
  | 'admit-target'
  | 'depart-source'
  /** Deletes the rows of the cell where the tenant does not live, and ends. */
  | 'clear-source'
  | 'clear-target'
  | 'readmit-source'
  | 'end'
  | 'nothing';

/** The rows of a cell and of the directory do not go together: somebody has changed them by hand. */
export class MoveError extends Error {
  override readonly name = 'MoveError';
}

/** What the owner of a cell last said of it. */
export interface CellTraits {
  readonly cell: string;
  /** The latest of its tables. */
  readonly migration: number;
  /** Of the encryption keys by which what is sealed there is read. */
  readonly key_ids: readonly string[];
}

/**
 * Both sides must have the same tables and columns, and those that this program knows: others would not be copied.
 *
 * @param own the newest migration of this program
 * @throws MoveError
 */
export function expectSameMigration(
  source: Pick<CellTraits, 'cell' | 'migration'>,
  target: Pick<CellTraits, 'cell' | 'migration'>,
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

/** Whatever is sealed in the source must be of use in the target. @throws MoveError */
export function expectAlike(source: CellTraits, target: CellTraits, own: number): void {
  expectSameMigration(source, target, own);
  if (source.key_ids.every((id) => target.key_ids.includes(id))) return;
  throw new MoveError(
    `cell ${target.cell} does not have the encryption key of cell ${source.cell}, so that secrets would be ` +
      'of no use there: start the engines of both with the same ENGINE_ENCRYPTION_KEY',
  );
}

/** @throws MoveError */
export function nextStep(facts: MoveFacts): Step {
  if (facts.isEnded) return 'nothing';
  switch (facts.state) {
    case 'copying':
      return toTheSwitch(facts);
    case 'switched':
      return behindTheSwitch(facts);
    case 'given_up':
      return backAgain(facts);
    case 'done':
      return 'end';
  }
}

function toTheSwitch({ moveId, source, target }: MoveFacts): Step {
  if (target === 'unasked') return 'ask-target';
  if (source === 'unasked') return 'ask-source';
  // A tenant is moved once at a time: rows of other moves are what these left behind.
  if (target?.moveId !== moveId) return 'hold-target';
  expectOwn(target, moveId, 'target', 'arriving');
  if (!target.isHeld) return 'await-target';
  if (source?.moveId !== moveId) return 'hold-source';
  expectOwn(source, moveId, 'source', 'leaving');
  if (!source.isHeld) return 'await-source';
  return target.isCopied ? 'switch' : 'copy';
}

function behindTheSwitch({ moveId, source, target }: MoveFacts): Step {
  if (target === 'unasked') return 'ask-target';
  if (target?.moveId === moveId) {
    if (target.state === 'arriving') return 'admit-target';
    if (target.state === 'admitted') return 'await-admission';
  }
  if (source === 'unasked') return 'ask-source';
  if (source?.moveId !== moveId) {
    throw new MoveError('the source has forgotten that the tenant has left');
  }
  return source.state === 'leaving' ? 'depart-source' : 'clear-source';
}

function backAgain({ moveId, source, target }: MoveFacts): Step {
  if (source === 'unasked') return 'ask-source';
  // First: the tenant waits for nothing else.
  if (source?.moveId === moveId) {
    if (source.state === 'leaving') return 'readmit-source';
    if (source.state === 'admitted') return 'await-readmission';
  }
  if (target === 'unasked') return 'ask-target';
  return target?.moveId === moveId && target.state === 'arriving' ? 'clear-target' : 'end';
}

function expectOwn(
  says: CellSays,
  moveId: string,
  cell: 'source' | 'target',
  state: CellSays['state'],
): void {
  if (says.moveId === moveId && says.state === state) return;
  throw new MoveError(
    `the ${cell} says that the tenant is ${says.state} by move ${says.moveId}, not ${state} by ${moveId}`,
  );
}
