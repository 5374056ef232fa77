/** The entry of the threads for heavy work: one Piscina task per job. */

import { getPriority, setPriority } from 'node:os';
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { CONTINUITY_JOBS } from '../../actors/continuity/jobs.js';
import { COUNT_BLOCKS } from '../../actors/limits/jobs.js';
import { RELEASE_JOBS } from '../../actors/release/jobs.js';
import type { Job, JobAnswer, JobBegun, JobCall } from '../base/offload.js';
import { JUDGE_BODY } from '../http/body-jobs.js';

/** With few cores the shards have priority, and a job still gets a quarter of a core. */
const NICENESS = 5;
// Linux has a priority per thread; elsewhere it would be that of the process.
if (process.platform === 'linux') setPriority(Math.min(19, getPriority() + NICENESS));

/** Every job loads its room when it is called. */
const JOBS: ReadonlyMap<string, Job<never, unknown>> = new Map(
  [JUDGE_BODY, COUNT_BLOCKS, ...CONTINUITY_JOBS, ...RELEASE_JOBS].map((job) => [job.name, job]),
);

export default async function carryOut({ id, name, port }: JobCall): Promise<void> {
  const job = JOBS.get(name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  const work = await job.load();
  parentPort?.postMessage({ begun: id } satisfies JobBegun);
  port.postMessage(await answerOf(work as (input: unknown) => unknown, port));
  port.close();
}

async function answerOf(work: (input: unknown) => unknown, port: MessagePort): Promise<JobAnswer> {
  try {
    const received = receiveMessageOnPort(port) as { readonly message: unknown } | undefined;
    return { ok: true, value: await work(received?.message) };
  } catch (error) {
    return { ok: false, error };
  }
}
