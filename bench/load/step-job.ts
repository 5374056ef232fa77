/**
 * One instance after the other whose steps are done by a worker, on a server that does nothing else: how
 * long from sending a completion to receiving the task of the next step, for which a poll waits already.
 */

import { performance } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import type { HttpConnection } from './http-connection.js';
import type { Measured } from './job-result.js';
import { ask } from './replies.js';
import { Samples } from './samples.js';
import { completion, pollRequest, type Task } from './worker-jobs.js';

export interface StepJob {
  readonly kind: 'step';
  readonly port: number;
  readonly create: string;
  readonly handler: string;
  /** Of each instance. */
  readonly steps: number;
  readonly instances: number;
}

/** One waits with a poll, the other sends what is answered at once. */
export const STEP_CONNECTIONS = 2;

const WORKER = 'worker';
const POLL_WAIT_MS = 10_000;
/** Until a poll that was sent waits in its queue. */
const PARK_MS = 2;

export async function stepThrough(
  job: StepJob,
  [waiting, acting]: readonly HttpConnection[],
): Promise<Measured> {
  const poll = pollRequest({ handler_name: job.handler, worker_id: WORKER, wait_ms: POLL_WAIT_MS });
  const samples = new Samples();
  const nextTask = async (request: string, status: number) => {
    const parked = ask<readonly Task[]>(waiting!, poll, 200);
    await wait(PARK_MS);
    const sentAt = performance.now();
    const taken = parked.then(([task]) => ({ task, ms: performance.now() - sentAt }));
    const [{ task, ms }] = await Promise.all([taken, ask(acting!, request, status)]);
    if (task === undefined) throw new Error(`no task came within ${POLL_WAIT_MS} ms`);
    return { task, ms };
  };
  const startedAt = performance.now();
  for (let at = 0; at < job.instances; at += 1) {
    let { task } = await nextTask(job.create, 201);
    for (let step = 1; step < job.steps; step += 1) {
      const next = await nextTask(completion(task, WORKER, {}), 200);
      samples.add(next.ms);
      ({ task } = next);
    }
    await ask(acting!, completion(task, WORKER, {}), 200);
  }
  const latency = samples.summary();
  const { count } = latency;
  const ms = performance.now() - startedAt;
  return { replies: count, answered: count, ms, latency: { request: latency }, bodies: [] };
}
