/**
 * What the model remembers of blocks, in the present iteration of the loops around them: how they
 * ended, which is what the tree of an instance shows, and what a retry of the instance goes on from.
 */

import type { Block } from '../../schema/blocks.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { listsOf } from './block-trees.js';
import type { ItemsSeen, Lane } from './model-context.js';

export type End = 'completed' | 'failed' | 'cancelled' | 'skipped';

export interface Frame {
  isBegun: boolean;
  end?: End;
  /** Its `when` has let it pass, or it has none. */
  isIn?: boolean;
  /** Of a router or a split. */
  route?: number;
  /** Of a try_catch or a saga: what it has caught. */
  error?: JsonObject;
  /** Of a try_catch: the list that it was at, how those before the finally list ended, and whether that failed. */
  list?: 'try' | 'catch' | 'finally';
  result?: End;
  hasNotCleanedUp?: boolean;
  /** Of a try_catch or a saga: its catch list, or what takes back, failed before it was done. */
  isUndone?: boolean;
  /** It was cut off, and has yet to clean up. */
  owes?: boolean;
  /** It may not have cleaned up, which its failure tells: whether that counts, and notes that it is owed. */
  unpaid?: { isOwed(): boolean; owe(): unknown };
  /** It does so now. */
  isPaying?: boolean;
  /** Of a saga that takes back what completed: why, and from which step on. */
  undoes?: { readonly end: End; readonly from: number };
  /** Of a loop, for_each or saga: finished passes, whether one has begun, and the items. */
  passes: number;
  isInPass: boolean;
  items?: readonly JsonValue[];
  /** Of a for_each with items side by side: the next one to begin, and those that are at work, by item. */
  next: number;
  itemsSeen?: ItemsSeen;
  readonly lanes: Map<number, LaneFrame>;
  readonly inside: Map<string, Frame>;
}

/** An item, with what it sees of its own. */
export interface LaneFrame {
  readonly frame: Frame;
  readonly lane: Lane;
}

export function newFrame(): Frame {
  return {
    isBegun: false,
    passes: 0,
    isInPass: false,
    next: 0,
    lanes: new Map(),
    inside: new Map(),
  };
}

function framesIn({ inside, lanes }: Frame): Frame[] {
  return [...inside.values(), ...[...lanes.values()].map(({ frame }) => frame)];
}

/** The frame of a block inside of another one. */
export function frameIn({ inside }: Frame, { id }: Block): Frame {
  const frame = inside.get(id) ?? newFrame();
  inside.set(id, frame);
  return frame;
}

/** Whether the block has nothing to do, or nothing left to do when the instance is retried. */
export function isOver({ inside }: Frame, { id }: Block): boolean {
  const frame = inside.get(id);
  if (frame === undefined || owes(frame)) return false;
  return frame.end === 'completed' || frame.end === 'skipped';
}

export function owes(frame: Frame): boolean {
  return frame.owes === true || framesIn(frame).some(owes);
}

/** Whether what is owed in it is done just now. */
export function isPaying(frame: Frame): boolean {
  return frame.isPaying === true || framesIn(frame).some(isPaying);
}

/** Whether a retry has something to clean up in it, at any depth. */
export function isUndone(frame: Frame | undefined): boolean {
  if (frame === undefined || frame.end === 'completed' || frame.end === 'skipped') return false;
  const isOwn = frame.isUndone === true || frame.hasNotCleanedUp === true;
  return isOwn || framesIn(frame).some(isUndone);
}

/** What has failed in it without being cleaned up, and was not dealt with. */
export function unpaidIn({ inside, lanes }: Frame): Frame[] {
  const failed = [...inside.values()].filter(({ end, owes }) => end === 'failed' && owes !== true);
  const own = failed.flatMap((one) => (one.unpaid?.isOwed() ? [one] : unpaidIn(one)));
  return [...own, ...[...lanes.values()].flatMap(({ frame }) => unpaidIn(frame))];
}

/** What has failed in it is dealt with. */
export function forgetUnpaid(around: Frame): void {
  for (const frame of framesIn(around)) {
    delete frame.unpaid;
    forgetUnpaid(frame);
  }
}

/** Whether the list has what goes on when the signal comes: such a step, or a scope. */
export function hasProtected(list: readonly Block[]): boolean {
  return list.some((block) => {
    const isStep = block.type === 'step' && block.cancellable === false;
    return isStep || block.type === 'cancellation_scope' || hasProtected(listsOf(block).flat());
  });
}

