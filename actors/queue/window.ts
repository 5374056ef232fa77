/**
 * What the polls of one kind look at: the waiting tasks of a handler, of one tenant or of all, of one
 * queue name or of any. Each kind has a window of its own on the table, in the table's order, so that
 * no other tenant's or queue's tasks can stand in its way. The first tasks are in memory, the others
 * are read when these run low; a task may be in several windows. Plain data and functions; reads
 * nothing itself.
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
  /** The first read takes so few, because most windows need no more. */
  readonly readyPageRowsMin: number;
  readonly readyPageRowsMax: number;
}

const BOUNDS: WindowBounds = {
  windowTasksMax: LIMITS.windowTasksMax,
  readyPageRowsMin: LIMITS.readyPageRowsMin,
  readyPageRowsMax: LIMITS.readyPageRowsMax,
};

export interface Window {
  /** '' looks at the tasks of all tenants. */
  readonly tenant: string;
  /** '' looks at the tasks of every queue name and of none. */
  readonly queue: string;
  readonly ready: ReadyTasks;
  /** Polls that wait, in order of arrival. While there are any, `ready` is empty. */
  readonly parked: Set<Poll>;
  /** The read under way. */
  read: Read | undefined;
  /** Rows that the latest read asked for. */
  pageRows: number;
  readonly bounds: WindowBounds;
  readonly count: TaskCount;
}

export interface Read {
  readonly after: TaskPlace;
  readonly limit: number;
  /** Tasks behind `after` that were told of since: its snapshot may be older than they are. */
  readonly late: ReadyTasks;
}

/** Nothing is known of the table until it was read. */
export function newWindow(
  tenant: string,
  queue: string,
  count: TaskCount,
  bounds: WindowBounds = BOUNDS,
): Window {
  const ready = new ReadyTasks(count, bounds.windowTasksMax, FIRST_PLACE);
  return { tenant, queue, ready, parked: new Set(), read: undefined, pageRows: 0, bounds, count };
}

/** A task waits. Behind the horizon its row is enough. */
export function offer({ ready, read }: Window, task: ReadyTask): void {
  if (!ready.add(task)) read?.late.add(task);
}

export function withdraw({ ready, read }: Window, task: string): void {
  ready.remove(task);
  read?.late.remove(task);
}

/** What the table must be asked for: undefined when enough is in memory, or is being read. */
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

/** @param isPicked true for tasks that a poll is claiming: these are not offered */
export function endRead(
  window: Window,
  tasks: readonly ReadyTask[],
  isPicked: (id: string) => boolean,
): void {
  const { ready, read } = window;
  window.read = undefined;
  if (read === undefined) return;
  // When the horizon came nearer meanwhile, there would be a gap before what was read.
  if (ready.horizon === read.after) {
    const end = tasks.length < read.limit ? LAST_PLACE : (tasks.at(-1) as ReadyTask);
    ready.moveHorizon(compareTasks(end, read.late.horizon) < 0 ? end : read.late.horizon);
    for (const task of tasks) if (!isPicked(task.id)) ready.add(task);
    for (const task of read.late.values()) if (!isPicked(task.id)) ready.add(task);
  }
  read.late.clear();
}

/** Forgets what is in memory and what is being read. */
export function reset(window: Window): void {
  window.ready.clear();
  window.ready.moveHorizon(FIRST_PLACE);
  window.read?.late.clear();
  window.read = undefined;
}
