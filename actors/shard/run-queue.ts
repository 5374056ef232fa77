/**
 * The instances of one shard that have something to do now: the higher priority first, within one
 * priority tenants in turns, and of a tenant in the order in which they became due. Those that are not in
 * memory, of whom nobody knows the tenant, count as one more: they only have to be asked for.
 */

import { PRIORITIES } from '../../src/core/states.js';

interface Line {
  readonly instances: string[];
  /** Index of the first that has not left; a line without any is gone. */
  head: number;
}

/** What has left is cut off a line so many at a time. */
const CUT_AT = 1_024;

export class RunQueue {
  /** By rank, then by tenant in the order of turns. */
  readonly #lines = PRIORITIES.map(() => new Map<string, Line>());
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /**
   * @param rank from `rankOf`: 0 critical … 3 low
   * @param tenant '' when the instance is not in memory
   */
  push(instance: string, rank: number, tenant: string): void {
    const lines = this.#lines[rank];
    if (lines === undefined) throw new Error(`no rank ${rank}`);
    const line = lines.get(tenant);
    if (line === undefined) lines.set(tenant, { instances: [instance], head: 0 });
    else line.instances.push(instance);
    this.#size += 1;
  }

  shift(): string | undefined {
    for (const lines of this.#lines) {
      for (const [tenant, line] of lines) return this.#take(lines, tenant, line);
    }
    return undefined;
  }

  #take(lines: Map<string, Line>, tenant: string, line: Line): string {
    const instance = line.instances[line.head++] as string;
    this.#size -= 1;
    if (line.head === CUT_AT) {
      line.instances.splice(0, CUT_AT);
      line.head = 0;
    }
    const isEmpty = line.head === line.instances.length;
    // Taking a line out and putting it back moves it behind the others: a Map keeps its order.
    if (isEmpty || lines.size > 1) lines.delete(tenant);
    if (!isEmpty && !lines.has(tenant)) lines.set(tenant, line);
    return instance;
  }
}
