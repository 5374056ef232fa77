/** Whether a block can have an output when another one reads it; only the impossible is reported. */

import type { Block } from '../../../schema/blocks.js';
import type { BlockPlace } from '../../../schema/members.js';
import { kindOf } from '../blocks/kinds.js';

/** Why the output of `target` cannot exist yet, as the end of a sentence. @param isRepeated `reader` may run again */
export function whyNever(
  reader: BlockPlace,
  target: BlockPlace,
  isRepeated: boolean,
): string | undefined {
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

/** The blocks around a block, outermost first, and the block itself. */
function chainOf(place: BlockPlace): BlockPlace[] {
  const chain: BlockPlace[] = [];
  for (let at: BlockPlace | undefined = place; at !== undefined; at = at.parent) chain.push(at);
  return chain.reverse();
}

/** Blocks with inner blocks always have a known kind. */
function kindAt({ block }: BlockPlace) {
  return kindOf(block as unknown as Block);
}
