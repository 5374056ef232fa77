/**
 * The interface of a block kind: how its blocks are compiled, run, cut off, and shown in the tree of an instance. The
 * evaluator calls kinds only through it (`docs/adding-blocks.md` shows how to add a kind). A leaf performs work itself and
 * waits for it; a composite contains blocks.
 */

import type { Block } from '../../../schema/blocks.js';
import {
  CANCELLED,
  COMPLETED,
  type DoneCode,
  FAILED,
  type OpenRecord,
  type RouterRecord,
  type StepRecord,
} from '../../../schema/execution.js';
import type { NodeState } from '../../../schema/states.js';
import type { JsonValue } from '../../base/json.js';
import type { BlockCompiler } from '../block-compiler.js';
import { type CutBy, cutOff, hasOpenInside } from '../cutting.js';
import { timeOutBlock } from '../deadlines.js';
import type { Evaluation } from '../evaluation.js';
import type { Details, NodePlace, PlannedExecution } from '../plan-nodes.js';
import type { TryEvent } from '../progress.js';
import { afterChild, startList } from './list.js';

export interface BlockKind<
  B extends Block = Block,
  N extends NodePlace = NodePlace,
  R extends OpenRecord = OpenRecord,
> {
  /** Contains no blocks; its record is a `StepRecord` and is opened by `Evaluation.putLeaf`. */
  readonly isLeaf: boolean;
  /** `iterations`: the blocks inside run repeatedly, by a `LoopRecord`; `items`: each iteration has an item. */
  readonly repeats: 'never' | 'iterations' | 'items';
  /** Blocks see their outputs of the previous iteration until they begin in the current one. */
  readonly carriesOutputs: boolean;
  /** A retry of the instance continues from the record instead of from the beginning. */
  readonly isKept: boolean;

  /** Whether a completed block has an output row of its own, written before or after those of the blocks inside. */
  readonly outputRow: 'never' | 'first' | 'last';
  /** The block's own row contains the result of a list (`results.ts`). */
  readonly reportsResult: boolean;

  compile(block: B, compiler: BlockCompiler): Details<N>;
  /** The lists of blocks, in the order in which `branch` counts them. */
  lists(block: B): readonly (readonly Block[])[];
  /** How many copies of its one list the plan contains, so that iterations can run concurrently. */
  copies(node: N): number;
  /** The first position in its list whose output may be the last one of an iteration. */
  lastOutputFrom(block: B): number;
  /** Whether this list sees the block's own `data._error`; the record is then a `CatchingRecord`. */
  seesError(branch: number): boolean;
  /** Whether the list is a clean-up, which also runs when the block is cut off. */
  cleansUp(branch: number): boolean;
  /** Whether a failure in the list was handled by another list of the block. */
  handlesFailure(record: R, branch: number): boolean;
  /** Whether a retry that continues from the record has failed clean-up to repeat. */
  owes(run: PlannedExecution, node: N, kept: R): boolean;
  /** Whether the block's own clean-up has failed, and is owed even if the block was cut off. */
  hasNotCleanedUp(run: PlannedExecution, node: N, kept: R): boolean;
  /** Whether the list runs again because it is owed, and cannot be cut off. */
  runsOwed(record: R, branch: number): boolean;
  /** Whether only failed clean-up runs in the list. */
  onlyCleansUp(record: R, branch: number): boolean;
  /** Whether the lists run one after another, all at once, or only one of them. */
  readonly order: 'in-turn' | 'together' | 'one';
  /** The parts of the block that have ids, with their paths in the block. The block may not be valid. */
  names(block: B): readonly { readonly path: string; readonly id: string }[];

  /** The block is reached, but its `when` cannot be parsed: the block fails. */
  invalidWhen(run: Evaluation, node: N, message: string): void;
  /** The block is reached for the first time in this iteration of the loops around it. */
  enter(run: Evaluation, node: N): void;
  /** The open block has queued itself and is now processed. */
  revisit(run: Evaluation, node: N, record: R): void;
  /** A child is done. Not called while the block is being cut off. */
  childDone(run: Evaluation, node: N, record: R, child: NodePlace, code: DoneCode): void;
  /** Whether blocks of the list `branch` may start now. */
  runsList(record: R, branch: number): boolean;
  /** The names and values that the iteration in this slot adds to context.data. */
  item(
    run: Evaluation,
    node: N,
    record: R,
    slot: number,
  ): readonly (readonly [name: string, value: JsonValue])[];

  /** A deadline of the open block has passed; for a composite, its timeout. */
  due(run: Evaluation, node: N, record: R): void;
  /** Handles an event about a try of the open block; false when the block does not wait for it. */
  handleEvent(run: Evaluation, node: N, record: R, event: TryEvent): boolean;
  /** The process that ran the leaf has ended. */
  recover(run: Evaluation, node: N, record: R): void;

  /** Cuts off the open block. Closes it, or returns true when protected work continues inside. */
  cut(run: Evaluation, node: N, record: R, by: CutBy): boolean;
  /** Protected work in a block that is being cut off has ended. */
  childCut(run: Evaluation, node: N, record: R): void;
  /** A retry of the instance repeats clean-up of the block that had failed. */
  cleanUpAgain(run: Evaluation, node: N, record: R): void;
  /** The repeated clean-up is done; the block ends with the result that it had before. */
  endLate(run: Evaluation, node: N, record: R, code: DoneCode): void;
  /** The open block ends early: withdraws its requests to others. */
  withdraw(run: Evaluation, node: N, record: R): void;

  openState(record: R): NodeState;
  /** Whether the open block may still reach blocks of the list `branch` that have not been reached. */
  awaits(record: R, branch: number): boolean;
  /** The state that the tree shows for blocks that were not reached before this one ended. */
  readonly unreached: 'skipped' | 'cancelled';
}

