/**
 * Publishes changes of rows to the shards that keep replicas of them (`replica.ts`). Each shard
 * acknowledges when it has read the change, so that a caller who is answered after the publication finds
 * the change on every shard. Messages may be lost and shards may die: a missing acknowledgement is
 * requested again every second, and a replaced shard is notified immediately.
 */

import type { TimerHandle } from '../../src/base/clock.js';
import type { Kernel } from './kernel.js';
import type { PeerMessage } from './protocol.js';
import type { Room } from './room.js';

export type PublisherDeps = Pick<Kernel, 'shards' | 'clock' | 'now' | 'release'>;

interface Waiting<Change> {
  readonly version: number;
  readonly change: Change;
  readonly pass: () => void;
}

/** How soon an unacknowledged change is sent again. */
const AGAIN_MS = 1_000;

export class Publisher<Change = void> implements Room {
  readonly #deps: PublisherDeps;
  readonly #everything: Change;
  readonly #message: (version: number, changes: readonly Change[]) => PeerMessage;
  /** Above those of an earlier owner, which started from its own time. */
  #version = 0;
  /** By shard: the version it has acknowledged. */
  readonly #settled: number[];
  #waiting: Waiting<Change>[] = [];
  #again: TimerHandle | undefined;

  /**
   * @param everything stands for every change
   * @param message sent to a shard: the latest version, and the changes that it has not acknowledged
   */
  constructor(
    deps: PublisherDeps,
    everything: Change,
    message: (version: number, changes: readonly Change[]) => PeerMessage,
  ) {
    this.#deps = deps;
    this.#everything = everything;
    this.#message = message;
    this.#settled = Array.from({ length: deps.shards }, () => 0);
  }

  /**
   * Called when the change is committed; resolves when every shard has read it.
   * @param change what has changed
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

  /** A shard has read everything that was committed before this version was sent. */
  settled(version: number, shard: number): void {
    if (version > (this.#settled[shard] ?? version)) this.#settled[shard] = version;
    const reached = Math.min(...this.#settled);
    const passing = this.#waiting.filter((waiting) => waiting.version <= reached);
    if (passing.length === 0) return;
    this.#waiting = this.#waiting.filter((waiting) => waiting.version > reached);
    for (const { pass } of passing) pass();
  }

  /** The last commit of a previous owner may not have been published to every shard. */
  start(): void {
    void this.publish(this.#everything);
  }

  /** It was replaced, and its predecessor may not have received the change. */
  peerBack(shard: number): void {
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
        this.peerBack(shard);
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
