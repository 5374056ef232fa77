/**
 * A worker process of the library that may be killed at any moment. It enters in a file when a handler begins and when
 * it has had its effect: lines that are there before the process goes on.
 */

import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { Client, Worker } from '../../client/src/index.js';
import { createRandom } from '../chaos/random.js';

export interface WorkerPlan {
  readonly url: string;
  readonly apiKey: string;
  readonly tenant: string;
  readonly handlers: readonly string[];
  readonly leaseMs: number;
  readonly workerId: string;
  readonly seed: number;
  readonly ledger: string;
}

/** What stands in a line of the ledger. */
export interface LedgerLine {
  /** `ready`: the process hears signals from now on; its mark is the id of the worker. */
  readonly kind: 'ready' | 'began' | 'done' | 'threw';
  readonly task: string;
  readonly epoch: number;
  readonly mark: string;
}

const CONCURRENCY = 6;
const WORK_MS_MAX = 60;
const CHECKPOINT_CHANCE = 0.2;
const FAILURE_CHANCE = 0.15;

const plan = JSON.parse(process.argv[2] ?? '') as WorkerPlan;
const random = createRandom(plan.seed, 1);
const write = (line: LedgerLine) => appendFileSync(plan.ledger, `${JSON.stringify(line)}\n`);
let count = 0;

const handlers = Object.fromEntries(
  plan.handlers.map(
    (name): [string, ConstructorParameters<typeof Worker>[1]['handlers'][string]] => [
      name,
      async (task, ctx) => {
        count += 1;
        const mark = `${plan.workerId}-${count}`;
        const enter = (kind: LedgerLine['kind']) =>
          write({ kind, task: task.id, epoch: task.claim_epoch, mark });
        enter('began');
        if (random.chance(CHECKPOINT_CHANCE)) await ctx.checkpoint({ mark });
        await wait(random.integer(0, WORK_MS_MAX));
        if (random.chance(FAILURE_CHANCE)) {
          enter('threw');
          throw new Error('not today');
        }
        enter('done');
        return { mark };
      },
    ],
  ),
);

const client = new Client({ url: plan.url, apiKey: plan.apiKey, tenant: plan.tenant });
const worker = new Worker(client, {
  handlers,
  workerId: plan.workerId,
  concurrency: CONCURRENCY,
  leaseMs: plan.leaseMs,
  pollWaitMs: 1_000,
  handleSignals: true,
  logger: { info: () => undefined, warn: () => undefined },
});
await worker.start();
write({ kind: 'ready', task: '', epoch: 0, mark: plan.workerId });
await worker.run();
