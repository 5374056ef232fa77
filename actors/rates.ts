/** The rate limits of one shard, by the hash of tenant and key. */

import type { UnixMs } from '../src/core/time.js';
import type { RateLimitRow } from './loader.js';
import { type Asker, RateActor, type RateActorDeps } from './rate.js';

/** Limits in memory; beyond it those that count nothing are let go, and come back from rows. */
const RATES_MAX = 10_000;

export class Rates {
  readonly #deps: RateActorDeps;
  readonly #actors = new Map<string, RateActor>();
  /** Those that were told something in this turn. */
  readonly #touched = new Set<RateActor>();

  constructor(deps: RateActorDeps) {
    this.#deps = deps;
  }

  asked(id: string, asker: Asker): void {
    this.#actor(id).asked(asker);
  }

  used(id: string, grant: number, at: UnixMs | null): void {
    this.#actor(id).used(grant, at);
  }

  put(id: string, request: number, limit: RateLimitRow): void {
    this.#actor(id).put(request, limit);
  }

  delete(id: string, request: number): void {
    this.#actor(id).delete(request);
  }

  endTurn(): void {
    for (const actor of this.#touched) actor.flush();
    this.#touched.clear();
    if (this.#actors.size <= RATES_MAX) return;
    for (const [id, actor] of this.#actors) {
      if (actor.isPassive) this.#actors.delete(id);
    }
  }

  #actor(id: string): RateActor {
    let actor = this.#actors.get(id);
    if (actor === undefined) {
      actor = new RateActor(id, this.#deps);
      this.#actors.set(id, actor);
    }
    this.#touched.add(actor);
    return actor;
  }
}
