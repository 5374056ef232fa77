/** Every job of the threads for heavy work, of which each room has its own: by its name, as a thread is asked for it. */

import { CONTINUITY_JOBS } from '../../actors/continuity/jobs.js';
import { COUNT_BLOCKS } from '../../actors/limits/jobs.js';
import { RELEASE_JOBS } from '../../actors/release/jobs.js';
import type { Job } from '../base/offload.js';
import { JUDGE_BODY } from '../http/body-jobs.js';

const JOBS: ReadonlyMap<string, Job<never, unknown>> = new Map(
  [JUDGE_BODY, COUNT_BLOCKS, ...CONTINUITY_JOBS, ...RELEASE_JOBS].map((job) => [job.name, job]),
);

export function jobNamed(name: string): Job<never, unknown> {
  const job = JOBS.get(name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  return job;
}
