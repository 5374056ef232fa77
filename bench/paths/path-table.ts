/** The paths that requests take through the server, each a row: what waits before, and the load. */

import {
  createBody,
  EXTERNAL_HANDLER,
  EXTERNAL_SEQUENCE,
  NOOP_SEQUENCE,
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
  /** Tasks that wait when a path begins that needs some. */
  readonly backlog: number;
}

export interface Path {
  readonly name: string;
  /** What one operation is. */
  readonly operation: string;
  readonly sequence: object;
  /** Whether an operation ends an instance. */
  readonly completes: boolean;
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

/** As many batches as that many instances take. */
export function batchesOf(sequenceId: string, count: number, each = BATCH_INSTANCES) {
  return batchRequests(count, each, () => createBody(sequenceId));
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
