/** The entry of the load generator's thread: one job at a time, its result or its error back. */

import { parentPort } from 'node:worker_threads';
import type { JobResult } from './job-result.js';
import { type Job, runJob } from './jobs.js';

export type GeneratorAnswer =
  | { readonly ok: true; readonly result: JobResult }
  | { readonly ok: false; readonly message: string };

parentPort?.on('message', (job: Job) => {
  runJob(job).then(
    (result) => answer({ ok: true, result }),
    (error: unknown) =>
      answer({ ok: false, message: error instanceof Error ? error.message : String(error) }),
  );
});

function answer(message: GeneratorAnswer): void {
  parentPort?.postMessage(message);
}
