/**
 * What a room of a shard may have: what it does with requests, messages, effects and timers, and with what happens
 * to the shard as a whole. The shard goes through its rooms in the order of their list (`actors/shard/rooms.ts`).
 */

import type { UnixMs } from '../../src/base/time.js';
import type { Operations } from './operation.js';
import type { PeerMessage, ReadyHint } from './protocol.js';
import type { Timer } from './timer.js';
import type { Effect } from './turn.js';

/** Of the members of a union, what is done with each, by its kind. */
type Takers<Union extends { readonly kind: string }> = {
  readonly [Kind in Union['kind']]?: (taken: Extract<Union, { kind: Kind }>) => void;
};

/** What is done with messages of peers, or of the shard to itself. */
export type Messages = Takers<PeerMessage>;

/** What is done with effects of units that are committed. */
export type Effects = Takers<Effect>;

/** What is done when timers are due. */
export type Timers = Takers<Timer>;

export interface Room {
  /** What it consists of; undefined: what only the first shard has. They come before the room itself. */
  readonly parts?: readonly (Room | undefined)[];
  /** Each operation, and each kind of the others, has one room. */
  readonly operations?: Operations | undefined;
  readonly messages?: Messages;
  readonly effects?: Effects;
  readonly timers?: Timers;
  /** Reads what has to be known before anything is created or ends; rejects when the rows cannot be read. */
  prepare?(): Promise<void>;
  /** Takes up what the tables say. */
  start?(): void;
  /** At the end of every turn. */
  endTurn?(): void;
  /** The engine stops: nobody waits any longer. What is asked from now on is still served until `stop`. */
  drain?(): void;
  stop?(): void;
  /** The client of the request went away. */
  requestAborted?(request: number): void;
  /** A unit of the instance was committed, or its actor was lost with units under way. */
  instanceChanged?(instance: string): void;
  /** The task waits for a worker as soon as its unit is committed. */
  taskDecided?(task: ReadyHint): void;
  /** A peer is gone; told at once, and before anything is asked of the one that replaces it. */
  peerLost?(shard: number): void;
  /** It was replaced: what it had been asked has an unknown outcome, and its hints may be lost. */
  peerBack?(shard: number): void;
  /** Rows can be trusted again; what became of the units that were under way is not known. */
  writerReady?(): void;
  /** Called before there is a writer: audit entries get no earlier time. */
  stampFrom?(at: UnixMs): void;
  /** @param jumpMs how far the clock has jumped, ahead or back; 0 when it only runs on */
  clockSet?(jumpMs: number): void;
  /** The tenant is about to leave this cell: what is counted of it is told while it can be. */
  tenantLeaves?(tenant: string): void;
  /** This cell has no say of the tenant, or not yet: what is in memory of it goes. */
  tenantSuspended?(tenant: string): void;
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
