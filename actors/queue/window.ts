/**
 * The view of one kind of poll: the waiting tasks of a handler, of one tenant or all, and of one queue name or any.
 * Each kind reads the table in its own order, so that tasks of other tenants and queues are not in its way. The first
 * tasks are in memory, more are read when they run low; a task may be in several windows. Plain data and functions
 * without I/O.
 */

import TinyQueue from 'tinyqueue';
import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import type { TaskPlace } from './loads.js';
import type { Poll } from './poll.js';

export interface WindowBounds {
  readonly windowTasksMax: number;
  /** Size of the first read: most windows need no more. */
  readonly readyPageRowsMin: number;
  readonly readyPageRowsMax: number;
}

const BOUNDS: WindowBounds = {
  windowTasksMax: LIMITS.windowTasksMax,
  readyPageRowsMin: LIMITS.readyPageRowsMin,
  readyPageRowsMax: LIMITS.readyPageRowsMax,
};

export interface Window {
  /** '' for all tenants. */
  readonly tenant: string;
  /** '' for every queue name and none. */
  readonly queue: string;
  readonly ready: ReadyTasks;
  /** Waiting polls, in order of arrival. While there are any, `ready` is empty. */
  readonly parked: Set<Poll>;
  /** The read in progress. */
  read: Read | undefined;
  /** Rows requested by the latest read. */
  pageRows: number;
  readonly bounds: WindowBounds;
  readonly count: TaskCount;
}

export interface Read {
  readonly after: TaskPlace;
  readonly limit: number;
  /** Hints beyond `after` since the read began: its snapshot may be older. */
  readonly late: ReadyTasks;
}

/** The table is unread at first. */
export function newWindow(
  tenant: string,
  queue: string,
  count: TaskCount,
  bounds: WindowBounds = BOUNDS,
): Window {
  const ready = new ReadyTasks(count, bounds.windowTasksMax, FIRST_PLACE);
  return { tenant, queue, ready, parked: new Set(), read: undefined, pageRows: 0, bounds, count };
}

/** A task waits. Beyond the horizon its row is enough. */
export function offer({ ready, read }: Window, task: ReadyTask): void {
  if (!ready.add(task)) read?.late.add(task);
}

export function withdraw({ ready, read }: Window, task: string): void {
  ready.remove(task);
  read?.late.remove(task);
}

/** The read that the window needs; undefined when enough is in memory or being read. */
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

/** @param isPicked true for tasks with a claim in progress, which are not offered */
export function endRead(
  window: Window,
  tasks: readonly ReadyTask[],
  isPicked: (id: string) => boolean,
): void {
  const { ready, read } = window;
  window.read = undefined;
  if (read === undefined) return;
  // If the horizon moved closer meanwhile, there would be a gap before these rows.
  if (ready.horizon === read.after) {
    const end = tasks.length < read.limit ? LAST_PLACE : (tasks.at(-1) as ReadyTask);
    ready.horizon = compareTasks(end, read.late.horizon) < 0 ? end : read.late.horizon;
    for (const task of tasks) if (!isPicked(task.id)) ready.add(task);
    for (const task of read.late.values()) if (!isPicked(task.id)) ready.add(task);
  }
  read.late.clear();
}

/** Forgets what is in memory and being read. */
export function reset(window: Window): void {
  window.ready.clear();
  window.ready.horizon = FIRST_PLACE;
  window.read?.late.clear();
  window.read = undefined;
}

// ---------------------------------------------------------------- waiting tasks

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

/**
 * Waiting tasks in the order of offers: by priority, then by age. It holds tasks up to a position, the horizon; later
 * tasks are only in the table. Past its size limit the horizon moves closer.
 */
export class ReadyTasks {
  readonly #count: TaskCount;
  readonly #max: number;
  /** A caller that moves it adds the tasks in between. */
  horizon: TaskPlace;
  readonly #byId = new Map<string, ReadyTask>();
  /** May hold removed tasks; `#byId` decides. */
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

  /** Returns false when the task is beyond the horizon. */
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

  /** The first task, which stays. */
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
