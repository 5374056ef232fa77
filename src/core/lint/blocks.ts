/**
 * Finds references to outputs that cannot exist, and actions of sagas that may fail after they have had an effect. A
 * failed action is not compensated, so its effect stays, and a retry of the saga repeats it (docs/reference/blocks.md).
 */

import type { Block, SagaBlock, StepBlock } from '../../../schema/blocks.js';
import { isBuiltin } from '../../../schema/handlers.js';
import type { BlockPlace } from '../../../schema/members.js';
import { isJsonObject, ownValue } from '../../base/json.js';
import { kindOf } from '../blocks/kinds.js';

type List = readonly Block[];
/** The ids of a block that has had an effect, and of one that fails. */
interface Pair {
  readonly done: string;
  readonly failing: string;
}

/** In steps with a compensation, a block with an effect before a block that is likely to fail; at most one per step. */
export function partialActions({ steps }: SagaBlock) {
  return steps.flatMap(({ id: step, action, compensation }, i) => {
    if ([compensation ?? []].flat().length === 0) return [];
    const pair = pairIn([action].flat());
    return pair === undefined ? [] : [{ member: `steps[${i}].action`, step, ...pair }];
  });
}

function pairIn(list: List): Pair | undefined {
  let done: string | undefined;
  for (const block of list) {
    if (done !== undefined && canFail(block)) return { done, failing: block.id };
    const inside = pairInside(block);
    if (inside !== undefined) return inside;
    if (acts(block)) done ??= block.id;
  }
  return undefined;
}

/** Blocks that handle their own failures are not searched. */
function pairInside(block: Block): Pair | undefined {
  switch (block.type) {
    case 'try_catch':
    case 'saga':
    case 'race':
      return undefined;
    case 'parallel':
      return pairBeside(listsOf(block)) ?? pairInEach(block);
    case 'loop':
    case 'for_each':
      // The effect of an iteration stays when a later one fails.
      return pairInEach(block) ?? firstPair(block.body, block.body);
    default:
      return pairInEach(block);
  }
}

function pairInEach(block: Block): Pair | undefined {
  for (const list of listsOf(block)) {
    const pair = pairIn(list);
    if (pair !== undefined) return pair;
  }
  return undefined;
}

/** One branch may have had an effect when another one fails. */
function pairBeside(branches: readonly List[]): Pair | undefined {
  for (const [i, branch] of branches.entries()) {
    const others = branches.filter((_, at) => at !== i).flat();
    const pair = firstPair(branch, others);
    if (pair !== undefined) return pair;
  }
  return undefined;
}

function firstPair(acting: List, failing: List): Pair | undefined {
  const done = acting.find(acts);
  const fails = done && failing.find(canFail);
  return done && fails && { done: done.id, failing: fails.id };
}

const listsOf = (block: Block): readonly List[] => kindOf(block).lists(block);

/** Whether the block has an effect outside that may have to be undone. */
function acts(block: Block): boolean {
  if (block.type === 'sub_sequence') return true;
  if (block.type !== 'step') return listsOf(block).some((list) => list.some(acts));
  if (block.handler !== 'http_request') return !isBuiltin(block.handler);
  const method = isJsonObject(block.params) ? ownValue(block.params, 'method') : undefined;
  return !['GET', 'HEAD'].includes(String(method ?? 'GET').toUpperCase());
}

const NEVER_FAIL: readonly string[] = ['noop', 'log', 'sleep', 'transform'];

function canFail(block: Block): boolean {
  if (block.type === 'step') return stepCanFail(block);
  if (block.type === 'sub_sequence' || block.timeout != null) return true;
  const fails = (list: List) => list.some(canFail);
  const lists = listsOf(block);
  switch (block.type) {
    case 'try_catch': {
      const [tried = [], caught = [], last = []] = lists;
      return (fails(tried) && fails(caught)) || fails(last);
    }
    case 'saga':
      return lists.some((list, at) => at % 2 === 0 && fails(list));
    case 'race':
      return lists.every(fails);
    default:
      return lists.some(fails);
  }
}

/** Ignores failures that every step may have, such as a template that cannot be rendered. */
function stepCanFail({ handler, wait_for_input: gate, ...more }: StepBlock): boolean {
  if (!NEVER_FAIL.includes(handler)) return true;
  const { timeout, deadline, output_schema } = more;
  if (timeout != null || deadline != null || output_schema != null) return true;
  return gate?.timeout != null && gate.escalation_handler == null;
}

/** Why the output of `target` cannot exist yet, as the end of a sentence. @param isRepeated `reader` may run again */
export function whyNever(reader: BlockPlace, target: BlockPlace, isRepeated: boolean) {
  const readers = chainOf(reader);
  const targets = chainOf(target);
  let depth = 0;
  while (depth < readers.length && readers[depth] === targets[depth]) depth += 1;
  // A loop around both runs them in any order; its own rows exist after its first iteration.
  const shared = readers.slice(0, depth).filter((place) => place !== reader || isRepeated);
  if (shared.some((place) => kindAt(place).repeats !== 'never')) return undefined;
  const [mine, theirs] = [readers[depth], targets[depth]];
  if (mine === undefined) return theirs === undefined ? 'is this very block' : 'runs inside it';
  if (theirs === undefined) return 'has not ended by then';
  if (mine.list === theirs.list) {
    return theirs.position < mine.position ? undefined : 'runs later';
  }
  // Hooks run after the blocks, and only one list of hooks runs.
  if (mine.parent === undefined) return theirs.list === 0 ? undefined : 'runs later';
  const { order } = kindAt(mine.parent);
  if (order === 'together') return undefined;
  if (order === 'one') return 'is on another route';
  return theirs.list < mine.list ? undefined : 'runs later';
}

function chainOf(place: BlockPlace): BlockPlace[] {
  const chain: BlockPlace[] = [];
  for (let at: BlockPlace | undefined = place; at !== undefined; at = at.parent) chain.push(at);
  return chain.reverse();
}

/** Blocks with inner blocks always have a known kind. */
const kindAt = ({ block }: BlockPlace) => kindOf(block as unknown as Block);
