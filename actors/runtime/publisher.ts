/**
 * How the owner of rows tells the shards that keep replicas of them (`replica.ts`) of a change. Each shard answers
 * when it has taken it in, so that a caller who is answered behind the publication meets nobody who knows only of
 * before. A message may be lost, and a shard may die before its answer: it is told again every second, and its
 * successor at once.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import type { Kernel } from './kernel.js';
import type { PeerMessage } from './protocol.js';

export type PublisherDeps = Pick<Kernel, 'shards' | 'clock' | 'now' | 'release'>;

interface Waiting<Change> {
  readonly version: number;
  readonly change: Change;
  readonly pass: () => void;
}

/** How soon a shard that has not answered is told again. */
const AGAIN_MS = 1_000;

export class Publisher<Change = void> {
  readonly #deps: PublisherDeps;
  readonly #message: (version: number, changes: readonly Change[]) => PeerMessage;
  /** Above those of an earlier life of its owner, which began at its own time. */
  #version = 0;
  /** By shard: up to which version it has settled. */
  readonly #settled: number[];
  #waiting: Waiting<Change>[] = [];
  #again: TimerHandle | undefined;

  /** @param message what a shard is told: the latest version, and the changes that it has not settled */
  constructor(
    deps: PublisherDeps,
    message: (version: number, changes: readonly Change[]) => PeerMessage,
  ) {
    this.#deps = deps;
    this.#message = message;
    this.#settled = Array.from({ length: deps.shards }, () => 0);
  }

  /**
   * Called when the change is committed; resolves when every shard knows of it.
   *
   * @param change says what has changed
   */
  publish(change: Change): Promise<void> {
    this.#version = Math.max(this.#version + 1, Math.floor(this.#deps.now()));
    const version = this.#version;
    return new Promise((pass) => {
      this.#waiting.push({ version, change, pass });
      this.#settled.forEach((_settled, shard) => {
        this.#tell(shard);
      });
      this.#again ??= this.#tellLater();
    });
  }

  /** A shard knows what was committed when it was told of this version, and of all before. */
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
    const settled = this.#settled[shard] ?? 0;
    const changes = this.#waiting.flatMap(({ version, change }) =>
      version > settled ? [change] : [],
    );
    const message = this.#message(this.#version, changes);
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }
}
