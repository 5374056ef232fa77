/** Many seeds, one after the other, in a thread of their own. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { SeedsResult, SeedsTask } from './seeds.thread.js';

/** Rejects when the thread dies, which is what a defect in the simulation itself makes of it. */
export async function runSeeds(task: SeedsTask): Promise<SeedsResult> {
  const worker = new Worker(new URL('./seeds.thread.js', import.meta.url), {
    workerData: task,
    // What a run makes is garbage soon: more room for it costs less than looking for what is not.
    resourceLimits: { maxYoungGenerationSizeMb: 64 },
    // Counting what is executed takes time, and after some seeds tells nothing new.
    env: task.isCovered === true ? process.env : { ...process.env, NODE_V8_COVERAGE: '' },
  });
  const ended = once(worker, 'exit');
  const [result] = (await once(worker, 'message')) as [SeedsResult];
  await ended;
  return result;
}

export const seedsFrom = (first: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => first + i);
