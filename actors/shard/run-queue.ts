/**
 * The instances of one shard that have something to do now: the higher priority first, within one
 * priority in the order in which they became due.
 */

import TinyQueue from 'tinyqueue';
import { PRIORITIES } from '../../src/core/states.js';

interface Run {
  readonly instance: string;
  readonly rank: number;
  readonly number: number;
}

export class RunQueue {
  readonly #heap = new TinyQueue<Run>([], (a, b) => a.rank - b.rank || a.number - b.number);
  #pushed = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** @param rank from `rankOf`: 0 critical … 3 low */
  push(instance: string, rank: number): void {
    if (PRIORITIES[rank] === undefined) throw new Error(`no rank ${rank}`);
    this.#pushed += 1;
    this.#heap.push({ instance, rank, number: this.#pushed });
  }

  shift(): string | undefined {
    return this.#heap.pop()?.instance;
  }
}
