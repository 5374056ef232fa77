/**
 * What a kind of block says about itself: how its blocks are compiled, how they run, what it means to
 * cut them off, and what the tree of an instance shows of them. `plan.ts`, `evaluation.ts`,
 * `cutting.ts` and `tree.ts` ask the kind of a node and know none by its name. `docs/blocks.md` shows
 * how a further kind is added.
 *
 * There are two sorts: a leaf does something itself and waits for it, a composite holds blocks.
 */

import type { Block } from '../../../schema/blocks.js';
import {
  CANCELLED,
  type DoneCode,
  FAILED,
  type OpenRecord,
  type StepRecord,
} from '../../../schema/execution.js';
import type { NodeState } from '../../../schema/states.js';
import type { JsonValue } from '../../base/json.js';
import type { BlockCompiler } from '../block-compiler.js';
import { type CutBy, cutOff, hasOpenInside } from '../cutting.js';
import type { Evaluation } from '../evaluation.js';
import type { Details, NodePlace } from '../plan-nodes.js';
import type { TryEvent } from '../progress.js';
import { timeOutBlock } from '../time-limits.js';

export interface BlockKind<
  B extends Block = Block,
  N extends NodePlace = NodePlace,
  R extends OpenRecord = OpenRecord,
> {
  /** Holds no blocks; its record is a `StepRecord`, and `Evaluation.putLeaf` opens it. */
  readonly isLeaf: boolean;
  /**
   * `passes`: the blocks inside run again and again, and their tries and rows are counted per pass;
   * the record is a `LoopRecord`. `items`: besides, each pass has an `item`.
   */
  readonly repeats: 'never' | 'passes' | 'items';
  /** A pass sees the outputs of the one before until its own blocks begin. */
  readonly carriesOutputs: boolean;
  /** A retry of the instance goes on from the record instead of from the beginning. */
  readonly isKept: boolean;

  /** Whether a block that completed has an output of its own, from before or behind those inside of it. */
  readonly leavesRow: 'never' | 'first' | 'last';
  /** Its own row tells the result of a list of blocks (`results.ts`). */
  readonly tellsResults: boolean;

  /** What the node has beside its place in the tree. */
  compile(block: B, compiler: BlockCompiler): Details<N>;
  /** The lists of blocks, in the order in which `branch` counts them. */
  lists(block: B): readonly (readonly Block[])[];
  /** How often the plan has its one list, so that passes of it may run side by side. */
  copies(node: N): number;
  /** From where on in its list blocks may give the last output of a pass. */
  lastGiver(block: B): number;
  /** Whether `data._error` is the block's own in this list: its record is a `CatchingRecord`. */
  seesError(branch: number): boolean;
  /** Whether the list cleans up behind the others: it runs also when the block is cut off. */
  cleansUp(branch: number): boolean;
  /** Whether what failed in the list was handed to another one of the block. */
  forgives(record: R, branch: number): boolean;
  /** Whether a retry that goes on from the record has something to clean up that failed. */
  owes(run: Pick<Evaluation, 'plan' | 'execution'>, node: N, kept: R): boolean;
  /** Whether that is what runs also when the block is cut off: its list of `cleansUp`. */
  hasNotCleanedUp(run: Pick<Evaluation, 'plan' | 'execution'>, node: N, kept: R): boolean;
  /** Whether of the list only that runs which is still to be cleaned up. */
  onlyCleansUp(record: R, branch: number): boolean;
  /** Which of its lists run: each before the next one, all at once, or one of them. */
  readonly order: 'in-turn' | 'together' | 'one';
  /** The parts of the block whose names count as ids; it may be of the wrong shape. */
  names(block: B): readonly NamedPart[];

  /** The block fails when it is reached, because its `when` makes no sense. */
  misguided(run: Evaluation, node: N, message: string): void;
  /** The block is reached for the first time (in this pass of the loops around it). */
  enter(run: Evaluation, node: N): void;
  /** The open block has come up in the queue again, because it asked for that. */
  again(run: Evaluation, node: N, record: R): void;
  /** A child is done. Not called while the block is being cut off. */
  childDone(run: Evaluation, node: N, record: R, child: NodePlace, code: DoneCode): void;
  /** Whether blocks of the list `branch` may be started now. */
  runsList(record: R, branch: number): boolean;
  /** What lies over context.data in the pass that one of its lists is at: names and values. */
  item(
    run: Evaluation,
    node: N,
    record: R,
    slot: number,
  ): readonly (readonly [name: string, value: JsonValue])[];

  /** A time of the open block has come: of a composite its time is over. */
  due(run: Evaluation, node: N, record: R): void;
  /** An event about a try of the open block; false when that is not what it waits for. */
  takeIn(run: Evaluation, node: N, record: R, event: TryEvent): boolean;
  /** The process in which the leaf was at work is gone. */
  recover(run: Evaluation, node: N, record: R): void;

  /** Cuts off the open block: closes it, or returns true since protected work goes on in it. */
  cut(run: Evaluation, node: N, record: R, by: CutBy): boolean;
  /** Protected work in a block that is being cut off has ended. */
  childCut(run: Evaluation, node: N, record: R): void;
  /** What the block was to clean up before it ended has failed, and is to be done by a retry of the instance. */
  cleanUpAgain(run: Evaluation, node: N, record: R): void;
  /** That has been done inside of the block, which would have ended so before. */
  endLate(run: Evaluation, node: N, record: R, code: DoneCode): void;
  /** The open block ends before its time: takes back what was asked of others for it. */
  withdraw(run: Evaluation, node: N, record: R): void;

  /** What the tree shows of the open block. */
  openState(record: R): NodeState;
  /** Whether the open block may still come to blocks of the list `branch` that it has not reached. */
  awaits(record: R, branch: number): boolean;
  /** What the tree shows of blocks that were not reached when this one is done. */
  readonly unreached: 'skipped' | 'cancelled';
}

