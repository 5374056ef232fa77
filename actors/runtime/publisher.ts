/**
 * Publishes changes of rows to the shards that keep replicas of them (`replica.ts`). A publication resolves when every
 * shard has acknowledged that it read the change, so that a caller answered afterwards finds the change on every shard.
 * Missing acknowledgements are requested again every second, and a replaced shard is notified immediately.
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

const RETRY_MS = 1_000;

export class Publisher<Change = void> implements Room {
  readonly #deps: PublisherDeps;
  readonly #everything: Change;
  readonly #message: (version: number, changes: readonly Change[]) => PeerMessage;
  /** Starts from the time, so that it is above the versions of an earlier owner. */
  #version = 0;
  /** The version that each shard has acknowledged. */
  readonly #settled: number[];
  #waiting: Waiting<Change>[] = [];
  #retry: TimerHandle | undefined;

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

  /** Called when the change is committed; resolves when every shard has read it. */
  publish(change: Change): Promise<void> {
    this.#version = Math.max(this.#version + 1, Math.floor(this.#deps.now()));
    const version = this.#version;
    return new Promise((pass) => {
      this.#waiting.push({ version, change, pass });
      for (const shard of this.#settled.keys()) this.#notify(shard);
      this.#retry ??= this.#notifyLater();
    });
  }

  /** The shard has read everything that was committed before this version was sent. */
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

  /** The predecessor of the shard may not have received the change. */
  peerBack(shard: number): void {
    if (this.#settled[shard] !== this.#version) this.#notify(shard);
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#retry);
  }

  #notifyLater(): TimerHandle {
    return this.#deps.clock.setTimeout(() => {
      const isPassed = this.#settled.every((version) => version === this.#version);
      this.#retry = isPassed ? undefined : this.#notifyLater();
      for (const shard of this.#settled.keys()) this.peerBack(shard);
    }, RETRY_MS);
  }

  #notify(shard: number): void {
    const settled = this.#settled[shard] ?? 0;
    const changes = this.#waiting.flatMap(({ version, change }) =>
      version > settled ? [change] : [],
    );
    const message = this.#message(this.#version, changes);
    this.#deps.release([{ kind: 'peer', shard, message }]);
  }
}
