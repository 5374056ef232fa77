/** All jobs, in the order in which they run. The next one is a line here. */

import type { Job } from './job.js';
import { cronJob } from './load/cron.js';
import { idleJob } from './load/idle.js';
import { keyedJobs } from './load/keyed.js';
import { latenessJob } from './load/lateness.js';
import { pendingJob } from './load/pending.js';
import { pushJob } from './load/push.js';
import { releaseJob } from './load/release.js';
import { scaleJob } from './load/scale.js';
import { waitJob } from './load/wait.js';
import { workerJob } from './load/worker.js';
import { microJob } from './micro/job.js';
import { contextJob, minuteJob } from './paths/checks.js';
import { pathJobs } from './paths/paths.js';
import { peerJobs } from './peers/job.js';
import { pressureJobs } from './pressure/job.js';
import { snapshotJob } from './pressure/snapshot.js';

export const JOBS: readonly Job[] = [
  microJob,
  idleJob,
  cronJob,
  latenessJob,
  workerJob,
  pushJob,
  releaseJob,
  ...keyedJobs,
  waitJob,
  scaleJob,
  pendingJob,
  ...pathJobs,
  contextJob,
  minuteJob,
  ...peerJobs,
  ...pressureJobs,
  snapshotJob,
];
