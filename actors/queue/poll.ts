/** One poll of a worker, from its arrival to its answer. Plain data. */

import type { UnixMs } from '../../src/core/time.js';
import type { ReadyTask } from './ready-tasks.js';

/** What the worker asks for. */
export interface PollRequest {
  readonly request: number;
  /** '' serves all tenants. */
  readonly tenant: string;
  readonly worker: string;
  /** '' takes the tasks of every queue name and of none. */
  readonly queue: string;
  readonly limit: number;
  /** Whether the worker is given the secrets that its tasks name. */
  readonly maySeeSecrets?: true | undefined;
  /** When a poll that found nothing is answered `[]`; now or earlier: at once. */
  readonly until: UnixMs;
}

export interface Poll extends Omit<PollRequest, 'until'> {
  until: UnixMs;
  /** Numbers the polls of a queue in order of arrival, and names the poll in its claims. */
  number: number;
  /** The client is gone: what is claimed for it is given back. */
  isAborted: boolean;
  /** Claims that are not settled. */
  openClaims: number;
  /** In the order in which they were committed, which across shards is any order. */
  claimed: Claimed[];
  /** Of the records in `claimed`. */
  bytes: number;
}

export interface Claimed {
  readonly task: ReadyTask;
  readonly epoch: number;
  /** The wire record as JSON text. */
  readonly record: string;
}

export function newPoll(asked: PollRequest): Poll {
  const { request, tenant, worker, queue, limit, maySeeSecrets, until } = asked;
  return {
    // One by one: spread, they take ten microseconds.
    request,
    tenant,
    worker,
    queue,
    limit,
    maySeeSecrets,
    until,
    number: 0,
    isAborted: false,
    openClaims: 0,
    claimed: [],
    bytes: 0,
  };
}
