/**
 * The tasks of one handler that wait for a worker, in the order in which they are offered: priority,
 * then age. One heap per tenant and queue name, so that a poll for a tenant or a queue takes its
 * first task without looking at the others. Pure.
 */

import type { UnixMs } from '../src/core/time.js';

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

/** Negative when `a` is offered before `b`. Ids of one age compare as they were made. */
export function compareTasks(
  a: Pick<ReadyTask, 'rank' | 'createdAt' | 'id'>,
  b: Pick<ReadyTask, 'rank' | 'createdAt' | 'id'>,
): number {
  return a.rank - b.rank || a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

export class ReadyTasks {
  readonly #byId = new Map<string, ReadyTask>();
  /** tenant → queue name → heap. Heaps may hold tasks that left; `#byId` decides. */
  readonly #heaps = new Map<string, Map<string, ReadyTask[]>>();

  get size(): number {
    return this.#byId.size;
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  add(task: ReadyTask): void {
    if (this.#byId.has(task.id)) return;
    this.#byId.set(task.id, task);
    let queues = this.#heaps.get(task.tenant);
    if (queues === undefined) {
      queues = new Map();
      this.#heaps.set(task.tenant, queues);
    }
    const heap = queues.get(task.queue);
    if (heap === undefined) queues.set(task.queue, [task]);
    else pushHeap(heap, task);
  }

  clear(): void {
    this.#byId.clear();
    this.#heaps.clear();
  }

  remove(id: string): void {
    this.#byId.delete(id);
  }

  /**
   * Takes the first task.
   *
   * @param tenant '' for the first of all tenants
   * @param queue undefined for any queue, named or not
   */
  take(tenant: string, queue: string | undefined): ReadyTask | undefined {
    let best: ReadyTask[] | undefined;
    for (const heap of this.#candidates(tenant, queue)) {
      this.#dropGone(heap);
      const first = heap[0];
      if (first === undefined) continue;
      if (best === undefined || compareTasks(first, best[0] as ReadyTask) < 0) best = heap;
    }
    if (best === undefined) return undefined;
    const task = popHeap(best);
    this.#byId.delete(task.id);
    if (best.length === 0) this.#dropHeap(task);
    return task;
  }

  *#candidates(tenant: string, queue: string | undefined): Iterable<ReadyTask[]> {
    const tenants = tenant === '' ? this.#heaps.values() : [this.#heaps.get(tenant)];
    for (const queues of tenants) {
      if (queues === undefined) continue;
      if (queue === undefined) yield* queues.values();
      else if (queues.has(queue)) yield queues.get(queue) as ReadyTask[];
    }
  }

  #dropGone(heap: ReadyTask[]): void {
    while (heap.length > 0 && this.#byId.get((heap[0] as ReadyTask).id) !== heap[0]) popHeap(heap);
  }

  #dropHeap(task: ReadyTask): void {
    const queues = this.#heaps.get(task.tenant);
    queues?.delete(task.queue);
    if (queues?.size === 0) this.#heaps.delete(task.tenant);
  }
}

function pushHeap(heap: ReadyTask[], task: ReadyTask): void {
  let child = heap.length;
  heap.push(task);
  while (child > 0) {
    const parent = (child - 1) >> 1;
    if (compareTasks(heap[parent] as ReadyTask, task) <= 0) break;
    heap[child] = heap[parent] as ReadyTask;
    child = parent;
  }
  heap[child] = task;
}

function popHeap(heap: ReadyTask[]): ReadyTask {
  const first = heap[0] as ReadyTask;
  const last = heap.pop() as ReadyTask;
  if (heap.length === 0) return first;
  let parent = 0;
  for (;;) {
    let child = 2 * parent + 1;
    if (child >= heap.length) break;
    const right = child + 1;
    if (
      right < heap.length &&
      compareTasks(heap[right] as ReadyTask, heap[child] as ReadyTask) < 0
    ) {
      child = right;
    }
    if (compareTasks(last, heap[child] as ReadyTask) <= 0) break;
    heap[parent] = heap[child] as ReadyTask;
    parent = child;
  }
  heap[parent] = last;
  return first;
}
