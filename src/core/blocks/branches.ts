/**
 * parallel and race: all branches run at once, each as a list (docs/reference/blocks.md). A parallel ends when all
 * branches have ended, and fails if one failed. A race is decided by one branch; the losers are cut off, and the race
 * ends once their finally lists have run.
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

export type ParallelNode = NodePlace & { readonly type: 'parallel' };

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
    const result = afterChild(run, node, child, code);
    if (result === 'open') return;
    // A branch can also end as cancelled, beside a branch that still cleans up.
    if (result !== COMPLETED) record.f = 1;
    if (result === FAILED) noteFirst(run, record);
    record.l -= 1;
    if (record.l === 0) end(run, node, record, record.f === 1 ? FAILED : COMPLETED);
  },
});

/** In characters of JSON: the winner's output is stored a second time as part of the race's output. */
const WINNER_OUTPUT_MAX = 1024 * 1024;

export const race = composite<RaceBlock, RaceNode, BranchesRecord>({
  outputRow: 'last',
  reportsResult: true,
  compile: (block) => ({ semantics: block.semantics ?? 'first_to_resolve' }),
  lists: (block) => block.branches,
  order: 'together',
  enter(run, node) {
    const record: BranchesRecord = { b: run.offset, l: node.lists.length };
    run.open(node, record);
    for (const [number, branch] of node.lists.entries()) {
      // An empty branch completes at once.
      if (!startAt(run, branch, 0)) {
        win(run, node, record, number);
        return;
      }
    }
  },
  /** Called after all other branches were processed in this turn, and none has completed. */
  revisit(run, node, record) {
    if (record.f === 1) decide(run, node, record, FAILED);
  },
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node, child, code);
    if (result === 'open') return;
    if (result === COMPLETED) {
      win(run, node, record, child.branch);
      return;
    }
    record.l -= 1;
    if (result === FAILED) noteFirst(run, record);
    if (record.l === 0) decide(run, node, record, FAILED);
    else if (node.semantics === 'first_to_resolve' && result === FAILED) {
      // Not a branch that is cancelled because only clean-up runs. One that completes in the same turn still wins.
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

/** Decides races that a failed branch has won while the queue is not processed; inner races first. */
export function decideRaces(run: Evaluation): void {
  for (const key of Object.keys(run.execution.o).reverse()) {
    const node = run.plan.nodes[Number(key)]!;
    const record = run.execution.o[node.index] as BranchesRecord | undefined;
    if (node.type === 'race' && record?.x !== 1 && record?.f === 1) race.revisit(run, node, record);
  }
}

function win(run: Evaluation, node: RaceNode, record: BranchesRecord, winner: number): void {
  record.w = winner;
  decide(run, node, record, COMPLETED);
}

function decide(run: Evaluation, node: RaceNode, record: BranchesRecord, code: DoneCode): void {
  record.r = code;
  record.x = 1;
  // A branch that failed earlier does not make the race fail, but its clean-up is still owed.
  if (code === COMPLETED) reopenOwed(run, node, record);
  if (!cutInside(run, node, record, 'race')) end(run, node, record, code);
}

/** The first failure is the reported reason, even if other branches fail later. */
function noteFirst(run: Evaluation, record: BranchesRecord): void {
  if (record.y === undefined && run.cause !== undefined) record.y = run.cause;
}

function end(run: Evaluation, node: NodePlace, record: BranchesRecord, code: DoneCode): void {
  const { w: winner } = record;
  // Only now: if the race is stopped before the losers have cleaned up, a retry runs it again.
  if (code === COMPLETED && winner !== undefined && !run.owesInside(node)) {
    const output = resultOf(run, node, winner);
    const fits = sizeWithin(output, WINNER_OUTPUT_MAX) !== undefined;
    run.storeOutput(node, 0, fits ? { winner, output } : { winner, output_omitted: true }, null);
  }
  run.end(node, code, record.y);
}
