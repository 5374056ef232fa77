/** What a host of actors needs when a test drives it: turns run at once, and the writer is always known. */

import type { InstancesDeps } from '../../actors/instance/instances.js';
import { CommitLog } from '../../actors/runtime/commit-log.js';
import type { HostDeps } from '../../actors/runtime/host.js';
import { createLogger } from '../../src/base/log.js';

/** @param told is given the status of the answer to each request */
export function hostDeps(told = new Map<number, number>(), commits = new CommitLog()): HostDeps {
  return {
    commits,
    log: createLogger('silent', 'test'),
    schedule: (work) => work(),
    scheduleSpare: (work) => work(),
    whenWriterKnown: (then) => then(),
    release: (effects) => {
      for (const effect of effects) {
        if (effect.kind === 'reply') told.set(effect.request, effect.status);
        if (effect.kind === 'error') told.set(effect.request, effect.error.status);
      }
    },
  };
}

/** The same for the instances of a shard, beside what they are made of. */
export const instancesDeps = (): Omit<InstancesDeps, 'env' | 'loader' | 'plans'> => ({
  ...hostDeps(),
  shard: 0,
  taskDecided: () => undefined,
  reachability: { turnedAway: () => undefined },
  changed: () => undefined,
  createAgain: () => undefined,
});
