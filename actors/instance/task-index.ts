/**
 * From a worker task's id to its instance, for the tasks of one shard: in memory for tasks that were
 * opened or loaded lately, else by one query per turn.
 */

import { LRUCache } from 'lru-cache';
import { BatchedReads } from '../runtime/batched-reads.js';
import type { Rows } from '../runtime/loader.js';

export type TaskOwner = { readonly id: string } | 'unknown' | 'unavailable';

/** About 20 MB; a miss costs a share of a query. */
const TASKS_REMEMBERED = 100_000;

export class TaskIndex {
  readonly #schedule: (work: () => void) => void;
  /** Counted by size, which reserves nothing: with `max` a shard would take megabytes at once. */
  readonly #owners = new LRUCache<string, string>({
    maxSize: TASKS_REMEMBERED,
    sizeCalculation: () => 1,
  });
  readonly #reads: BatchedReads<string>;

  constructor(loader: Rows, schedule: (work: () => void) => void) {
    this.#schedule = schedule;
    this.#reads = new BatchedReads((tasks) => loader.taskOwners(tasks));
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
    this.#reads.read(task).then(
      (id) =>
        this.#schedule(() => {
          if (id !== undefined) this.remember(task, id);
          then(id === undefined ? 'unknown' : { id });
        }),
      () => this.#schedule(() => then('unavailable')),
    );
  }

  /** Asks the table for the owners that were looked for in this turn. */
  endTurn(): void {
    this.#reads.flush();
  }
}
