/**
 * The paths that requests take through the server, each a row: what is there before, what the load
 * generator does, and how many operations it was. The next path is a row here.
 */

import { createBody, EXTERNAL_HANDLER } from '../fixtures.js';
import type { JobResult } from './job-result.js';
import type { Job } from './jobs.js';
import { postRequest } from './requests.js';
import { type BenchServer, creationsOf, type Variant } from './server.js';
import { EXCHANGE_ROUTE } from './worker-jobs.js';

/** What the jobs of a path may depend on. */
export interface PathSetting {
  readonly server: BenchServer;
  readonly ms: number;
  /** Tasks that wait when a path begins that needs some. */
  readonly backlog: number;
}

export interface Path {
  readonly name: string;
  /** What one operation is. */
  readonly operation: string;
  readonly sequence: Variant;
  /** Whether an operation ends an instance. */
  readonly completes: boolean;
  readonly needsBacklog?: boolean;
  /** A route that not every checkout has: without it the path is skipped. */
  readonly route?: string;
  readonly job: (setting: PathSetting) => Job;
  /** The path that does the same with more requests. */
  readonly insteadOf?: string;
  /** Default: every reply is one. */
  readonly operationsPerReply?: number;
}

export const BATCH_INSTANCES = 500;
export const BATCH_CONNECTIONS = 4;
const EXCHANGE_TASKS = 50;

export const PATHS: readonly Path[] = [
  creations('noop256', 'noop', 256),
  creations('external64', 'external', 64),
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
    sequence: 'noop',
    completes: true,
    operationsPerReply: BATCH_INSTANCES,
    job: ({ server, ms }) => ({
      kind: 'loop',
      port: server.port,
      connections: BATCH_CONNECTIONS,
      requests: [batchRequest(server)],
      status: 201,
      limit: { ms },
    }),
  },
];

export const PATH_NAMES: readonly string[] = PATHS.map(({ name }) => name);

/** @throws Error when there is none */
export function pathNamed(name: string): Path {
  const path = PATHS.find((one) => one.name === name);
  if (path === undefined) throw new Error(`no path ${name}`);
  return path;
}

/** Operations within the measured time, and all that were done. */
export function operationsOf(path: Path, { replies, answered }: JobResult) {
  const each = path.operationsPerReply ?? 1;
  return { timed: replies * each, all: answered * each };
}

export function batchRequest({ sequenceId }: BenchServer, count = BATCH_INSTANCES): string {
  const instances = new Array(count).fill(createBody(sequenceId));
  return postRequest('/instances/batch', JSON.stringify({ instances }));
}

function creations(name: string, sequence: Variant, connections: number): Path {
  return {
    name,
    operation: `creation of ${sequence}, ${connections} connections`,
    sequence,
    completes: sequence === 'noop',
    job: ({ server, ms }) => creationsOf(server, connections, ms),
  };
}

function drained(name: string, workers: number, limit: number): Path {
  return {
    name,
    operation: `task of a backlog, claimed ${limit} at a time and completed, ${workers} workers`,
    sequence: 'external',
    completes: true,
    needsBacklog: true,
    job: ({ server, ms, backlog }) => ({
      kind: 'drain',
      port: server.port,
      workers,
      handler: EXTERNAL_HANDLER,
      limit,
      tasks: backlog,
      ms,
    }),
  };
}

function rounds(name: string, workers: number): Path {
  return {
    name,
    operation: `task created, claimed and completed, ${workers} workers`,
    sequence: 'external',
    completes: true,
    job: ({ server, ms }) => ({
      kind: 'round',
      port: server.port,
      workers,
      handler: EXTERNAL_HANDLER,
      create: server.createRequest,
      ms,
    }),
  };
}

function exchanges(name: string, workers: number): Path {
  return {
    name,
    operation:
      `task of ${EXCHANGE_TASKS} created by a batch, claimed and completed by exchanges, ` +
      `${workers} workers`,
    sequence: 'external',
    completes: true,
    insteadOf: `round${workers}`,
    route: EXCHANGE_ROUTE,
    job: ({ server, ms }) => ({
      kind: 'exchange',
      port: server.port,
      workers,
      handler: EXTERNAL_HANDLER,
      limit: EXCHANGE_TASKS,
      create: batchRequest(server, EXCHANGE_TASKS),
      ms,
    }),
  };
}
