/**
 * parallel and race: every branch is a list, and all of them run at once. A parallel is done when
 * all branches are, and failed if one of them failed (02 §3.1). A race is decided by one branch; the
 * others are cut off, and if that leaves finally lists to run, it ends when they have (02 §3.2).
 */

import { cutChildren } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import { type BranchesRecord, COMPLETED, type DoneCode, FAILED } from '../execution.js';
import type { ParallelNode, RaceNode } from '../plan-nodes.js';
import type { BlockKind } from './kind.js';
import { afterChild, startAt } from './list.js';

export const parallel: BlockKind<ParallelNode, BranchesRecord> = {
  isKept: false,
  enter(run, node) {
    const record: BranchesRecord = { b: run.offset, l: 0 };
    for (const branch of node.lists) if (startAt(run, branch, 0)) record.l += 1;
    if (record.l === 0) run.finish(node, COMPLETED);
    else run.open(node, record);
  },
  again() {},
  childDone(run, node, record, child, code) {
    const result = afterChild(run, node.lists[child.branch]!, child, code);
    if (result === 'open') return;
    if (result === FAILED) record.f = 1;
    record.l -= 1;
    if (record.l === 0) run.finish(node, record.f === 1 ? FAILED : COMPLETED);
  },
  runsList: () => true,
};

export const race: BlockKind<RaceNode, BranchesRecord> = {
  isKept: false,
  enter(run, node) {
    const record: BranchesRecord = { b: run.offset, l: node.lists.length };
    run.open(node, record);
    for (const branch of node.lists) {
      // A branch with nothing to do finishes at once, successfully (06 row 62).
      if (!startAt(run, branch, 0)) {
        decide(run, node, record, COMPLETED);
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
      decide(run, node, record, COMPLETED);
      return;
    }
    record.l -= 1;
    if (record.l === 0) decide(run, node, record, FAILED);
    else if (node.semantics === 'first_to_resolve') {
      // A success in the same round is a tie, and wins it (02 §3.2).
      record.f = 1;
      run.push(node.index);
    }
  },
  runsList: () => true,
};

function decide(run: Evaluation, node: RaceNode, record: BranchesRecord, code: DoneCode): void {
  record.r = code;
  record.x = 1;
  record.l = cutChildren(run, node, 'race');
  if (record.l === 0) run.finish(node, code);
}
