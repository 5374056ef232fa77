/** One poll of a worker, from its arrival to its response. Plain data. */

import type { UnixMs } from '../../src/base/time.js';
import type { TaskClaim } from '../runtime/protocol.js';
import type { QueueActor } from './queue.js';
import type { ReadyTask, Window } from './window.js';

export interface PollRequest {
  /** The request on the front thread; it ends when the client disconnects. */
  readonly request: number;
  /** '' serves all tenants. */
  readonly tenant: string;
  readonly worker: string;
  /** Of the worker's program. */
  readonly version: string | null;
  readonly handlers: readonly string[];
  /** '' takes the tasks of every queue name and of none. */
  readonly queues: readonly string[];
  readonly limit: number;
  /** Whether the worker gets the secrets that its tasks name. */
  readonly maySeeSecrets?: true | undefined;
  /** When an empty poll ends; not in the future: at once. */
  readonly until: UnixMs;
  /** The shard that sent it; undefined: this one. */
  readonly asker?: number | undefined;
  /** Called once, unless the client disconnects before. */
  readonly answer: (claimed: readonly Claimed[]) => void;
}

export interface Poll {
  readonly requested: PollRequest;
  /** Earlier than requested when its wait is ended. */
  until: UnixMs;
  /** Increases in order of arrival, and identifies the poll in its claims. */
  number: number;
  /** One for each of its handlers and queue names. */
  places: readonly Place[];
  /** Releases its slot among the waiting polls; undefined while it does not wait. */
  leave: (() => void) | undefined;
  /** The client has disconnected: claims are given back. */
  isAborted: boolean;
  /** Unsettled claims. */
  openClaims: number;
  /** In the order of their commits, which is arbitrary across shards. */
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

/** `Queues` sets number and places when it serves the poll. */
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
