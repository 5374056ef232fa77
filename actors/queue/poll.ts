/** One poll of a worker, from its arrival to its answer. Plain data. */

import type { UnixMs } from '../../src/base/time.js';
import type { TaskClaim } from '../runtime/protocol.js';
import type { QueueActor } from './queue.js';
import type { ReadyTask } from './ready-tasks.js';
import type { Window } from './window.js';

/** What the worker asks for. */
export interface PollRequest {
  /** Of the front thread: what its client ends when it goes away. */
  readonly request: number;
  /** '' serves all tenants. */
  readonly tenant: string;
  readonly worker: string;
  readonly handlers: readonly string[];
  /** '' takes the tasks of every queue name and of none. */
  readonly queues: readonly string[];
  readonly limit: number;
  /** Whether the worker is given the secrets that its tasks name. */
  readonly maySeeSecrets?: true | undefined;
  /** When a poll that found nothing is answered with nothing; now or earlier: at once. */
  readonly until: UnixMs;
  /** The shard that asks for it; undefined: this one. */
  readonly asker?: number | undefined;
  /** Called once, unless the client goes away before. */
  readonly answer: (claimed: readonly Claimed[]) => void;
}

export interface Poll extends Omit<PollRequest, 'until'> {
  until: UnixMs;
  /** Numbers the polls of a shard in order of arrival, and names the poll in its claims. */
  number: number;
  /** Where it takes tasks: one for each of its handlers and queue names. */
  places: readonly Place[];
  /** Gives back its place among those that wait; undefined: it does not wait. */
  leave: (() => void) | undefined;
  /** The client is gone: what is claimed for it is given back. */
  isAborted: boolean;
  /** Claims that are not settled. */
  openClaims: number;
  /** In the order in which they were committed, which across shards is any order. */
  claimed: Claimed[];
  /** Of the records in `claimed`. */
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

/** Its number and its places are those of its turn, see `Queues`. */
export function newPoll(asked: PollRequest): Poll {
  const { request, tenant, worker, handlers, queues, limit, maySeeSecrets, until, asker } = asked;
  return {
    // One by one: spread, they take ten microseconds.
    request,
    tenant,
    worker,
    handlers,
    queues,
    limit,
    maySeeSecrets,
    until,
    asker,
    answer: asked.answer,
    number: 0,
    places: [],
    leave: undefined,
    isAborted: false,
    openClaims: 0,
    claimed: [],
    bytes: 0,
  };
}

/** The records of tasks as the text of one array. */
export function arrayOf(claimed: readonly { readonly record: string }[]): string {
  return `[${claimed.map(({ record }) => record).join(',')}]`;
}

export function claimOf({ task, epoch }: Claimed): TaskClaim {
  return { task: task.id, epoch };
}
