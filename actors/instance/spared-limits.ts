/**
 * Time limits of tasks that run out while they say nothing (docs/reference/steps.md): what a worker would have
 * reported could not arrive, or nobody was offered the task. The others are over when their time is.
 */

import { LIMITS } from '../../src/base/limits.js';
import { msOfTime, type UnixMs } from '../../src/base/time.js';
import type { LiveInstance } from './live-instance.js';
import type { TaskStep } from './memory.js';
import { offersTasks } from './record.js';
import type { WorkerTaskRecord } from './worker-task.js';

/**
 * Until when the limit of the step's task is put off; undefined: it is over.
 *
 * @param queueTimeoutMs what counts the wait for a worker; null: nothing does
 */
export function extendedUntil(
  actor: LiveInstance,
  step: TaskStep,
  queueTimeoutMs: number | null,
): UnixMs | undefined {
  const task = actor.tasks.lastOf(step);
  if (task === undefined) return undefined;
  const unheard = unheardUntil(actor, task);
  if (unheard !== undefined || task.state !== 'pending') return unheard;
  if (queueTimeoutMs === null || offersTasks(actor.record)) return undefined;
  // It has its time from when it is offered again.
  const { h } = actor.record.snapshot.execution;
  return Math.max(h ?? 0, actor.env.now()) + queueTimeoutMs;
}

/** What began before the end of an outage has a while behind it, in which workers say what they could not. */
function unheardUntil(
  { env }: LiveInstance,
  { claimed_at, created_at }: WorkerTaskRecord,
): UnixMs | undefined {
  const end = env.outageEnd();
  if (msOfTime(claimed_at ?? created_at) >= end) return undefined;
  const until = end + Math.min(env.workerStaleMs, LIMITS.reportGraceMs);
  return until > env.now() ? until : undefined;
}