type Own<K, Needed extends keyof K> = Pick<K, Needed> & Partial<K>;

/** Defines a leaf. By default nothing in it is protected from being cut off. */
export function leaf<B extends Block, N extends NodePlace>(
  own: Own<BlockKind<B, N, StepRecord>, 'compile' | 'enter' | 'due' | 'handleEvent' | 'openState'>,
): BlockKind<B, N, StepRecord> {
  return { ...BASE, isLeaf: true, ...own };
}

/** Defines a composite. By default cutting it off cuts off what is open inside. */
export function composite<B extends Block, N extends NodePlace, R extends OpenRecord>(
  own: Own<BlockKind<B, N, R>, 'compile' | 'lists' | 'enter'>,
): BlockKind<B, N, R> {
  return { ...BASE, ...own };
}

/** Defines a composite that runs one of its lists. The choice is stored, and a retry of the instance keeps it. */
export function choice<B extends Block, N extends NodePlace>({
  choose,
  ...own
}: Own<BlockKind<B, N, RouterRecord>, 'compile' | 'lists'> & {
  choose(run: Evaluation, node: N): number;
}): BlockKind<B, N, RouterRecord> {
  return composite<B, N, RouterRecord>({
    isKept: true,
    order: 'one',
    ...own,
    enter(run, node) {
      const kept = run.takeKept(node) as RouterRecord | undefined;
      const list = kept?.r ?? choose(run, node);
      run.open(node, { b: run.offset, r: list });
      if (!startList(run, node, list)) run.finish(node, COMPLETED);
    },
    runsList: (record, branch) => record.r === branch,
    awaits: (record, branch) => record.x !== 1 && record.r === branch,
  });
}

/** Has every member, so that all kinds have the same hidden class and calls stay monomorphic. */
const BASE: BlockKind = {
  isLeaf: false,
  repeats: 'never',
  carriesOutputs: false,
  isKept: false,
  outputRow: 'never',
  reportsResult: false,
  compile: notDefined,
  lists: () => [],
  copies: () => 1,
  lastOutputFrom: () => 0,
  seesError: () => false,
  cleansUp: () => false,
  handlesFailure: () => false,
  owes: () => false,
  hasNotCleanedUp: () => false,
  runsOwed: () => false,
  onlyCleansUp: () => false,
  order: 'in-turn',
  names: () => [],
  invalidWhen(run, node, message) {
    run.noteFailure(node, 'expression_error', `${node.type} ${node.id}: ${message}`);
    run.finish(node, FAILED);
  },
  enter: notDefined,
  revisit() {},
  childDone(run, node, _record, child, code) {
    const result = afterChild(run, node, child, code);
    if (result !== 'open') run.finish(node, result);
  },
  runsList: () => true,
  item: notDefined,
  due: timeOutBlock,
  handleEvent: () => false,
  recover() {},
  cut: cutOff,
  childCut(run, node) {
    if (!hasOpenInside(run, node)) run.finish(node, CANCELLED);
  },
  cleanUpAgain() {},
  endLate: (run, node, record, code) => run.end(node, code, record.y),
  withdraw() {},
  openState: () => 'running',
  awaits: (record) => record.x !== 1,
  unreached: 'skipped',
};

function notDefined(): never {
  throw new Error('the kind of this block does not say what to do');
}
