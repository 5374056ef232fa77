/** One poll of a worker, from its arrival to its response. */

import type { UnixMs } from '../../src/base/time.js';
import type { TaskClaim } from '../runtime/protocol.js';
import type { QueueActor } from './queue.js';
import type { ReadyTask, Window } from './window.js';

export interface PollRequest {
  readonly request: number;
  /** '': all tenants. */
  readonly tenant: string;
  readonly worker: string;
  readonly version: string | null;
  readonly handlers: readonly string[];
  /** '': tasks with any queue name or none. */
  readonly queues: readonly string[];
  readonly limit: number;
  /** The worker receives the secrets that its tasks name. */
  readonly maySeeSecrets?: true | undefined;
  /** Of a worker inside the engine: it takes no slot of waiting polls, and is not listed by its polls. */
  readonly isOwn?: true | undefined;
  /** When an empty poll ends. */
  readonly until: UnixMs;
  /** The shard that sent the poll; undefined: this one. */
  readonly asker?: number | undefined;
  /** Called once, unless the client disconnects first. */
  readonly answer: (claimed: readonly Claimed[]) => void;
}

export interface Poll {
  readonly requested: PollRequest;
  /** Earlier than requested if the wait is ended. */
  until: UnixMs;
  /** Increases with arrival, and identifies the poll in its claims. */
  number: number;
  /** One for each of its handlers and queue names. */
  places: readonly Place[];
  /** Releases the slot of a waiting poll; undefined while it does not wait. */
  leave: (() => void) | undefined;
  /** The client has disconnected, so claims are returned. */
  isAborted: boolean;
  openClaims: number;
  /** In the order of commits, which is arbitrary across shards. */
  claimed: Claimed[];
  bytes: number;
}

export interface Place {
  readonly queue: QueueActor;
  readonly window: Window;
}

export interface Claimed {
  readonly task: ReadyTask;
  readonly epoch: number;
  /** The wire record as JSON text. */
  readonly record: string;
}

/** `Queues` sets the number and the places when it serves the poll. */
export function newPoll(requested: PollRequest): Poll {
  return {
    requested,
    until: requested.until,
    number: 0,
    places: [],
    leave: undefined,
    isAborted: false,
    openClaims: 0,
    claimed: [],
    bytes: 0,
  };
}

export function arrayOf(claimed: readonly { readonly record: string }[]): string {
  return `[${claimed.map(({ record }) => record).join(',')}]`;
}

export function claimOf({ task, epoch }: Claimed): TaskClaim {
  return { task: task.id, epoch };
}
