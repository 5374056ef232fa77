/**
 * What a turn of a shard tells others: hints to peers, units to the writer, replies and counts to the
 * front. Each destination gets one post at the end of the turn.
 */

import type { Clock, TimerHandle } from '../src/core/clock.js';
import { MetricBuffer } from '../src/metrics.js';
import type { CommitLog } from './commit-log.js';
import type { PeerMessage, PeerPost, Reply, ReplyPost, UnitPost } from './protocol.js';

/** Where a shard's posts go. A destination that is away drops them: hints may be lost, and what is
 * not lost is settled when the destination is replaced. */
export interface ShardPorts {
  toFront(post: ReplyPost): void;
  toWriter(post: UnitPost): void;
  toPeer(shard: number, post: PeerPost): void;
  /** Messages of peers that were posted already but not delivered yet. */
  drainPeers(): PeerPost[];
}

export interface OutboxDeps {
  readonly shard: number;
  readonly clock: Clock;
  readonly ports: ShardPorts;
  readonly commits: CommitLog;
  /** Asks for a turn, at whose end `flush` is called. */
  readonly wakeShard: () => void;
}

/** How often counts are sent to the front, where they are added up. */
const METRICS_EVERY_MS = 250;

export class Outbox {
  readonly metrics = new MetricBuffer();
  /** Units stay here while there is no writer to take them. */
  isWriterAway = false;
  readonly #deps: OutboxDeps;
  #replies: Reply[] = [];
  readonly #hints = new Map<number, PeerMessage[]>();
  #metricsAt = 0;
  #metricsHandle: TimerHandle | undefined;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  reply(reply: Reply): void {
    this.#replies.push(reply);
    this.#deps.wakeShard();
  }

  /** To another shard. */
  hint(shard: number, message: PeerMessage): void {
    const messages = this.#hints.get(shard);
    if (messages === undefined) this.#hints.set(shard, [message]);
    else messages.push(message);
    this.#deps.wakeShard();
  }

  stop(): void {
    this.#deps.clock.clearTimeout(this.#metricsHandle);
  }

  /** Hints leave before replies: whoever is told of a change can rely on its hint being posted. */
  flush(): void {
    const { ports, shard: from, commits } = this.#deps;
    for (const [shard, messages] of this.#hints) {
      ports.toPeer(shard, { kind: 'peer', from, messages });
    }
    this.#hints.clear();
    if (!this.isWriterAway) {
      const units = commits.take();
      if (units.length > 0) ports.toWriter({ kind: 'units', units });
    }
    const metrics = this.#areMetricsDue() ? this.metrics.take() : undefined;
    if (this.#replies.length > 0 || metrics !== undefined) {
      ports.toFront({ kind: 'replies', replies: this.#replies, metrics });
      this.#replies = [];
    }
  }

  /** Counts are sent a few times a second, so that a reply does not wait for their addition. */
  #areMetricsDue(): boolean {
    if (!this.metrics.isDirty) return false;
    const { clock, wakeShard } = this.#deps;
    const now = clock.monotonic();
    if (now - this.#metricsAt >= METRICS_EVERY_MS) {
      this.#metricsAt = now;
      return true;
    }
    this.#metricsHandle ??= clock.setTimeout(() => {
      this.#metricsHandle = undefined;
      wakeShard();
    }, METRICS_EVERY_MS);
    return false;
  }
}
