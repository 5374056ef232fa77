/**
 * Keeps a growing table short: deletes expired rows, a limited number at a time, so that no commit takes
 * long. On the first shard only.
 */

import { BackgroundJob } from '../../src/base/background-job.js';
import { isoTime, type UnixMs } from '../../src/base/time.js';
import type { Mutation } from '../../src/db/mutation.js';
import type { Kernel } from './kernel.js';
import { Service, type ServiceDeps } from './service.js';
import { Turn } from './turn.js';

export type PruningDeps = ServiceDeps & Pick<Kernel, 'clock' | 'now'>;

interface Pruned {
  /** In the log; no actor has this name. */
  readonly name: string;
  /** Its statement takes a thousand rows. */
  readonly by: Mutation<{ readonly before: string }>;
  readonly keptMs: number;
  /** The time of the oldest row. */
  readonly oldest: () => Promise<UnixMs | undefined>;
}

/** Time between two checks of the oldest row. */
const LOOK_MS = 60 * 60 * 1_000;

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
  const job = new BackgroundJob({ clock, log, name, everyMs: LOOK_MS, run });
  return job;
}
