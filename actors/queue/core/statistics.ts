/** Combines counts from the database: queues with their workers, and outcomes by version. */

import type { QueueInfo, ReleasePoint } from '../../../schema/statistics.js';

export type QueueTasks = Omit<QueueInfo, 'workers' | 'open_polls'>;

/** Queue '': any queue or none. */
interface PolledQueue {
  readonly handler: string;
  readonly queue: string;
}

export type OpenPolls = PolledQueue & { readonly polls: number };
export type QueueServers = PolledQueue & { readonly workers: readonly string[] };

/** Queues that have tasks or are polled, sorted by handler and queue. */
export function queuesOf(
  tasks: readonly QueueTasks[],
  servers: readonly QueueServers[],
  waiting: readonly OpenPolls[],
): QueueInfo[] {
  const known = new Map<string, QueueTasks>();
  for (const { handler, queue } of [...servers, ...waiting]) {
    const none = { waiting: 0, claimed: 0, oldest_waiting_since: null };
    known.set(keyOf(handler, queue || null), { handler, queue: queue || null, ...none });
  }
  for (const { handler, queue, waiting, claimed, oldest_waiting_since } of tasks) {
    const open = { waiting, claimed, oldest_waiting_since };
    known.set(keyOf(handler, queue), { handler, queue, ...open });
  }
  const byPlace = new Map(servers.map((it) => [keyOf(it.handler, it.queue), it.workers]));
  const polls = new Map<string, number>();
  for (const it of waiting) {
    const key = keyOf(it.handler, it.queue);
    polls.set(key, (polls.get(key) ?? 0) + it.polls);
  }
  const queues = [...known.values()].map((queue) => {
    const [all, own] = [keyOf(queue.handler, ''), keyOf(queue.handler, queue.queue ?? '')];
    const workers = new Set([...(byPlace.get(all) ?? []), ...(byPlace.get(own) ?? [])]);
    const ofThis = own === all ? 0 : (polls.get(own) ?? 0);
    return { ...queue, workers: workers.size, open_polls: (polls.get(all) ?? 0) + ofThis };
  });
  return queues.sort(
    (a, b) => compare(a.handler, b.handler) || compare(a.queue ?? '', b.queue ?? ''),
  );
}

function keyOf(handler: string, queue: string | null): string {
  return JSON.stringify([handler, queue]);
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** Ended instances of one version, by the interval of their creation. */
export interface Outcomes extends Pick<ReleasePoint, 'at' | 'ended' | 'failed' | 'cancelled'> {
  readonly sequence_id: string;
  readonly p50: number;
  readonly p95: number;
}

export function releasePoints(rows: readonly Outcomes[], candidate: string): ReleasePoint[] {
  const ended = new Map<string, number>();
  for (const row of rows) ended.set(row.at, (ended.get(row.at) ?? 0) + row.ended);
  return rows.map((row) => ({
    at: row.at,
    variant: row.sequence_id === candidate ? 'candidate' : 'baseline',
    ended: row.ended,
    failed: row.failed,
    cancelled: row.cancelled,
    error_rate: row.failed / row.ended,
    cancel_rate: row.cancelled / row.ended,
    duration_p50_ms: row.p50,
    duration_p95_ms: row.p95,
    share: row.ended / (ended.get(row.at) as number),
  }));
}
