/**
 * Which thread of the server is which. Node's threads all have the same name, so the role of a thread follows from the
 * work that keeps it busy: the main thread is the front, reads of trees occupy the shards, and of the others creations
 * occupy the writer. The rest are Node's helpers: garbage collection, compilation, file system.
 */

import type { Generator } from '../client/generator.js';
import { getRequest } from '../client/requests.js';
import { readThreads, type ThreadTimes, waitsForEvents } from './process-cpu.js';
import type { BenchServer } from './server.js';

export interface ThreadRoles {
  readonly front: number;
  readonly shards: readonly number[];
  readonly writer: number | undefined;
}

/** In milliseconds. Zero where the system does not report it. */
export interface RoleTimes {
  readonly front: number;
  readonly shards: number;
  readonly writer: number;
  readonly helpers: number;
}

const CONNECTIONS = 32;
/** Enough that every shard has some. */
const INSTANCES_READ = 64;

/**
 * Also warms the server up.
 * @param create request of a creation
 * @param probeMs of each of the two loads
 */
export async function findRoles(
  { pid, port, shards }: BenchServer,
  generator: Generator,
  create: string,
  probeMs: number,
): Promise<ThreadRoles> {
  const common = { kind: 'loop', port, connections: CONNECTIONS } as const;
  const beforeCreations = readThreads(pid);
  const created = await generator.run({
    ...common,
    requests: [create],
    status: 201,
    limit: { ms: probeMs },
    keepBodies: INSTANCES_READ,
  });
  const afterCreations = readThreads(pid);
  const ids = created.bodies.map((body) => (JSON.parse(body) as { id: string }).id);
  const beforeReads = readThreads(pid);
  await generator.run({
    ...common,
    requests: ids.map((id) => getRequest(`/instances/${id}/tree`)),
    status: 200,
    limit: { ms: probeMs },
  });
  const afterReads = readThreads(pid);
  // When nothing is asked, threads that run an event loop wait for their sockets and ports; the helpers do not.
  const helpers = [...afterReads.keys()].filter((tid) => !waitsForEvents(pid, tid));
  const busyByReads = busiest(beforeReads, afterReads, [pid, ...helpers]);
  const shardThreads = busyByReads.slice(0, shards);
  const busyByCreations = busiest(beforeCreations, afterCreations, [
    pid,
    ...shardThreads,
    ...helpers,
  ]);
  return { front: pid, shards: shardThreads, writer: busyByCreations[0] };
}

/** @returns what each role has worked between two readings */
export function cpuByRole(roles: ThreadRoles, before: ThreadTimes, after: ThreadTimes): RoleTimes {
  const ms = (tid: number | undefined) => spent(before, after, tid);
  const sum = (tids: Iterable<number>) => [...tids].reduce((total, tid) => total + ms(tid), 0);
  const front = ms(roles.front);
  const shards = sum(roles.shards);
  const writer = ms(roles.writer);
  return {
    front,
    shards,
    writer,
    helpers: Math.max(0, sum(after.keys()) - front - shards - writer),
  };
}

/** The threads that worked meanwhile, the busiest first. */
function busiest(before: ThreadTimes, after: ThreadTimes, except: readonly number[]): number[] {
  return [...after.keys()]
    .filter((tid) => !except.includes(tid))
    .sort((a, b) => spent(before, after, b) - spent(before, after, a));
}

function spent(before: ThreadTimes, after: ThreadTimes, tid: number | undefined): number {
  return tid === undefined ? 0 : (after.get(tid) ?? 0) - (before.get(tid) ?? 0);
}
