/**
 * Behind it every shard routes by the rows: a release that has come to route, or has ceased to, is
 * told to all of them, and each answers when it has read the rows and all that it routed by older
 * ones is durable. So a caller who is answered behind the barrier sees no creation of before it.
 *
 * A word may be lost, and a shard may die before its answer: it is told again every second, and its
 * successor at once. What a shard has settled stays so when it dies: its successor reads newer rows.
 */

import type { TimerHandle } from '../../src/core/clock.js';
import type { Room } from '../runtime/room.js';

export type RoutesBarrierDeps = Pick<Room, 'shards' | 'clock' | 'now' | 'release'>;

interface Waiting {
  readonly version: number;
  readonly pass: () => void;
}

/** How soon a shard that has not answered is told again. */
const AGAIN_MS = 1_000;

export class RoutesBarrier {
  readonly #deps: RoutesBarrierDeps;
  /** Above those of an earlier life of this actor, which began at its own time. */
  #version = 0;
  /** By shard: up to which version it has settled. */
  readonly #settled: number[];
  #waiting: Waiting[] = [];
  #again: TimerHandle | undefined;

  constructor(deps: RoutesBarrierDeps) {
    this.#deps = deps;
    this.#settled = Array.from({ length: deps.shards }, () => 0);
  }

  /** Called when the change is committed; resolves when every shard routes by it. */
  pass(): Promise<void> {
    this.#version = Math.max(this.#version + 1, Math.floor(this.#deps.now()));
    const version = this.#version;
    this.#settled.forEach((_settled, shard) => {
      this.#tell(shard);
    });
    this.#again ??= this.#tellLater();
    return new Promise((pass) => {
      this.#waiting.push({ version, pass });
    });
  }

  /** A shard routes by what was committed when it was told of this version, or by newer rows. */
  settled(version: number, shard: number): void {
    if (version > (this.#settled[shard] ?? version)) this.#settled[shard] = version;
    const reached = Math.min(...this.#settled);
    const passing = this.#waiting.filter((waiting) => waiting.version <= reached);
    if (passing.length === 0) return;
    this.#waiting = this.#waiting.filter((waiting) => waiting.version > reached);
    for (const { pass } of passing) pass();
  }

  /** It was replaced, and its predecessor may not have heard. */
  shardBack(shard: number): void {
    if (!this.#hasSettled(shard)) this.#tell(shard);
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#again);
  }

  #hasSettled(shard: number): boolean {
    return this.#settled[shard] === this.#version;
  }

  #tellLater(): TimerHandle {
    return this.#deps.clock.setTimeout(() => {
      const isPassed = this.#settled.every((_settled, shard) => this.#hasSettled(shard));
      this.#again = isPassed ? undefined : this.#tellLater();
      this.#settled.forEach((_settled, shard) => {
        this.shardBack(shard);
      });
    }, AGAIN_MS);
  }

  #tell(shard: number): void {
    const message = { kind: 'routes.read', version: this.#version } as const;
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }
}
