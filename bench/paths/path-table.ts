/** The paths that requests take through the server, each a row: what waits before, and the load. */

import {
  createBody,
  EVENT_NAME,
  EVENT_SEQUENCE,
  EXTERNAL_HANDLER,
  EXTERNAL_SEQUENCE,
  NOOP_SEQUENCE,
  ORDER,
} from '../base/fixtures.js';
import type { Load } from '../client/loads.js';
import { batchRequests } from '../client/requests.js';

/** What the load of a path may depend on. */
export interface PathSetting {
  readonly port: number;
  readonly sequenceId: string;
  /** `POST /instances` of that sequence. */
  readonly create: string;
  readonly ms: number;
  /** Instances that wait when a path begins that needs some, */
  readonly backlog: number;
  /** and the number of the first one. */
  readonly first: number;
}

export interface Path {
  readonly name: string;
  /** What one operation is. */
  readonly operation: string;
  readonly sequence: object;
  /** Whether an operation ends an instance. */
  readonly completes: boolean;
  /** Operations take instances that wait already. */
  readonly needsBacklog?: boolean;
  readonly load: (setting: PathSetting) => Load;
  /** Default: every reply is one. */
  readonly operationsPerReply?: number;
}

export const BATCH_INSTANCES = 500;
const BATCH_CONNECTIONS = 4;
const EXCHANGE_TASKS = 50;
const WORKER = { sequence: EXTERNAL_SEQUENCE, completes: true } as const;

export const PATHS: readonly Path[] = [
  creations('noop64', 64, true),
  creations('noop256', 256, true),
  creations('external64', 64, false),
  creations('external256', 256, false),
  drained('claim16', 16, 1),
  drained('claim64', 64, 1),
  drained('claim16x50', 16, 50),
  drained('claim64x50', 64, 50),
  rounds('round16', 16),
  rounds('round64', 64),
  exchanges('exchange16', 16),
  exchanges('exchange64', 64),
  {
    ...WORKER,
    name: 'event16',
    operation: 'event that wakes an instance, whose task is claimed and completed, 16 workers',
    sequence: EVENT_SEQUENCE,
    needsBacklog: true,
    load: ({ port, ms, backlog, first }) => {
      const worker = { port, workers: 16, handler: EXTERNAL_HANDLER, ms };
      return { kind: 'event', ...worker, eventName: EVENT_NAME, first, events: backlog };
    },
  },
  {
    name: 'batch500',
    operation: `instance of a batch of ${BATCH_INSTANCES}, ${BATCH_CONNECTIONS} connections`,
    sequence: NOOP_SEQUENCE,
    completes: true,
    operationsPerReply: BATCH_INSTANCES,
    load: ({ port, sequenceId, ms }) => ({
      kind: 'loop',
      port,
      connections: BATCH_CONNECTIONS,
      requests: batchesOf(sequenceId, BATCH_INSTANCES),
      status: 201,
      limit: { ms },
    }),
  },
];

/** As many batches as that many instances take, each of which has its number in its context. */
export function batchesOf(sequenceId: string, count: number, each = BATCH_INSTANCES, first = 0) {
  const body = createBody(sequenceId);
  return batchRequests(count, each, (n) => ({
    ...body,
    context: { data: { ...ORDER, n: first + n } },
  }));
}

function creations(name: string, connections: number, completes: boolean): Path {
  return {
    name,
    operation: `creation that ${completes ? 'completes' : 'waits for a worker'}, ${connections} connections`,
    sequence: completes ? NOOP_SEQUENCE : EXTERNAL_SEQUENCE,
    completes,
    load: ({ port, create, ms }) => ({
      kind: 'loop',
      port,
      connections,
      requests: [create],
      status: 201,
      limit: { ms },
    }),
  };
}

function drained(name: string, workers: number, limit: number): Path {
  return {
    ...WORKER,
    name,
    operation: `task of a backlog, claimed ${limit} at a time and completed, ${workers} workers`,
    needsBacklog: true,
    load: ({ port, ms, backlog }) => {
      const worker = { port, workers, handler: EXTERNAL_HANDLER, ms };
      return { kind: 'drain', ...worker, limit, tasks: backlog };
    },
  };
}

function rounds(name: string, workers: number): Path {
  return {
    ...WORKER,
    name,
    operation: `task created, claimed and completed, ${workers} workers`,
    load: ({ port, create, ms }) => {
      return { kind: 'round', port, workers, handler: EXTERNAL_HANDLER, create, ms };
    },
  };
}

function exchanges(name: string, workers: number): Path {
  return {
    ...WORKER,
    name,
    operation: `the same in batches of ${EXCHANGE_TASKS} and by exchanges, ${workers} workers`,
    load: ({ port, sequenceId, ms }) => {
      const [create] = batchesOf(sequenceId, EXCHANGE_TASKS);
      const worker = { port, workers, handler: EXTERNAL_HANDLER, ms };
      return { kind: 'exchange', ...worker, limit: EXCHANGE_TASKS, create: create! };
    },
  };
}
