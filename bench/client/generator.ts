/** The load generator on a thread of its own, so that nothing else in the bench's process delays its clock. */

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { LoadResult } from './clock.js';
import type { GeneratorAnswer } from './generator.thread.js';
import type { Load } from './loads.js';

export class Generator {
  readonly #worker = new Worker(new URL('./generator.thread.js', import.meta.url));

  /** One load at a time. @throws Error when it failed: the message says how */
  async run(load: Load): Promise<LoadResult> {
    this.#worker.postMessage(load);
    const [answer] = (await once(this.#worker, 'message')) as [GeneratorAnswer];
    if (!answer.ok) throw new Error(`${load.kind}: ${answer.message}`);
    return answer.result;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
