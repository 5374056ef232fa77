/** All jobs, in the order in which they run. The next one is a line here. */

import type { Job } from './job.js';
import { cronJob } from './load/cron.js';
import { eventsJob } from './load/events.js';
import { idleJob } from './load/idle.js';
import { moveJob } from './load/move.js';
import { neighboursJob } from './load/neighbours.js';
import { proxyJob } from './load/proxy.js';
import { releaseJob } from './load/release.js';
import { timersJob } from './load/timers.js';
import { workerJob } from './load/worker.js';
import { microJob } from './micro/job.js';
import { contextJob, minuteJob } from './paths/checks.js';
import { pathJobs } from './paths/paths.js';
import { peerJobs } from './peers/job.js';
import { pressureJobs } from './pressure/job.js';
import { snapshotJob } from './pressure/snapshot.js';
import { pendingJob } from './scale/pending.js';
import { waitingJob } from './scale/waiting.js';

export const JOBS: readonly Job[] = [
  microJob,
  idleJob,
  neighboursJob,
  cronJob,
  timersJob,
  eventsJob,
  workerJob,
  releaseJob,
  proxyJob,
  moveJob,
  ...pathJobs,
  contextJob,
  minuteJob,
  ...peerJobs,
  ...pressureJobs,
  snapshotJob,
  waitingJob,
  pendingJob,
];
