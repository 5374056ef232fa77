/**
 * parallel and race: every branch is a list, and all of them run at once. A parallel is done when
 * all branches are, and failed if one of them failed (docs/reference/blocks.md). A race is decided
 * by one branch, whose result is told by its row; the others are cut off, and if that leaves finally lists
 * to run, it ends when they have.
 */

import type { ParallelBlock, RaceBlock } from '../../../schema/blocks.js';
import {
  type BranchesRecord,
  CANCELLED,
  COMPLETED,
  type DoneCode,
  FAILED,
} from '../../../schema/execution.js';
import { sizeWithin } from '../../base/bounds.js';
import { cutInside, hasOpenInside, reopenOwed } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import type { NodePlace } from '../plan-nodes.js';
import { composite } from './kind.js';
import { afterChild, startAt } from './list.js';
import { resultOf } from './results.js';

/** Lists: the branches. */
export interface ParallelNode extends NodePlace {
  readonly type: 'parallel';
}

export interface RaceNode extends NodePlace {
  readonly type: 'race';
  readonly semantics: 'first_to_resolve' | 'first_to_succeed';
}

export const parallel = composite<ParallelBlock, ParallelNode, BranchesRecord>({
  compile: () => ({}),
  lists: (block) => block.branches,
  order: 'together',
  enter(run, node) {
    const record: BranchesRecord = { b: run.offset, l: 0 };
    for (const branch of node.lists) if (startAt(run, branch, 0)) record.l += 1;
    if (record.l === 0) run.finish(node, COMPLETED);
    else run.open(node, record);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[child.branch]!, child, code);
    if (result === 'open') return;
    // A branch is cancelled beside one that is still to clean up.
    if (result !== COMPLETED) record.f = 1;
    if (result === FAILED) noteFirst(run, record);
    record.l -= 1;
    if (record.l === 0) end(run, node, record, record.f === 1 ? FAILED : COMPLETED);
  },
});

/** As JSON, in characters: the output of the winner is stored a second time with that of the race. */
const WINNER_OUTPUT_MAX = 1024 * 1024;

export const race = composite<RaceBlock, RaceNode, BranchesRecord>({
  leavesRow: 'last',
  tellsResults: true,
  compile: (block) => ({ semantics: block.semantics ?? 'first_to_resolve' }),
  lists: (block) => block.branches,
  order: 'together',
  enter(run, node) {
    const record: BranchesRecord = { b: run.offset, l: node.lists.length };
    run.open(node, record);
    for (const [number, branch] of node.lists.entries()) {
      // A branch with nothing to do finishes at once, successfully.
      if (!startAt(run, branch, 0)) {
        win(run, node, record, number);
        return;
      }
    }
  },
  /** Queued by a failed branch: every other branch had its turn, and none has succeeded. */
  again(run, node, record) {
    if (record.f === 1) decide(run, node, record, FAILED);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[child.branch]!, child, code);
    if (result === 'open') return;
    if (result === COMPLETED) {
      win(run, node, record, child.branch);
      return;
    }
    record.l -= 1;
    if (result === FAILED) noteFirst(run, record);
    if (record.l === 0) decide(run, node, record, FAILED);
    else if (node.semantics === 'first_to_resolve') {
      // A success in the same round is a tie, and wins it.
      record.f = 1;
      run.push(node.index);
    }
  },
  childCut(run, node, record) {
    if (!hasOpenInside(run, node)) end(run, node, record, record.r ?? CANCELLED);
  },
  endLate: end,
  unreached: 'cancelled',
});

/**
 * Decides the races that a failure has won, for when nothing is taken from the queue: a success that
 * comes with a later event is no tie. Inner ones first, since they may fail branches of outer ones.
 */
export function decideRaces(run: Evaluation): void {
  for (const key of Object.keys(run.execution.o).reverse()) {
    const node = run.plan.nodes[Number(key)]!;
    const record = run.execution.o[node.index] as BranchesRecord | undefined;
    if (node.type === 'race' && record?.x !== 1 && record?.f === 1) race.again(run, node, record);
  }
}

function win(run: Evaluation, node: RaceNode, record: BranchesRecord, winner: number): void {
  record.w = winner;
  decide(run, node, record, COMPLETED);
}

/** Once: what is stopped before the losers have cleaned up runs again in a retry. */
function storeResult(run: Evaluation, node: NodePlace, winner: number): void {
  const output = resultOf(run, node, winner);
  const isTold = sizeWithin(output, WINNER_OUTPUT_MAX) !== undefined;
  run.storeOutput(node, 0, isTold ? { winner, output } : { winner, output_omitted: true }, null);
}

function decide(run: Evaluation, node: RaceNode, record: BranchesRecord, code: DoneCode): void {
  record.r = code;
  record.x = 1;
  // A branch that has failed before does not make the race fail.
  if (code === COMPLETED) reopenOwed(run, node, record);
  if (!cutInside(run, node, record, 'race')) end(run, node, record, code);
}

/** The first failure is the reason that is told, whatever else fails while the others go on. */
function noteFirst(run: Evaluation, record: BranchesRecord): void {
  if (record.y === undefined && run.cause !== undefined) record.y = run.cause;
}

function end(run: Evaluation, node: NodePlace, record: BranchesRecord, code: DoneCode): void {
  if (code === FAILED) run.fail(node, record.y);
  else {
    const isOver = code === COMPLETED && !run.owesInside(node);
    if (isOver && record.w !== undefined) storeResult(run, node, record.w);
    run.finish(node, code);
  }
}
