/**
 * The concurrency keys of one shard. A key comes to life with the first instance that wants a slot
 * of it; from time to time the rows of the keys are read again, a few at a time, since what was said
 * about them may have been lost.
 */

import type { TimerHandle } from '../src/core/clock.js';
import { routeOf, shardOf } from '../src/core/ids.js';
import { KeyActor, type Wish } from './key.js';
import type { RowActorDeps } from './row-actor.js';

export interface KeysDeps extends RowActorDeps {
  readonly shard: number;
}

/** Keys that are read again at once, before the others have their turn. */
const RESCAN_PAGE = 100;

/** Between two rounds over all keys: how long a lost word can hold a slot up. */
const RESCAN_MS = 5_000;

/** Keys in memory; beyond it those that nobody needs are let go. */
const KEYS_MAX = 10_000;

const FIRST_KEY = '00000000-0000-0000-0000-000000000000';

export class Keys {
  readonly #deps: KeysDeps;
  readonly #actors = new Map<string, KeyActor>();
  /** Those that were told something in this turn. */
  readonly #touched = new Set<KeyActor>();
  #rescanHandle: TimerHandle | undefined;
  #isScanning = false;
  #stopped = false;

  constructor(deps: KeysDeps) {
    this.#deps = deps;
  }

  wanted(id: string, wish: Wish): void {
    this.#actor(id).wanted(wish);
  }

  left(id: string, instance: string, number: number): void {
    this.#actor(id).left(instance, number);
  }

  /** Reads the rows of every key of this shard, now and from time to time. */
  start(): void {
    this.#rescan();
  }

  stop(): void {
    this.#stopped = true;
    this.#deps.clock.clearTimeout(this.#rescanHandle);
  }

  /** Words of a shard that died may be lost. */
  shardDied(): void {
    this.#rescan();
  }

  endTurn(): void {
    for (const actor of this.#touched) actor.flush();
    this.#touched.clear();
    if (this.#actors.size <= KEYS_MAX) return;
    for (const [id, actor] of this.#actors) {
      if (actor.isPassive) this.#actors.delete(id);
    }
  }

  #actor(id: string): KeyActor {
    let actor = this.#actors.get(id);
    if (actor === undefined) {
      actor = new KeyActor(id, this.#deps);
      this.#actors.set(id, actor);
    }
    this.#touched.add(actor);
    return actor;
  }

  #rescan(): void {
    if (this.#isScanning || this.#stopped) return;
    this.#isScanning = true;
    this.#deps.clock.clearTimeout(this.#rescanHandle);
    this.#round(FIRST_KEY)
      .catch((error: unknown) => this.#deps.log.debug({ err: error }, 'keys could not be read'))
      .finally(() => {
        this.#isScanning = false;
        if (this.#stopped) return;
        this.#rescanHandle = this.#deps.clock.setTimeout(() => this.#rescan(), RESCAN_MS);
      });
  }

  async #round(first: string): Promise<void> {
    const { loader, schedule, shard, shards } = this.#deps;
    const read = new Set<string>();
    let after = first;
    for (;;) {
      const page = await loader.permitKeys(after, RESCAN_PAGE);
      if (this.#stopped) return;
      const own = page.filter((id) => shardOf(routeOf(id), shards) === shard);
      if (own.length > 0) {
        schedule(() => {
          for (const id of own) this.#actor(id).rescan();
        });
      }
      for (const id of own) read.add(id);
      if (page.length < RESCAN_PAGE) break;
      after = page.at(-1) as string;
    }
    if (this.#actors.size === 0) return;
    // A holder whose leaving was not heard has no wish that names its key.
    schedule(() => {
      for (const [id, actor] of this.#actors) {
        if (!read.has(id) && !actor.isPassive) this.#actor(id).rescan();
      }
    });
  }
}
