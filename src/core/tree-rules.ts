/** What the blocks of a definition must obey together, asked block by block in the order of the tree. */

import { BLOCKS_MAX, CONCURRENCY_MAX, DEPTH_MAX, PLAN_BLOCKS_MAX } from '../../schema/blocks.js';

/** The for_each blocks around a block that run items side by side. */
export interface Crowd {
  /** The innermost of them. */
  readonly id: string | undefined;
  /** How often they have the block together. */
  readonly times: number;
}

export const ALONE: Crowd = { id: undefined, times: 1 };

export class TreeRules {
  readonly #ids = new Set<string>();
  #count = 0;
  #nodes = 0;
  #crowd: Crowd = ALONE;

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

  /** The for_each that runs too much side by side, with the next block; undefined when there is room. */
  crowdedBy(crowd: Crowd): { readonly id: string; readonly problem: string } | undefined {
    this.#nodes += crowd.times;
    if (crowd.times > this.#crowd.times) this.#crowd = crowd;
    const { id } = this.#crowd;
    if (this.#nodes <= PLAN_BLOCKS_MAX || id === undefined) return undefined;
    return {
      id,
      problem:
        `for_each ${id}: with its concurrency the sequence has more than ${PLAN_BLOCKS_MAX} blocks, ` +
        'counted as often as items run at once',
    };
  }
}

/** Items that a for_each runs at once; a version that did not know the member may have stored anything. */
export function concurrencyOf(value: unknown): number {
  return Number.isInteger(value) ? Math.min(Math.max(Number(value), 1), CONCURRENCY_MAX) : 1;
}
