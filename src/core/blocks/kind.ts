/**
 * What a kind of block must say for the evaluator to run it. A further kind is a schema row, a node
 * type with its line in the compiler, and one such object in `kinds.ts`.
 */

import type { Evaluation } from '../evaluation.js';
import type { DoneCode, OpenRecord } from '../execution.js';
import type { PlanNode } from '../plan-nodes.js';

export interface BlockKind<N extends PlanNode, R extends OpenRecord> {
  /** The block is reached for the first time (in this iteration). */
  enter(run: Evaluation, node: N): void;
  /** The open block has come up in the queue again, because it asked for that. */
  again(run: Evaluation, node: N, record: R): void;
  /** A child is done. Not called while the block is being cut off. */
  childDone(run: Evaluation, node: N, record: R, child: PlanNode, code: DoneCode): void;
  /** Whether blocks of the list `branch` may still be started. */
  runsList(record: R, branch: number): boolean;
  /** A retry of the instance goes on from the record instead of from the beginning. */
  readonly isKept: boolean;
}