/** A part of a block that has an id, and the path of that within the block. */
export interface NamedPart {
  readonly path: string;
  readonly id: string;
}

/** The members that a sort of kinds must say for itself, and those that it may. */
type Own<K, Needed extends keyof K, Free extends keyof K> = Pick<K, Needed> &
  Partial<Pick<K, Free>>;

/** A kind that does something itself. Unless it says otherwise, nothing protects it. */
export function leaf<B extends Block, N extends NodePlace>(
  own: Own<
    BlockKind<B, N, StepRecord>,
    'compile' | 'enter' | 'again' | 'due' | 'takeIn' | 'openState',
    'recover' | 'cut' | 'withdraw' | 'leavesRow' | 'misguided' | 'isKept' | 'owes'
  >,
): BlockKind<B, N, StepRecord> {
  return { ...BASE, isLeaf: true, ...own };
}

/**
 * A kind that holds blocks. Unless it says otherwise, its lists may all run at any time, and it is cut
 * off by cutting off what is open inside.
 */
export function composite<B extends Block, N extends NodePlace, R extends OpenRecord>(
  own: Own<
    BlockKind<B, N, R>,
    'compile' | 'lists' | 'enter' | 'childDone',
    Exclude<keyof BlockKind, 'isLeaf' | 'compile' | 'lists' | 'enter' | 'childDone'>
  >,
): BlockKind<B, N, R> {
  return { ...BASE, ...own };
}

/** Has every member, so that all kinds are objects of one shape, which are the fastest to call. */
const BASE: BlockKind = {
  isLeaf: false,
  repeats: 'never',
  carriesOutputs: false,
  isKept: false,
  leavesRow: 'never',
  tellsResults: false,
  compile: unsaid,
  lists: () => [],
  copies: () => 1,
  lastGiver: () => 0,
  seesError: () => false,
  cleansUp: () => false,
  forgives: () => false,
  owes: () => false,
  hasNotCleanedUp: () => false,
  onlyCleansUp: () => false,
  order: 'in-turn',
  names: () => [],
  misguided(run, node, message) {
    run.noteFailure(node, 'expression_error', `${node.type} ${node.id}: ${message}`);
    run.finish(node, FAILED);
  },
  enter: unsaid,
  again() {},
  childDone: unsaid,
  runsList: () => true,
  item: unsaid,
  due: timeOutBlock,
  takeIn: () => false,
  recover() {},
  cut: cutOff,
  childCut(run, node) {
    if (!hasOpenInside(run, node)) run.finish(node, CANCELLED);
  },
  cleanUpAgain() {},
  endLate(run, node, record, code) {
    if (code === FAILED) run.fail(node, record.y);
    else run.finish(node, code);
  },
  withdraw() {},
  openState: () => 'running',
  awaits: (record) => record.x !== 1,
  unreached: 'skipped',
};

function unsaid(): never {
  throw new Error('the kind of this block does not say what to do');
}
