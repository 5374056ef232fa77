/**
 * A poll over the queues of several shards. It takes ready tasks from one shard after the other, up
 * to its limit. If there are none, it waits at all shards until one has tasks. Tasks beyond the
 * limit are returned at once.
 */

import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import type { FoundTask, TaskClaim } from '../runtime/protocol.js';

export interface CollectingEffects {
  /** The shard responds with one call of `answered`. */
  ask(shard: number, handlers: readonly string[], limit: number, until: UnixMs): void;
  /** Makes the shard respond without further waiting. */
  end(shard: number): void;
  giveBack(claim: TaskClaim): void;
  done(): void;
}

export class CollectingPoll {
  readonly found: FoundTask[] = [];
  readonly #effects: CollectingEffects;
  readonly #shards: readonly (readonly [shard: number, handlers: readonly string[]])[];
  readonly #limit: number;
  readonly #mayWait: boolean;
  #until: UnixMs;
  /** Shards without a response. */
  readonly #open = new Set<number>();
  #next = 0;
  #isWaiting = false;
  #bytes = 0;

  /** @param until when an empty poll ends; 0: it does not wait */
  constructor(
    effects: CollectingEffects,
    shards: readonly (readonly [shard: number, handlers: readonly string[]])[],
    limit: number,
    until: UnixMs,
  ) {
    this.#effects = effects;
    this.#shards = shards;
    this.#limit = limit;
    this.#until = until;
    this.#mayWait = until > 0;
  }

  start(): void {
    if (this.#shards.length === 1) this.#askAll();
    else this.#askNext();
  }

  /** Ends the wait; tasks that are ready now are still found. */
  end(): void {
    this.#until = 0;
    if (this.#isWaiting) for (const shard of this.#open) this.#effects.end(shard);
  }

  /** @returns false for an unexpected response, whose tasks the caller must return */
  answered(shard: number, found: readonly FoundTask[]): boolean {
    if (!this.#open.delete(shard)) return false;
    for (const task of found) this.#take(task);
    const isFound = this.found.length > 0;
    if (this.#open.size > 0) {
      if (isFound) this.end();
    } else if (this.#isWaiting) this.#effects.done();
    else if (this.found.length < this.#limit && this.#next < this.#shards.length) this.#askNext();
    else if (isFound || !this.#mayWait) this.#effects.done();
    else this.#askAll();
    return true;
  }

  #take(found: FoundTask): void {
    const bytes = this.#bytes + found.record.length;
    const isFull = this.found.length === this.#limit || bytes > LIMITS.responseBytesMax;
    if (isFull && this.found.length > 0) this.#effects.giveBack(found);
    else {
      this.#bytes = bytes;
      this.found.push(found);
    }
  }

  #askNext(): void {
    const [shard, handlers] = this.#shards[this.#next] as readonly [number, readonly string[]];
    this.#next += 1;
    this.#open.add(shard);
    this.#effects.ask(shard, handlers, this.#limit - this.found.length, 0);
  }

  #askAll(): void {
    this.#isWaiting = true;
    for (const [shard] of this.#shards) this.#open.add(shard);
    // A shard may respond at once.
    for (const [shard, handlers] of this.#shards) {
      this.#effects.ask(shard, handlers, this.#limit, this.#until);
    }
  }
}
