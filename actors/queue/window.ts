/**
 * The view of one kind of poll: the waiting tasks of a handler, of one tenant or all, and of one queue name or any.
 * Each kind reads the table in its own order, so that tasks of other tenants and queues are not in its way. The first
 * tasks are in memory, more are read when they run low; a task may be in several windows. Plain data and functions
 * without I/O.
 */

import { LIMITS } from '../../src/base/limits.js';
import type { TaskPlace } from './loads.js';
import type { Poll } from './poll.js';
import {
  compareTasks,
  FIRST_PLACE,
  LAST_PLACE,
  type ReadyTask,
  ReadyTasks,
  type TaskCount,
} from './ready-tasks.js';

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
  const grown = Math.max(bounds.readyPageRowsMin, window.pageRows * 4, poll.limit);
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
    ready.moveHorizon(compareTasks(end, read.late.horizon) < 0 ? end : read.late.horizon);
    for (const task of tasks) if (!isPicked(task.id)) ready.add(task);
    for (const task of read.late.values()) if (!isPicked(task.id)) ready.add(task);
  }
  read.late.clear();
}

/** Forgets what is in memory and being read. */
export function reset(window: Window): void {
  window.ready.clear();
  window.ready.moveHorizon(FIRST_PLACE);
  window.read?.late.clear();
  window.read = undefined;
}
