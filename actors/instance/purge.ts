/**
 * Deletes instances that ended long ago, or whose sequence was deleted, several in one unit. They
 * are blocked meanwhile, and read again to check that they are still to be deleted.
 */

import { DATABASE_AWAY } from '../../src/base/errors.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Kernel } from '../runtime/kernel.js';
import type { Service } from '../runtime/service.js';
import { Turn } from '../runtime/turn.js';
import type { Instances } from './instances.js';
import type { InstanceLoads } from './loads.js';
import { TASK_BEFORE } from './old-tables.js';
import { INSTANCE } from './tables.js';

/** The body of `instances.purge`, an internal request of the front thread's jobs. */
export interface PurgeRequest {
  readonly ids: readonly string[];
  /** Deletes those that ended and have not changed since; null: those of a deleted sequence. */
  readonly before: UnixMs | null;
}

export interface PurgeReply {
  readonly removed: number;
}

interface PurgeDeps extends Pick<Kernel<InstanceLoads>, 'loader' | 'log' | 'release' | 'schedule'> {
  readonly service: Service;
  readonly instances: Pick<Instances, 'hold' | 'letGo'>;
}

export function purge(deps: PurgeDeps, request: number, { ids, before }: PurgeRequest): void {
  const { loader, schedule, release, instances } = deps;
  const held = ids.filter((id) => instances.hold(id));
  const found =
    before === null ? loader.orphanedInstances(held) : loader.endedInstances(held, before);
  found.then(
    (doomed) =>
      schedule(() => {
        const isDoomed = new Set(doomed);
        for (const id of held) if (!isDoomed.has(id)) instances.letGo(id, false);
        remove(deps, request, doomed, before !== null);
      }),
    () =>
      schedule(() => {
        for (const id of held) instances.letGo(id, false);
        release([{ kind: 'error', request, error: DATABASE_AWAY }]);
      }),
  );
}

function remove(
  deps: PurgeDeps,
  request: number,
  doomed: readonly string[],
  isRetention: boolean,
): void {
  const turn = new Turn();
  const reply: PurgeReply = { removed: doomed.length };
  turn.reply(request, 200, JSON.stringify(reply));
  if (doomed.length === 0) {
    deps.release(turn.effects);
    return;
  }
  for (const id of doomed) {
    turn.put(TASK_BEFORE.drop, id, { instance_id: id });
    turn.put(INSTANCE.delete, id, { id });
  }
  if (isRetention) turn.count('engine_retention_removed_total', doomed.length);
  // The reply is released before the waiting messages continue, which find the rows deleted.
  deps.service.commitNow(turn, {
    key: `purge:${request}`,
    settled: (error, { outcome }) => {
      if (error !== undefined) deps.log.warn({ outcome }, 'instances could not be removed');
      for (const id of doomed) deps.instances.letGo(id, error === undefined);
    },
  });
}
