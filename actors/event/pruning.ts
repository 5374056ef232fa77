/**
 * Removes events that were consumed or have expired long ago, so many at a time that no commit takes long,
 * and with them what their producers called them. On the first shard only.
 */

import { BackgroundJob } from '../../src/background-job.js';
import { isoTime } from '../../src/core/time.js';
import { commitAlone, type ScheduledCommitDeps } from '../runtime/commit.js';
import type { Room } from '../runtime/room.js';
import { Turn } from '../runtime/turn.js';

export type EventPruningDeps = ScheduledCommitDeps & Pick<Room, 'loader' | 'clock' | 'log' | 'now'>;

/** A producer that repeats an event after that long makes another one of it. */
const KEPT_MS = 7 * 24 * 60 * 60 * 1_000;
/** Between two looks at the oldest one. */
const LOOK_MS = 60 * 60 * 1_000;

/** The caller starts it, and stops it. */
export function eventPruning(deps: EventPruningDeps): BackgroundJob {
  const { loader, clock, log, now } = deps;
  /** @returns whether there may be more: the statement takes a thousand */
  const pruneSome = async (): Promise<boolean> => {
    const before = now() - KEPT_MS;
    const oldest = await loader.oldestEndedEvent();
    if (oldest === undefined || oldest >= before) return false;
    const turn = new Turn();
    turn.put('event.prune', 'events', { before: isoTime(before) });
    await commitAlone(deps, 'events', turn);
    return true;
  };
  const run = async () => {
    while (await job.step(pruneSome));
  };
  const job = new BackgroundJob({ clock, log, name: 'old events', everyMs: LOOK_MS, run });
  return job;
}
