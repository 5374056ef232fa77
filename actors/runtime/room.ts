/**
 * A room of a shard: its handlers of requests, messages, effects and timers, and of events of the shard as
 * a whole. The shard calls its rooms in the order of their list (`actors/shard/rooms.ts`).
 */

import type { UnixMs } from '../../src/base/time.js';
import type { Operations } from './operation.js';
import type { PeerMessage, ReadyHint } from './protocol.js';
import type { Timer } from './timer.js';
import type { Effect } from './turn.js';

/** A handler for each member of a union, by its kind. */
type Takers<Union extends { readonly kind: string }> = {
  readonly [Kind in Union['kind']]?: (taken: Extract<Union, { kind: Kind }>) => void;
};

/** Handlers of messages of peers, or of the shard to itself. */
export type Messages = Takers<PeerMessage>;

export type Effects = Takers<Effect>;

export type Timers = Takers<Timer>;

export interface Room {
  /** Its parts; undefined ones exist on the first shard only. They come before the room itself. */
  readonly parts?: readonly (Room | undefined)[];
  /** Each operation, and each kind of the others, has one room. */
  readonly operations?: Operations | undefined;
  readonly messages?: Messages;
  readonly effects?: Effects;
  readonly timers?: Timers;
  /** Reads what must be known before anything is created or ends. Rejects without a database. */
  prepare?(): Promise<void>;
  /** Resumes what the tables have. */
  start?(): void;
  endTurn?(): void;
  /** The engine stops: waiting requests are answered. New requests are still served until `stop`. */
  drain?(): void;
  stop?(): void;
  requestAborted?(request: number): void;
  /** A unit of the instance was committed, or its actor was lost with units in flight. */
  instanceChanged?(instance: string): void;
  /** The task waits for a worker as soon as its unit is committed. */
  taskDecided?(task: ReadyHint): void;
  /** A peer is gone; called before anything is sent to its replacement. */
  peerLost?(shard: number): void;
  /** It was replaced: the outcome of requests to it is unknown, and its hints may be lost. */
  peerBack?(shard: number): void;
  /** Rows are current again; the outcome of units in flight is unknown. */
  writerReady?(): void;
  /** Called before there is a writer: audit entries get no earlier time. */
  stampFrom?(at: UnixMs): void;
  /** @param jumpMs how far the clock has jumped, ahead or back; 0 when it only drifts */
  clockSet?(jumpMs: number): void;
  /** The tenant is about to leave this cell: its counts are reported while they can be. */
  tenantLeaves?(tenant: string): void;
  /** The tenant is suspended: its state leaves memory. */
  tenantSuspended?(tenant: string): void;
  /**
   * The tenant moves to this cell, and is held until all shards have admitted it: cached state may be
   * stale.
   * @param stampsFrom audit entries get no earlier time
   */
  tenantComes?(tenant: string, stampsFrom: UnixMs): Promise<void> | void;
  /** The tenant has rows without hints. */
  tenantBack?(tenant: string): void;
  /** The sequence and its instances are being deleted. */
  sequenceEvicted?(sequence: string): void;
}
