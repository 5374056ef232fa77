/**
 * The waiting tasks for one kind of poll: those of a handler, of one tenant or all, and of one
 * queue name or any. Each kind reads the table in its own order, so that it never scans tasks of
 * other tenants and queues. The first tasks are in memory; more are read when they run low.
 */

import TinyQueue from 'tinyqueue';
import { ChurningMap } from '../../src/base/churning-map.js';
import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import type { TaskPlace } from './loads.js';
import type { Poll } from './poll.js';

export interface WindowBounds {
  readonly windowTasksMax: number;
  /** The size of the first read; most windows need no other. */
  readonly readyPageRowsMin: number;
  readonly readyPageRowsMax: number;
}

const BOUNDS: WindowBounds = {
  windowTasksMax: LIMITS.windowTasksMax,
  readyPageRowsMin: LIMITS.readyPageRowsMin,
  readyPageRowsMax: LIMITS.readyPageRowsMax,
};

export interface Window {
  /** '': all tenants. */
  readonly tenant: string;
  /** '': any queue name or none. */
  readonly queue: string;
  readonly ready: ReadyTasks;
  /** Waiting polls in order of arrival; `ready` is then empty. */
  readonly parked: ChurningMap<number, Poll>;
  read: Read | undefined;
  /** Of the latest read. */
  pageRows: number;
  readonly bounds: WindowBounds;
  readonly count: TaskCount;
}

export interface Read {
  readonly after: TaskPlace;
  readonly limit: number;
  /** Hints beyond `after` that the snapshot of the read may lack. */
  readonly late: ReadyTasks;
}

export function newWindow(
  tenant: string,
  queue: string,
  count: TaskCount,
  bounds: WindowBounds = BOUNDS,
): Window {
  const ready = new ReadyTasks(count, bounds.windowTasksMax, FIRST_PLACE);
  return {
    tenant,
    queue,
    ready,
    parked: new ChurningMap(),
    read: undefined,
    pageRows: 0,
    bounds,
    count,
  };
}

/** Tasks beyond the horizon are read from the table later. */
export function offer({ ready, read }: Window, task: ReadyTask): void {
  if (!ready.add(task)) read?.late.add(task);
}

export function withdraw({ ready, read }: Window, task: string): void {
  ready.remove(task);
  read?.late.remove(task);
}

/** Undefined when enough tasks are in memory or being read. */
export function wantedRead(window: Window, poll: Poll): Read | undefined {
  const { ready, bounds, count } = window;
  if (window.read !== undefined || ready.horizon === LAST_PLACE) return undefined;
  if (ready.size > window.pageRows >> 1) return undefined;
  const grown = Math.max(bounds.readyPageRowsMin, window.pageRows * 4, poll.requested.limit);
  window.pageRows = Math.min(grown, bounds.readyPageRowsMax);
  const late = new ReadyTasks(count, bounds.windowTasksMax, LAST_PLACE);
  window.read = { after: ready.horizon, limit: window.pageRows, late };
  return window.read;
}

/** @param isPicked tasks with a claim in progress are not offered */
export function endRead(
  window: Window,
  tasks: readonly ReadyTask[],
  isPicked: (id: string) => boolean,
): void {
  const { ready, read } = window;
  window.read = undefined;
  if (read === undefined) return;
  // If the horizon has moved closer meanwhile, these rows would leave a gap.
  if (ready.horizon === read.after) {
    const end = tasks.length < read.limit ? LAST_PLACE : (tasks.at(-1) as ReadyTask);
    ready.horizon = compareTasks(end, read.late.horizon) < 0 ? end : read.late.horizon;
    for (const task of tasks) if (!isPicked(task.id)) ready.add(task);
    for (const task of read.late.values()) if (!isPicked(task.id)) ready.add(task);
  }
  read.late.clear();
}

/** Forgets all tasks, and the read in progress. */
export function reset(window: Window): void {
  window.ready.clear();
  window.ready.horizon = FIRST_PLACE;
  window.read?.late.clear();
  window.read = undefined;
}

export interface ReadyTask {
  readonly id: string;
  readonly instance: string;
  readonly tenant: string;
  readonly queue: string;
  /** 0 critical … 3 low. */
  readonly rank: number;
  readonly createdAt: UnixMs;
}

export const FIRST_PLACE: TaskPlace = {
  rank: -1,
  createdAt: 0,
  id: '00000000-0000-0000-0000-000000000000',
};
export const LAST_PLACE: TaskPlace = { rank: 32_767, createdAt: 0, id: '' };

/** The order of offers. Ids are in the order of creation. */
export function compareTasks(a: TaskPlace, b: TaskPlace): number {
  return a.rank - b.rank || a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** The number of tasks in several `ReadyTasks`. */
export interface TaskCount {
  tasks: number;
}

/** The heap is rebuilt when this many of its tasks, plus a quarter, are stale. */
const STALE_MIN = 64;

/**
 * Waiting tasks by priority, then by age, up to a position: the horizon. Later tasks are only in
 * the table. When the size limit is exceeded, the horizon moves closer.
 */
export class ReadyTasks {
  readonly #count: TaskCount;
  readonly #max: number;
  /** A caller that moves the horizon adds the tasks in between. */
  horizon: TaskPlace;
  readonly #byId = new ChurningMap<string, ReadyTask>();
  /** May contain removed tasks; `#byId` decides. */
  #heap = new TinyQueue<ReadyTask>([], compareTasks);

  constructor(count: TaskCount, max: number, horizon: TaskPlace) {
    this.#count = count;
    this.#max = max;
    this.horizon = horizon;
  }

  get size(): number {
    return this.#byId.size;
  }

  values(): Iterable<ReadyTask> {
    return this.#byId.values();
  }

  /** Returns false for a task beyond the horizon. */
  add(task: ReadyTask): boolean {
    if (compareTasks(task, this.horizon) > 0) return false;
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

  first(): ReadyTask | undefined {
    for (;;) {
      const task = this.#heap.peek();
      if (task === undefined || this.#byId.get(task.id) === task) return task;
      this.#heap.pop();
    }
  }

  clear(): void {
    this.#count.tasks -= this.#byId.size;
    this.#byId.clear();
    this.#heap = new TinyQueue<ReadyTask>([], compareTasks);
  }

  #keepFirst(count: number): void {
    const kept = [...this.#byId.values()].sort(compareTasks).slice(0, count);
    this.clear();
    this.horizon = kept.at(-1) ?? FIRST_PLACE;
    for (const task of kept) this.add(task);
  }
}
