/** Deletes the expired rows of a growing table, a limited number per commit. Runs on the first shard only. */

import { BackgroundJob } from '../../src/base/background-job.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Mutation } from '../../src/db/mutation.js';
import type { Kernel } from './kernel.js';
import { Service, type ServiceDeps } from './service.js';
import { Turn } from './turn.js';

export type PruningDeps = ServiceDeps & Pick<Kernel, 'clock' | 'now'>;

interface Pruned {
  /** In the log; unique among all actors. */
  readonly name: string;
  /** Its statement deletes up to a thousand rows. */
  readonly by: Mutation<{ readonly before: string }>;
  readonly keptMs: number;
  readonly oldest: () => Promise<UnixMs | undefined>;
}

const CHECK_MS = 60 * 60 * 1_000;

/** The caller starts and stops it. */
export function pruning(deps: PruningDeps, { name, by, keptMs, oldest }: Pruned): BackgroundJob {
  const { clock, log, now } = deps;
  const service = new Service(name, deps);
  /** @returns whether there may be more */
  const pruneSome = async (): Promise<boolean> => {
    const before = now() - keptMs;
    const at = await oldest();
    if (at === undefined || at >= before) return false;
    const turn = new Turn();
    turn.put(by, name, { before: isoTime(before) });
    await service.commit(turn);
    return true;
  };
  const run = async () => {
    while (await job.step(pruneSome));
  };
  const job = new BackgroundJob({ clock, log, name, everyMs: CHECK_MS, run });
  return job;
}
