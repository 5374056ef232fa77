/**
 * Waiting tasks in the order of offers: by priority, then by age. It holds tasks up to a position, the horizon; later
 * tasks are only in the table. Past its size limit the horizon moves closer. Pure.
 */

import TinyQueue from 'tinyqueue';
import type { UnixMs } from '../../src/base/time.js';
import type { TaskPlace } from './loads.js';

export interface ReadyTask {
  readonly id: string;
  readonly instance: string;
  readonly tenant: string;
  /** '' when the step names none. */
  readonly queue: string;
  /** 0 critical … 3 low. */
  readonly rank: number;
  readonly createdAt: UnixMs;
}

/** Before every task. */
export const FIRST_PLACE: TaskPlace = {
  rank: -1,
  createdAt: 0,
  id: '00000000-0000-0000-0000-000000000000',
};
/** After every task. */
export const LAST_PLACE: TaskPlace = { rank: 32_767, createdAt: 0, id: '' };

/** Negative when `a` is offered before `b`. Ids of equal age compare in the order of their creation. */
export function compareTasks(a: TaskPlace, b: TaskPlace): number {
  return a.rank - b.rank || a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Counts the tasks of several `ReadyTasks` together. */
export interface TaskCount {
  tasks: number;
}

/** The heap is rebuilt when this many of its tasks, and a quarter of it, are stale. */
const STALE_MIN = 64;

export class ReadyTasks {
  readonly #count: TaskCount;
  readonly #max: number;
  #horizon: TaskPlace;
  readonly #byId = new Map<string, ReadyTask>();
  /** May hold removed tasks; `#byId` decides. */
  #heap = new TinyQueue<ReadyTask>([], compareTasks);

  constructor(count: TaskCount, max: number, horizon: TaskPlace) {
    this.#count = count;
    this.#max = max;
    this.#horizon = horizon;
  }

  get size(): number {
    return this.#byId.size;
  }

  get horizon(): TaskPlace {
    return this.#horizon;
  }

  values(): Iterable<ReadyTask> {
    return this.#byId.values();
  }

  /** Returns false when the task is beyond the horizon. */
  add(task: ReadyTask): boolean {
    if (compareTasks(task, this.#horizon) > 0) return false;
    if (this.#byId.has(task.id)) return true;
    this.#byId.set(task.id, task);
    this.#heap.push(task);
    this.#count.tasks += 1;
    if (this.#byId.size > this.#max) this.#keepFirst(this.#max >> 1);
    return true;
  }

  remove(id: string): void {
    if (!this.#byId.delete(id)) return;
    this.#count.tasks -= 1;
    const stale = this.#heap.length - this.#byId.size;
    if (stale > STALE_MIN + (this.#byId.size >> 2)) {
      this.#heap = new TinyQueue([...this.#byId.values()], compareTasks);
    }
  }

  /** The first task, which stays. */
  first(): ReadyTask | undefined {
    for (;;) {
      const task = this.#heap.peek();
      if (task === undefined || this.#byId.get(task.id) === task) return task;
      this.#heap.pop();
    }
  }

  /** The caller adds the tasks between the old and the new horizon. */
  moveHorizon(horizon: TaskPlace): void {
    this.#horizon = horizon;
  }

  clear(): void {
    this.#count.tasks -= this.#byId.size;
    this.#byId.clear();
    this.#heap = new TinyQueue<ReadyTask>([], compareTasks);
  }

  #keepFirst(count: number): void {
    const kept = [...this.#byId.values()].sort(compareTasks).slice(0, count);
    this.clear();
    this.#horizon = kept.at(-1) ?? FIRST_PLACE;
    for (const task of kept) this.add(task);
  }
}
