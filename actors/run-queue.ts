/**
 * The instances of one shard that have something to do now: the higher priority first, within one
 * priority in the order in which they became due (spec/01 §5.10).
 */

import { PRIORITIES } from '../src/core/states.js';

interface Lane {
  readonly instances: string[];
  /** Index of the first one that has not left; the array is cut when it is empty. */
  head: number;
}

export class RunQueue {
  readonly #lanes: readonly Lane[] = PRIORITIES.map(() => ({ instances: [], head: 0 }));
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param rank from `rankOf`: 0 critical … 3 low */
  push(instance: string, rank: number): void {
    const lane = this.#lanes[rank];
    if (lane === undefined) throw new Error(`no rank ${rank}`);
    lane.instances.push(instance);
    this.#size += 1;
  }

  shift(): string | undefined {
    const lane = this.#lanes.find(({ instances, head }) => head < instances.length);
    if (lane === undefined) return undefined;
    const instance = lane.instances[lane.head];
    lane.head += 1;
    this.#size -= 1;
    if (lane.head === lane.instances.length) {
      lane.instances.length = 0;
      lane.head = 0;
    }
    return instance;
  }
}
