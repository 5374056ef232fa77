/**
 * Moves the tasks from before migration 0040 (`old-tables.ts`) in the background, after each start until none is
 * left, and when a tenant comes back, possibly from a cell that had not moved its tasks. Runs on the first shard only.
 */

import { BackgroundJob } from '../../src/base/background-job.js';
import { valueFor } from '../../src/base/quota/last-used.js';
import { TENANT_SUSPENDED } from '../runtime/commit.js';
import type { Kernel } from '../runtime/kernel.js';
import { NO_ID } from '../runtime/queries.js';
import { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { InstanceLoads } from './loads.js';
import { TASK_BEFORE } from './old-tables.js';

type TaskMovesDeps = Pick<
  Kernel<InstanceLoads>,
  'clock' | 'log' | 'loader' | 'commits' | 'release' | 'schedule' | 'whenWriterKnown'
>;

/** 5 ms of Postgres, for which a lane does nothing else. */
const TASKS_PER_STEP = 250;
const LOGGED_EVERY_MS = 60_000;
/** For tenants that were suspended during the last run. */
const AGAIN_EVERY_MS = 3_600_000;

export function taskMoves(deps: TaskMovesDeps) {
  const { clock, log, loader } = deps;
  const service = new Service('task moves', deps);
  let after = NO_ID;
  /** Tasks of suspended tenants are left for the next run. */
  let count = { moved: 0, left: 0 };

  const moveOf = async ([tenant, ids]: readonly [string, readonly string[]]): Promise<void> => {
    const turn = new Turn(tenant);
    for (const id of ids) turn.put(TASK_BEFORE.move, id, { id });
    try {
      await service.commit(turn);
      count.moved += ids.length;
    } catch (error) {
      if (error !== TENANT_SUSPENDED) throw error;
      count.left += ids.length;
    }
  };
  /** @returns whether there may be more */
  const moveSome = async (): Promise<boolean> => {
    const tasks = await service.read(() => loader.tasksToMove(after, TASKS_PER_STEP));
    const byTenant = new Map<string, string[]>();
    for (const { id, tenant_id } of tasks) valueFor(byTenant, tenant_id, () => []).push(id);
    await Promise.all([...byTenant].map(moveOf));
    after = tasks.at(-1)?.id ?? after;
    return tasks.length === TASKS_PER_STEP;
  };
  const run = async () => {
    after = NO_ID;
    count = { moved: 0, left: 0 };
    let loggedAt = Number.NEGATIVE_INFINITY;
    while (await job.step(moveSome)) {
      if (clock.monotonic() - loggedAt < LOGGED_EVERY_MS) continue;
      loggedAt = clock.monotonic();
      log.info({ ...count }, 'moving the tasks of the version before');
    }
    if (count.moved > 0) log.info({ ...count }, 'moved the tasks of the version before');
  };
  const job = new BackgroundJob({ clock, log, run, name: 'task moves', everyMs: AGAIN_EVERY_MS });
  return { start: () => job.start(), stop: () => job.stop(), tenantBack: () => job.wake() };
}
