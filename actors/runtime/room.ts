/**
 * What a shard tells its rooms of what happens to it as a whole. Each has what concerns it, and the shard goes
 * through all of them in the order of its list.
 */

import type { UnixMs } from '../../src/base/time.js';
import type { PeerMessage } from './protocol.js';
import type { Effect } from './turn.js';

/** By its kind, what is done with a message of a peer, or of the shard to itself. */
export type Messages = {
  readonly [Kind in PeerMessage['kind']]?: (message: Extract<PeerMessage, { kind: Kind }>) => void;
};

/** By its kind, what is done with an effect of a unit that is committed. */
export type Effects = {
  readonly [Kind in Effect['kind']]?: (effect: Extract<Effect, { kind: Kind }>) => void;
};

export interface Room {
  /** Each kind has one room. */
  readonly messages?: Messages;
  readonly effects?: Effects;
  /** Reads what has to be known before anything is created or ends; rejects when the rows cannot be read. */
  prepare?(): Promise<void>;
  /** Takes up what the tables say. */
  start?(): void;
  /** At the end of every turn. */
  endTurn?(): void;
  /** The engine stops: nobody waits any longer. What is asked from now on is still served until `stop`. */
  drain?(): void;
  stop?(): void;
  /** A peer is gone; told at once, and before anything is asked of the one that replaces it. */
  peerLost?(shard: number): void;
  /** It was replaced: what it had been asked has an unknown outcome, and its hints may be lost. */
  peerBack?(shard: number): void;
  /** Rows can be trusted again; what became of the units that were under way is not known. */
  writerReady?(): void;
  /** @param jumpMs how far the clock has jumped, ahead or back; 0 when it only runs on */
  clockSet?(jumpMs: number): void;
  /** The tenant is about to leave this cell: what is counted of it is told while it can be. */
  tenantLeaves?(tenant: string): void;
  /** This cell has no say of the tenant, or not yet: what is in memory of it goes. */
  tenantHeld?(tenant: string): void;
  /**
   * The tenant comes to this cell, and is held until all have done so: what is kept of it may be old.
   *
   * @param stampsFrom audit entries get no earlier time
   */
  tenantComes?(tenant: string, stampsFrom: UnixMs): Promise<void> | void;
  /** Rows of the tenant are there of which nobody has told. */
  tenantBack?(tenant: string): void;
  /** The sequence and its instances are being removed. */
  sequenceEvicted?(sequence: string): void;
}
