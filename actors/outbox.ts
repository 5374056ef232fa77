/**
 * What a turn of a shard tells others: hints to peers, units to the writer, replies to the front. Each
 * destination gets one post at the end of the turn.
 */

import { unavailable } from '../src/errors.js';
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
  readonly ports: ShardPorts;
  readonly commits: CommitLog;
  /** Asks for a turn, at whose end `flush` is called. */
  readonly wakeShard: () => void;
}

const RESTARTING = unavailable('ENG_SHARD_RESTARTING', 'a part of the engine is restarting');

export class Outbox {
  /** Units stay here while there is no writer to take them. */
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

  /** A peer died: until it is replaced, what is handed on to it would be answered by nobody. */
  peerDied(shard: number): void {
    this.#awayPeers.add(shard);
  }

  peerRestarted(shard: number): void {
    this.#awayPeers.delete(shard);
  }

  /** To another shard. */
  hint(shard: number, message: PeerMessage): void {
    const isRequest = message[0] === 'create' || message[0] === 'poll';
    if (isRequest && this.#awayPeers.has(shard)) {
      this.reply([message[1], 0, RESTARTING.toData()]);
      return;
    }
    const messages = this.#hints.get(shard);
    if (messages === undefined) this.#hints.set(shard, [message]);
    else messages.push(message);
    this.#deps.wakeShard();
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
    if (this.#replies.length > 0) {
      ports.toFront({ kind: 'replies', replies: this.#replies });
      this.#replies = [];
    }
  }
}
