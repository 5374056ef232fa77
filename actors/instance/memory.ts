/**
 * The memory of one instance apart from its context. It is limited, because an instance with very
 * many values could exhaust its shard whenever it is loaded.
 */

import { sizeWithin } from '../../src/base/bounds.js';
import { tooLarge } from '../../src/base/errors.js';
import type { JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Snapshot } from '../../src/core/progress.js';
import { isOpen, type WorkerTaskRecord } from './worker-task.js';

const MAX = LIMITS.keptCharactersMax;

/** @param what such as `output is`. @throws EngineError 413 */
export function checkBytes(what: string, bytes: number, max: number): void {
  if (bytes > max) throw tooLarge(`${what} ${bytes} bytes, the limit is ${max}`);
}

/** Bytes of JSON per character of `sizeWithin`: a control character is written as \u001f. */
export const BYTES_PER_CHARACTER_MAX = 6;

/** The bytes of JSON if they exceed `max`. Most values are far smaller, and not serialized. */
export function bytesBeyond(value: JsonValue, max: number): number | undefined {
  if (sizeWithin(value, Math.floor(max / BYTES_PER_CHARACTER_MAX)) !== undefined) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > max ? bytes : undefined;
}

/** @throws EngineError 413 when the value exceeds `max` bytes of JSON */
export function checkSize(what: string, value: JsonValue, max: number): void {
  checkBytes(what, bytesBeyond(value, max) ?? 0, max);
}

/** Approximate characters of JSON. A value above the limit counts as just above it. */
export function charactersOf(value: JsonValue): number {
  return sizeWithin(value, MAX) ?? MAX + 1;
}

export class KeptValues {
  #sizes: Map<string, number> | undefined;
  #characters = 0;

  constructor(snapshot: Snapshot) {
    this.count(snapshot);
  }

  get characters(): number {
    return this.#characters;
  }

  output(blockId: string, characters: number): void {
    this.#set(`output:${blockId}`, characters);
  }

  items(key: string, characters: number): void {
    this.#set(`items:${key}`, characters);
  }

  count({ outputs, snapshots }: Snapshot): void {
    this.#sizes = undefined;
    this.#characters = 0;
    for (const [blockId, { output }] of outputs) this.output(blockId, charactersOf(output));
    for (const [key, items] of snapshots) this.items(key, charactersOf(items));
  }

  #set(name: string, characters: number): void {
    this.#sizes ??= new Map();
    this.#characters += characters - (this.#sizes.get(name) ?? 0);
    this.#sizes.set(name, characters);
  }
}

/** Identifies a step independently of the plan, which may change. */
export interface TaskStep {
  readonly blockId: string;
  readonly iteration: string;
}

/** Ended tasks that are kept for late calls, and for the checkpoint of the next try. */
const ENDED_TASKS_KEPT = 32;

/** More tasks have an index, and their states are not checked after each unit. */
const FEW = 8;

const NO_TASKS: readonly WorkerTaskRecord[] = [];

/**
 * The open tasks and some recently ended ones. An event costs the same with 5 and with 5,000 open tasks, and the one
 * task of most instances takes little memory.
 */
export class TaskCache {
  /** Empty once there is an index. */
  #few = NO_TASKS;
  #index: TaskIndex | undefined;
  #characters = 0;

  get characters(): number {
    return this.#characters;
  }

  get size(): number {
    return this.#index?.byId.size ?? this.#few.length;
  }

  get open(): number {
    if (this.#index !== undefined) return this.#index.byId.size - this.#index.ended.size;
    let open = 0;
    for (const task of this.#few) if (isOpen(task)) open += 1;
    return open;
  }

  /** Whether workers hold claims; assumed when there are many tasks. */
  get isClaimed(): boolean {
    return this.size > FEW || this.hasClaimed;
  }

  get hasClaimed(): boolean {
    for (const { state } of this.values()) if (state === 'claimed') return true;
    return false;
  }

  values(): IterableIterator<WorkerTaskRecord> {
    return this.#index?.byId.values() ?? this.#few.values();
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  get(id: string): WorkerTaskRecord | undefined {
    if (this.#index !== undefined) return this.#index.byId.get(id);
    for (const task of this.#few) if (task.id === id) return task;
    return undefined;
  }

  /** Replaces the record with the same id. */
  set(task: WorkerTaskRecord): void {
    const replaced = this.get(task.id);
    this.#characters += task.params.length - (replaced?.params.length ?? 0);
    if (this.#index !== undefined) this.#index.set(task);
    else if (replaced !== undefined) {
      this.#few = this.#few.map((one) => (one === replaced ? task : one));
    } else if (this.#few.length < FEW) this.#few = this.#few.concat(task);
    else {
      this.#index = new TaskIndex();
      for (const one of this.#few) this.#index.set(one);
      this.#index.set(task);
      this.#few = NO_TASKS;
    }
  }

  lastOf({ blockId, iteration }: TaskStep): WorkerTaskRecord | undefined {
    if (this.#index !== undefined) return this.#index.lastOf(stepOf(blockId, iteration));
    let last: WorkerTaskRecord | undefined;
    for (const task of this.#few) {
      const isOfStep = task.block_id === blockId && task.iteration === iteration;
      // A late call may load an old task; ids ascend.
      if (isOfStep && (last === undefined || task.id > last.id)) last = task;
    }
    return last;
  }

  /** Records the end of a task, and drops the oldest ended ones. */
  ended(id: string): void {
    for (const dropped of this.#index?.end(id) ?? NO_TASKS) {
      this.#characters -= dropped.params.length;
    }
  }
}

/** Many tasks by id, with the latest one of each step. */
class TaskIndex {
  readonly byId = new Map<string, WorkerTaskRecord>();
  readonly ended = new Set<string>();
  readonly #lastOf = new Map<string, string>();

  set(task: WorkerTaskRecord): void {
    const { id } = task;
    const step = stepOf(task.block_id, task.iteration);
    const last = this.#lastOf.get(step);
    if (last === undefined || id >= last) this.#lastOf.set(step, id);
    if (!isOpen(task)) this.ended.add(id);
    this.byId.set(id, task);
  }

  lastOf(step: string): WorkerTaskRecord | undefined {
    const id = this.#lastOf.get(step);
    return id === undefined ? undefined : this.byId.get(id);
  }

  end(id: string): readonly WorkerTaskRecord[] {
    this.ended.add(id);
    const dropped: WorkerTaskRecord[] = [];
    for (const oldest of this.ended) {
      if (this.ended.size <= ENDED_TASKS_KEPT) break;
      dropped.push(this.#drop(oldest));
    }
    return dropped;
  }

  #drop(id: string): WorkerTaskRecord {
    const task = this.byId.get(id)!;
    const step = stepOf(task.block_id, task.iteration);
    if (this.#lastOf.get(step) === id) this.#lastOf.delete(step);
    this.ended.delete(id);
    this.byId.delete(id);
    return task;
  }
}

function stepOf(blockId: string, iteration: string): string {
  return `${iteration}:${blockId}`;
}
