/** What the blocks of a definition must obey together, asked block by block in the order of the tree. */

import { BLOCKS_MAX, DEPTH_MAX } from '../../schema/blocks.js';

export class TreeRules {
  readonly #ids = new Set<string>();
  #count = 0;

  /** What is wrong with the next block, in a sentence; undefined when it may stand there. */
  problemOf(id: string, depth: number): string | undefined {
    this.#count += 1;
    if (depth > DEPTH_MAX) return `block ${id} is nested deeper than ${DEPTH_MAX} levels`;
    if (this.#count > BLOCKS_MAX) return `a sequence has at most ${BLOCKS_MAX} blocks`;
    return this.claim(id);
  }

  /** The same of a name within a block that counts as an id. */
  claim(id: string, what = 'block'): string | undefined {
    if (this.#ids.has(id)) return `${what} id ${id} is not unique`;
    this.#ids.add(id);
    return undefined;
  }
}
