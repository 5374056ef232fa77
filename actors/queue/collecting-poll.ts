/**
 * A poll over the queues of several shards. It takes ready tasks from one shard after the other, up to its limit; if
 * there are none, it waits at all of them, and the first with tasks ends the wait at the others. Tasks beyond the limit
 * are given back at once.
 */

import { LIMITS } from '../../src/base/limits.js';
import type { UnixMs } from '../../src/base/time.js';
import type { FoundTask, TaskClaim } from '../runtime/protocol.js';

export interface CollectingEffects {
  /** The shard answers by `answered`, once. */
  ask(shard: number, handlers: readonly string[], limit: number, until: UnixMs): void;
  /** Makes the shard answer without waiting any longer. */
  end(shard: number): void;
  giveBack(claim: TaskClaim): void;
  /** No shard has to answer any more. */
  done(): void;
}

export class CollectingPoll {
  readonly found: FoundTask[] = [];
  readonly #effects: CollectingEffects;
  readonly #shards: readonly (readonly [shard: number, handlers: readonly string[]])[];
  readonly #limit: number;
  readonly #mayWait: boolean;
  #until: UnixMs;
  /** Shards that have not answered. */
  readonly #open = new Set<number>();
  #asked = 0;
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

  /** @returns false when no answer is expected from the shard: its tasks are to be given back */
  answered(shard: number, found: readonly FoundTask[]): boolean {
    if (!this.#open.delete(shard)) return false;
    for (const task of found) this.#take(task);
    const isFound = this.found.length > 0;
    if (this.#open.size > 0) {
      if (isFound) this.end();
    } else if (this.#isWaiting) this.#effects.done();
    else if (this.found.length < this.#limit && this.#asked < this.#shards.length) this.#askNext();
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
    const [shard, handlers] = this.#shards[this.#asked] as readonly [number, readonly string[]];
    this.#asked += 1;
    this.#open.add(shard);
    this.#effects.ask(shard, handlers, this.#limit - this.found.length, 0);
  }

  #askAll(): void {
    this.#isWaiting = true;
    for (const [shard] of this.#shards) this.#open.add(shard);
    // Each may answer at once.
    for (const [shard, handlers] of this.#shards) {
      this.#effects.ask(shard, handlers, this.#limit, this.#until);
    }
  }
}
