/**
 * What one instance keeps in memory beside its context, and how much that is: the outputs that its
 * expressions can read, the items of its for_each blocks, and its tasks with their parameters. Each
 * value has a limit of its own, their number has not: without a limit on the sum, one instance could
 * end its shard, and again whenever it is loaded.
 */

import { sizeWithin } from '../../src/base/bounds.js';
import { tooLarge } from '../../src/base/errors.js';
import type { JsonValue } from '../../src/base/json.js';
import { LIMITS } from '../../src/base/limits.js';
import type { Snapshot } from '../../src/core/progress.js';
import { LazyMap } from './lazy-map.js';
import type { WorkerTaskRecord } from './worker-task.js';

const MAX = LIMITS.keptCharactersMax;

/**
 * @param what `the thing is`
 * @throws EngineError 413
 */
export function checkBytes(what: string, bytes: number, max: number): void {
  if (bytes > max) throw tooLarge(`${what} ${bytes} bytes, the limit is ${max}`);
}

/** Of JSON, for what `sizeWithin` counts as one character: a control character is written \u001f. */
export const BYTES_PER_CHARACTER_MAX = 6;

/**
 * The bytes of the value as JSON when they are more than `max`. What is far smaller, as almost all is, is
 * not written out to learn that: on the hot path that takes several times as long as to look at it.
 */
export function bytesBeyond(value: JsonValue, max: number): number | undefined {
  if (sizeWithin(value, Math.floor(max / BYTES_PER_CHARACTER_MAX)) !== undefined) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > max ? bytes : undefined;
}

/**
 * @param what `the thing is`
 * @throws EngineError 413 when the value is larger than `max` bytes as JSON
 */
export function checkSize(what: string, value: JsonValue, max: number): void {
  checkBytes(what, bytesBeyond(value, max) ?? 0, max);
}

/** Characters of JSON, roughly; of values that are beyond the limit by themselves, just that. */
export function charactersOf(value: JsonValue): number {
  return sizeWithin(value, MAX) ?? MAX + 1;
}

/** The sizes of outputs and items, by names that the two do not share. */
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

  /** Anew: some values have gone since they were counted. */
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

// ---------------------------------------------------------------- tasks

/** Names a step; the index of its node may change with the plan. */
export interface TaskStep {
  readonly blockId: string;
  readonly iteration: string;
}

/** Ended tasks are kept for a while, for late calls and for the checkpoint of a next try. */
const ENDED_TASKS_KEPT = 32;

/** Tasks that are looked at after each unit of their instance. */
const LOOKED_AT_MAX = 8;

/**
 * The open tasks, and some that ended lately. An index beside them gives the last task of a step, so
 * that an event costs the same with five tasks open as with five thousand.
 */
export class TaskCache extends Map<string, WorkerTaskRecord> {
  readonly #lastOf = new LazyMap<string, string>();
  /** In the order in which they ended. */
  readonly #ended = new LazyMap<string, true>();
  #characters = 0;

  /** Of the parameters of all its tasks, as JSON. */
  get characters(): number {
    return this.#characters;
  }

  /** How many of them are open. */
  get open(): number {
    return this.size - this.#ended.size;
  }

  /** Whether workers have tasks in their hands; of very many it is taken for granted. */
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
    // One that ended long ago may come back for a late call; ids compare as they were made.
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

  /** The newest task of the step that is kept. */
  lastOf({ blockId, iteration }: TaskStep): WorkerTaskRecord | undefined {
    const id = this.#lastOf.get(stepOf(blockId, iteration));
    return id === undefined ? undefined : this.get(id);
  }

  /** The task is open no more: those that ended first make room for it. */
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
