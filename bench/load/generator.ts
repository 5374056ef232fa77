/**
 * The load generator on a thread of its own, so that its clock is not held up by what the bench
 * does meanwhile, and its processor time can be told from the rest.
 */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { GeneratorAnswer } from './generator.thread.js';
import type { JobResult } from './job-result.js';
import type { Job } from './jobs.js';

export class Generator {
  readonly #worker = new Worker(new URL('./generator.thread.js', import.meta.url));

  /** One job at a time. @throws Error when the job failed: the message says how */
  async run(job: Job): Promise<JobResult> {
    this.#worker.postMessage(job);
    const [answer] = (await once(this.#worker, 'message')) as [GeneratorAnswer];
    if (!answer.ok) throw new Error(`${job.kind}: ${answer.message}`);
    return answer.result;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
