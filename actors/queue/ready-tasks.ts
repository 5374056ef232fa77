/**
 * Waiting tasks in the order in which they are offered: priority, then age. Holds those up to a
 * place, the horizon; tasks behind it are only in their table. What is held is bounded, because past
 * its bound the horizon comes nearer. Pure.
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
/** Behind every task. */
export const LAST_PLACE: TaskPlace = { rank: 32_767, createdAt: 0, id: '' };

/** Negative when `a` is offered before `b`. Ids of one age compare as they were made. */
export function compareTasks(a: TaskPlace, b: TaskPlace): number {
  return a.rank - b.rank || a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Counts the tasks of several `ReadyTasks` together. */
export interface TaskCount {
  tasks: number;
}

/** The heap is built anew when this many of its tasks have left, and a quarter of it. */
const STALE_MIN = 64;

export class ReadyTasks {
  readonly #count: TaskCount;
  readonly #max: number;
  #horizon: TaskPlace;
  readonly #byId = new Map<string, ReadyTask>();
  /** May hold tasks that left; `#byId` decides. */
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

  /** Returns false when the task lies behind the horizon, and is not held. */
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

  /** The caller adds what lies between the old horizon and the new one. */
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
