/** The rules for the blocks of a definition as a whole, checked block by block in the order of the tree. */

import { BLOCKS_MAX, CONCURRENCY_MAX, DEPTH_MAX, PLAN_BLOCKS_MAX } from '../../schema/blocks.js';

export interface Copies {
  /** The innermost for_each that makes copies. */
  readonly id: string | undefined;
  /** The number of nodes of the block. */
  readonly times: number;
}

export const ONE_COPY: Copies = { id: undefined, times: 1 };

export class TreeRules {
  readonly #ids = new Set<string>();
  #count = 0;
  #nodes = 0;
  #copies: Copies = ONE_COPY;

  /** The problem of the next block; undefined when it is accepted. */
  problemOf(id: string, depth: number): string | undefined {
    this.#count += 1;
    if (depth > DEPTH_MAX) return `block ${id} is nested deeper than ${DEPTH_MAX} levels`;
    if (this.#count > BLOCKS_MAX) return `a sequence has at most ${BLOCKS_MAX} blocks`;
    return this.claim(id);
  }

  /** Claims an id of a block or within a block; returns the problem if it is already used. */
  claim(id: string, what = 'block'): string | undefined {
    if (this.#ids.has(id)) return `${what} id ${id} is not unique`;
    this.#ids.add(id);
    return undefined;
  }

  /** Counts the nodes of the next block. At the first excess it returns the for_each with the most copies. */
  exceededBy(copies: Copies): { readonly id: string; readonly problem: string } | undefined {
    const wasExceeded = this.#nodes > PLAN_BLOCKS_MAX;
    this.#nodes += copies.times;
    if (copies.times > this.#copies.times) this.#copies = copies;
    const { id } = this.#copies;
    if (wasExceeded || this.#nodes <= PLAN_BLOCKS_MAX || id === undefined) return undefined;
    const problem =
      `for_each ${id}: with its concurrency the sequence has more than ${PLAN_BLOCKS_MAX} blocks, ` +
      'counted as often as items run at once';
    return { id, problem };
  }
}

/** The concurrency of a for_each. Versions that did not support the member may have stored anything. */
export function concurrencyOf(value: unknown): number {
  return Number.isInteger(value) ? Math.min(Math.max(Number(value), 1), CONCURRENCY_MAX) : 1;
}
