/**
 * A room of a shard: its handlers of requests, messages, effects and timers, and of events of the shard.
 * The shard calls its rooms in the order of `actors/shard/rooms.ts`.
 */

import type { UnixMs } from '../../src/base/time.js';
import type { Operations } from './operation.js';
import type { PeerMessage, ReadyHint } from './protocol.js';
import type { Timer } from './timer.js';
import type { Effect } from './turn.js';

type Takers<Union extends { readonly kind: string }> = {
  readonly [Kind in Union['kind']]?: (taken: Extract<Union, { kind: Kind }>) => void;
};

export type Messages = Takers<PeerMessage>;

export type Effects = Takers<Effect>;

export type Timers = Takers<Timer>;

export interface Room {
  /** Called before the room itself; undefined parts exist on the first shard only. */
  readonly parts?: readonly (Room | undefined)[];
  /** One room serves each operation, and each kind of message, effect and timer. */
  readonly operations?: Operations | undefined;
  readonly messages?: Messages;
  readonly effects?: Effects;
  readonly timers?: Timers;
  /** Reads what the creation and the end of instances depend on. Rejects without a database. */
  prepare?(): Promise<void>;
  start?(): void;
  endTurn?(): void;
  /** The engine stops: answers waiting requests. New ones are still served until `stop`. */
  drain?(): void;
  stop?(): void;
  /** Work that may still end before the engine stops. */
  readonly isBusy?: boolean;
  requestAborted?(request: number): void;
  /** A unit of the instance was committed, or its actor was lost with units in flight. */
  instanceChanged?(instance: string): void;
  /** The task waits for a worker once its unit is committed. */
  taskDecided?(task: ReadyHint): void;
  /** A peer died; called before anything is sent to its replacement. */
  peerLost?(shard: number): void;
  /** The peer was replaced: the outcome of requests to it is unknown, and its hints may be lost. */
  peerBack?(shard: number): void;
  /** Rows are current again; the outcome of units that were in flight is unknown. */
  writerReady?(): void;
  /** Audit entries get no earlier time. Called before there is a writer. */
  stampFrom?(at: UnixMs): void;
  /** @param jumpMs how far the clock has jumped, ahead or back; 0 when it only drifts */
  clockSet?(jumpMs: number): void;
  /** The tenant is about to leave this cell: last chance to report its counts. */
  tenantLeaves?(tenant: string): void;
  tenantSuspended?(tenant: string): void;
  /** Cached state of the tenant may be stale. @param stampsFrom audit entries get no earlier time */
  tenantComes?(tenant: string, stampsFrom: UnixMs): Promise<void> | void;
  /** The tenant has rows without hints. */
  tenantBack?(tenant: string): void;
  sequenceEvicted?(sequence: string): void;
}