/** A block of a list with its frame, if it has one. */
type Found = readonly [block: Block, frame: Frame | undefined];

/** The first block of the list that has something left to do. */
export function leftIn(list: readonly Block[], around: Frame): Found[] {
  const left = list.find((block) => !isOver(around, block));
  return left === undefined ? [] : [[left, around.inside.get(left.id)]];
}

/**
 * Whether what is left of the block is `fail` alone, so that it has failed on purpose; `isAsked`: it was come to, and
 * its `when` let it pass. A saga takes back what it did. A race may have cut off what only waits.
 */
export function isOnPurpose([block, frame = newFrame()]: Found, isAsked: boolean): boolean {
  if (block.when != null && !isAsked) return false;
  if (block.type === 'step') return block.handler === 'fail';
  if (block.type === 'saga' || block.type === 'sub_sequence') return false;
  const left = leftOf(block, frame);
  const fails = left.filter((one) => isOnPurpose(one, isAsked));
  const rest = left.filter((one) => !fails.includes(one));
  const isCleanedUp =
    block.type !== 'try_catch' || leftIn(block.finally_block ?? [], frame).length === 0;
  const mayBeLeft = ([one]: Found) => block.type === 'race' && isWait(one);
  return isCleanedUp && fails.length > 0 && rest.every(mayBeLeft);
}

function leftOf(block: Block, frame: Frame): Found[] {
  const lists = listsOf(block);
  if (block.type === 'router' || block.type === 'ab_split') {
    const { route } = frame;
    return route === undefined ? [] : leftIn(lists.at(route)!, frame);
  }
  const items = [...frame.lanes.values()].map((lane) => lane.frame);
  const around = items.length > 0 ? items : [frame];
  return lists.flatMap((list) => around.flatMap((inside) => leftIn(list, inside)));
}

/** Whether it does nothing outside, and asks nobody. */
function isWait(block: Block): boolean {
  if (block.type !== 'step' || block.wait_for_input != null) return false;
  return ['noop', 'transform', 'fail', 'sleep', 'wait_for_event'].includes(block.handler);
}

/** Whether something in the list has failed that was neither caught nor is for its own block to clean up. */
export function hasFailedIn(list: readonly Block[], around: Frame): boolean {
  return list.some((block) => {
    const lanes = [...around.lanes.values()].map(({ frame }) => frame);
    return [around, ...lanes].some(({ inside }) => {
      const frame = inside.get(block.id);
      return frame !== undefined && hasFailed(block, frame);
    });
  });
}

function hasFailed(block: Block, frame: Frame): boolean {
  if (frame.end === 'failed' && frame.owes !== true) return !isOnPurpose([block, frame], true);
  if ((frame.end === 'completed' || frame.end === 'skipped') && !owes(frame)) return false;
  const lists = listsOf(block);
  switch (block.type) {
    case 'try_catch':
      return hasFailedIn(lists[frame.error === undefined ? 0 : 1]!, frame);
    case 'saga':
      return lists.some((list, i) => i % 2 === 0 && hasFailedIn(list, frame));
    default:
      return lists.some((list) => hasFailedIn(list, frame));
  }
}

/** A hard stop: what had begun is cancelled, and what only waited for what is owed in it; nothing is owed any more. */
export function cancelOpen(around: Frame): void {
  for (const frame of framesIn(around)) {
    if (owes(frame)) frame.end = 'cancelled';
    else if (frame.isBegun) frame.end ??= 'cancelled';
    cancelOpen(frame);
    delete frame.owes;
    delete frame.isPaying;
  }
}

/** What failed or was cut off in the list begins again. */
export function reopenList({ inside }: Frame, list: readonly Block[]): void {
  for (const { id } of list) {
    const frame = inside.get(id);
    if (frame !== undefined) reopenFrame(frame);
  }
}

/** A retry: what failed or was cut off begins again, and so does what is inside. */
export function reopen(around: Frame): void {
  for (const frame of framesIn(around)) reopenFrame(frame);
}

function reopenFrame(frame: Frame): void {
  if (frame.end === 'completed' || frame.end === 'skipped') return;
  frame.isBegun = false;
  delete frame.end;
  delete frame.unpaid;
  reopen(frame);
}
