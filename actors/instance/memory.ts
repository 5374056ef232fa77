/**
 * The memory of one instance apart from its context. It is limited, because an instance with very
 * many values could exhaust its shard whenever it is loaded.
 */

import { sizeWithin } from '../../src/base/bounds.js';
import { tooLarge } from '../../src/base/errors.js';
import type { JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Snapshot } from '../../src/core/progress.js';
import type { WorkerTaskRecord } from './worker-task.js';

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
  readonly #sizes = new LazyMap<string, number>();
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
    this.#sizes.clear();
    this.#characters = 0;
    for (const [blockId, { output }] of outputs) this.output(blockId, charactersOf(output));
    for (const [key, items] of snapshots) this.items(key, charactersOf(items));
  }

  #set(name: string, characters: number): void {
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

/** With more tasks, their states are not checked after each unit. */
const LOOKED_AT_MAX = 8;

/**
 * The open tasks and some recently ended ones, with an index of the latest task of each step, so
 * that an event costs the same with 5 and with 5,000 open tasks.
 */
export class TaskCache extends Map<string, WorkerTaskRecord> {
  readonly #lastOf = new LazyMap<string, string>();
  readonly #ended = new LazyMap<string, true>();
  #characters = 0;

  get characters(): number {
    return this.#characters;
  }

  get open(): number {
    return this.size - this.#ended.size;
  }

  /** Whether workers hold claims; assumed when there are many tasks. */
  get isClaimed(): boolean {
    return this.size > LOOKED_AT_MAX || this.hasClaimed;
  }

  get hasClaimed(): boolean {
    for (const { state } of this.values()) if (state === 'claimed') return true;
    return false;
  }

  override set(id: string, task: WorkerTaskRecord): this {
    const replaced = this.get(id);
    if (replaced?.params !== task.params) {
      this.#characters += task.params.length;
      if (replaced !== undefined) this.#characters -= replaced.params.length;
    }
    const step = stepOf(task.block_id, task.iteration);
    const last = this.#lastOf.get(step);
    // A late call may load an old task; ids ascend.
    if (last === undefined || id >= last) this.#lastOf.set(step, id);
    if (task.state === 'completed' || task.state === 'failed') this.#ended.set(id, true);
    return super.set(id, task);
  }

  override delete(id: string): boolean {
    const task = this.get(id);
    if (task === undefined) return false;
    this.#characters -= task.params.length;
    const step = stepOf(task.block_id, task.iteration);
    if (this.#lastOf.get(step) === id) this.#lastOf.delete(step);
    this.#ended.delete(id);
    return super.delete(id);
  }

  lastOf({ blockId, iteration }: TaskStep): WorkerTaskRecord | undefined {
    const id = this.#lastOf.get(stepOf(blockId, iteration));
    return id === undefined ? undefined : this.get(id);
  }

  /** Records the end of a task, and drops the oldest ended ones. */
  ended(id: string): void {
    this.#ended.set(id, true);
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= ENDED_TASKS_KEPT) return;
      this.delete(oldest);
    }
  }
}

function stepOf(blockId: string, iteration: string): string {
  return `${iteration}:${blockId}`;
}

const NO_ENTRIES: ReadonlyMap<never, never> = new Map<never, never>();

/** A Map that allocates on the first `set`: an empty one takes 200 bytes. */
export class LazyMap<Key, Value> implements Iterable<[Key, Value]> {
  #map: Map<Key, Value> | undefined;

  get size(): number {
    return this.#map?.size ?? 0;
  }

  has(key: Key): boolean {
    return this.#map?.has(key) ?? false;
  }

  get(key: Key): Value | undefined {
    return this.#map?.get(key);
  }

  set(key: Key, value: Value): void {
    this.#map ??= new Map();
    this.#map.set(key, value);
  }

  delete(key: Key): boolean {
    return this.#map?.delete(key) ?? false;
  }

  clear(): void {
    this.#map = undefined;
  }

  keys(): IterableIterator<Key> {
    return (this.#map ?? NO_ENTRIES).keys();
  }

  values(): IterableIterator<Value> {
    return (this.#map ?? NO_ENTRIES).values();
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return (this.#map ?? NO_ENTRIES)[Symbol.iterator]();
  }
}
