/**
 * Instances that ended long ago, or whose sequence was deleted, on their way out of the tables: one
 * unit for some of them. They are held meanwhile, so that nobody changes what is being deleted; whether
 * they are still what was found is read again while they are held.
 */

import { DATABASE_AWAY } from '../../src/base/errors.js';
import type { Logger } from '../../src/base/log.js';
import type { UnixMs } from '../../src/base/time.js';
import type { Service } from '../runtime/service.js';
import { type Effect, Turn } from '../runtime/turn.js';
import type { InstanceLoads } from './loads.js';
import { INSTANCE } from './tables.js';

/** The body of `instances.purge`, which only the front thread's jobs send. */
export interface PurgeRequest {
  readonly ids: readonly string[];
  /** Those that ended and did not change since that time; null: those whose sequence was deleted. */
  readonly before: UnixMs | null;
}

/** How many of them were removed. */
export interface PurgeReply {
  readonly removed: number;
}

export interface PurgeDeps {
  readonly service: Service;
  readonly release: (effects: readonly Effect[]) => void;
  readonly loader: InstanceLoads;
  readonly log: Logger;
  readonly schedule: (work: () => void) => void;
  /** Lets nothing happen to the instance; false when something is about to. */
  readonly hold: (instance: string) => boolean;
  /** Ends the holding: its rows are gone, or it goes on. */
  readonly letGo: (instance: string, isGone: boolean) => void;
}

export function purge(deps: PurgeDeps, request: number, { ids, before }: PurgeRequest): void {
  const { loader, schedule, release } = deps;
  const held = ids.filter(deps.hold);
  const found =
    before === null ? loader.orphanedInstances(held) : loader.endedInstances(held, before);
  found.then(
    (doomed) =>
      schedule(() => {
        const isDoomed = new Set(doomed);
        for (const id of held) if (!isDoomed.has(id)) deps.letGo(id, false);
        remove(deps, request, doomed, before !== null);
      }),
    () =>
      schedule(() => {
        for (const id of held) deps.letGo(id, false);
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
  for (const id of doomed) turn.put(INSTANCE.delete, id, { id });
  if (isRetention) turn.count('engine_retention_removed_total', doomed.length);
  // The effects leave first: whoever is let go may ask for rows that are gone.
  deps.service.commitNow(turn, {
    key: `purge:${request}`,
    settled: (error, { outcome }) => {
      if (error !== undefined) deps.log.warn({ outcome }, 'instances could not be removed');
      for (const id of doomed) deps.letGo(id, error === undefined);
    },
  });
}
