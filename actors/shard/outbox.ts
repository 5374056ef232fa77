/**
 * Collects what a turn of a shard sends: hints to peers, units to the writer, replies to the front. Each
 * destination gets one post at the end of the turn.
 */

import { RESTARTING } from '../../src/base/errors.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import type { UnitEnvelope } from '../../src/db/units.js';
import { INTERNAL } from '../runtime/commit.js';
import type { PeerMessage, Reply } from '../runtime/protocol.js';
import type { ShardKernel } from './kernel.js';

/** A missing destination drops its posts; its replacement recovers what must not be lost. */
export interface ShardPorts {
  toFront(replies: readonly Reply[]): void;
  toWriter(units: readonly UnitEnvelope[]): void;
  toPeer(shard: number, messages: readonly PeerMessage[]): void;
  /** Takes messages that peers have posted but that are not delivered yet. */
  drainPeers(): PeerMessage[];
}

export interface OutboxDeps extends Pick<ShardKernel, 'commits' | 'log' | 'wakeShard'> {
  readonly ports: ShardPorts;
}

export class Outbox {
  /** While it is set, units wait for a writer. */
  isWriterAway = false;
  readonly #deps: OutboxDeps;
  #replies: Reply[] = [];
  readonly #hints = new Map<number, PeerMessage[]>();
  readonly #awayPeers = new Set<number>();

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  reply(reply: Reply): void {
    this.#replies.push(reply);
    this.#deps.wakeShard();
  }

  /** Until the peer is replaced, a request forwarded to it would not be answered. */
  peerDied(shard: number): void {
    this.#awayPeers.add(shard);
  }

  peerRestarted(shard: number): void {
    this.#awayPeers.delete(shard);
  }

  hint(shard: number, message: PeerMessage): void {
    const request = requestIn(message);
    if (request !== undefined && this.#awayPeers.has(shard)) {
      this.reply({ request, error: RESTARTING.toData() });
      return;
    }
    valueFor(this.#hints, shard, () => []).push(message);
    this.#deps.wakeShard();
  }

  /** Hints are posted before replies: a caller that knows of a change can rely on its hint. */
  flush(): void {
    const { ports, commits } = this.#deps;
    const hints = [...this.#hints];
    this.#hints.clear();
    for (const [shard, messages] of hints) {
      this.#post(() => ports.toPeer(shard, messages));
    }
    if (!this.isWriterAway) {
      const units = commits.take();
      if (units.length > 0) ports.toWriter(units);
    }
    const replies = this.#replies;
    this.#replies = [];
    if (replies.length === 0 || this.#post(() => ports.toFront(replies))) return;
    // A reply cannot be cloned: post them one by one.
    for (const reply of replies) {
      const leaves = this.#post(() => ports.toFront([reply]));
      const defect = { request: reply.request, error: INTERNAL.toData() };
      if (!leaves) ports.toFront([defect]);
    }
  }

  #post(post: () => void): boolean {
    try {
      post();
      return true;
    } catch (error) {
      this.#deps.log.error({ err: error }, 'defect');
      return false;
    }
  }
}

/** The request that the message forwards. */
function requestIn(message: PeerMessage): number | undefined {
  switch (message.kind) {
    case 'create':
    case 'result.ask':
    case 'exchange.results':
    case 'poll.ask':
      return message.request;
    case 'request':
      return message.request.id;
    default:
      return undefined;
  }
}
