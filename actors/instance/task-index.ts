/**
 * From a worker task's id to its instance, for the tasks of one shard: in memory for tasks that were
 * opened or loaded lately, else by one query per turn.
 */

import { LRUCache } from 'lru-cache';
import type { Rows } from '../runtime/loader.js';

export type TaskOwner = { readonly id: string } | 'unknown' | 'unavailable';

/** About 20 MB; a miss costs a share of a query. */
const TASKS_REMEMBERED = 100_000;

export class TaskIndex {
  readonly #loader: Rows;
  readonly #schedule: (work: () => void) => void;
  /** Counted by size, which reserves nothing: with `max` a shard would take megabytes at once. */
  readonly #owners = new LRUCache<string, string>({
    maxSize: TASKS_REMEMBERED,
    sizeCalculation: () => 1,
  });
  #wanted = new Map<string, ((owner: TaskOwner) => void)[]>();

  constructor(loader: Rows, schedule: (work: () => void) => void) {
    this.#loader = loader;
    this.#schedule = schedule;
  }

  remember(task: string, instance: string): void {
    this.#owners.set(task, instance);
  }

  find(task: string, then: (owner: TaskOwner) => void): void {
    const instance = this.#owners.get(task);
    if (instance !== undefined) {
      then({ id: instance });
      return;
    }
    const waiting = this.#wanted.get(task);
    if (waiting === undefined) this.#wanted.set(task, [then]);
    else waiting.push(then);
  }

  /** Asks the table for the owners that were looked for in this turn. */
  endTurn(): void {
    if (this.#wanted.size === 0) return;
    const wanted = this.#wanted;
    this.#wanted = new Map();
    this.#loader.taskOwners([...wanted.keys()]).then(
      (owners) => this.#schedule(() => this.#answer(wanted, owners)),
      () => this.#schedule(() => this.#answer(wanted, undefined)),
    );
  }

  #answer(
    wanted: ReadonlyMap<string, ((owner: TaskOwner) => void)[]>,
    owners: ReadonlyMap<string, string> | undefined,
  ): void {
    for (const [task, waiting] of wanted) {
      const instance = owners?.get(task);
      if (instance !== undefined) this.#owners.set(task, instance);
      const owner: TaskOwner =
        instance !== undefined
          ? { id: instance }
          : owners === undefined
            ? 'unavailable'
            : 'unknown';
      for (const then of waiting) then(owner);
    }
  }
}
