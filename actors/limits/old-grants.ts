/**
 * Removes grants that no window can count any more, of limits that are no longer used: a pattern may have limited any
 * number of keys. A limit that is used removes its own. Runs on the first shard only.
 */

import { RATE_WINDOW_SECONDS_MAX } from '../../schema/rate.js';
import { BackgroundJob } from '../../src/base/background-job.js';
import { isoTime } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import { NO_ID } from '../runtime/queries.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { LimitLoads } from './loads.js';
import { RATE_GRANT } from './tables.js';

const CHECK_MS = 60 * 60 * 1_000;
/** A grant counts for one window after its last possible use. */
const KEPT_MS = RATE_WINDOW_SECONDS_MAX * 1_000 + CHECK_MS;
const PAGE_ROWS = 500;

/** The caller starts and stops it. */
export function oldGrants(deps: Kernel<LimitLoads>): BackgroundJob {
  const { clock, log, now, loader } = deps;
  const service = new Service('old grants', deps);
  /** @returns the last limit of the page; undefined after the last page */
  const prunePage = async (after: string): Promise<string | undefined> => {
    const before = isoTime(now() - KEPT_MS);
    const page = await loader.grantedLimits(after, before, PAGE_ROWS);
    const old = page.filter(({ is_old }) => is_old);
    if (old.length > 0) {
      const turn = new Turn();
      for (const { limit_id } of old) turn.put(RATE_GRANT.prune, limit_id, { limit_id, before });
      await service.commit(turn);
    }
    return page.length < PAGE_ROWS ? undefined : page.at(-1)?.limit_id;
  };
  const run = async () => {
    for (let after: string | undefined = NO_ID; after !== undefined; ) {
      const from: string = after;
      after = await job.step(() => prunePage(from));
    }
  };
  const job = new BackgroundJob({ clock, log, name: 'old grants', everyMs: CHECK_MS, run });
  return job;
}
