/** The entry of the threads for heavy work, a Piscina task for each job. */

import { getPriority, setPriority } from 'node:os';
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads';
import type { JobAnswer, JobBegun, JobCall } from '../base/offload.js';
import { jobNamed } from './jobs.js';

/** Where cores are scarce the turns of the others come first, and a job still gets a quarter of a core. */
const NICENESS = 5;
// Linux has a priority for each thread; elsewhere it is that of the process.
if (process.platform === 'linux') setPriority(Math.min(19, getPriority() + NICENESS));

export default async function carryOut({ id, name, port }: JobCall): Promise<void> {
  const work = await jobNamed(name).load();
  parentPort?.postMessage({ begun: id } satisfies JobBegun);
  port.postMessage(answerOf(work as (input: unknown) => unknown, port));
  port.close();
}

function answerOf(work: (input: unknown) => unknown, port: MessagePort): JobAnswer {
  try {
    const received = receiveMessageOnPort(port) as { readonly message: unknown } | undefined;
    return { ok: true, value: work(received?.message) };
  } catch (error) {
    return { ok: false, error };
  }
}
