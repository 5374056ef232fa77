/**
 * Asks for the removal of instances, as the retention of an engine does, while clients still work with
 * them: those that have ended, and for good measure some that have not.
 */

import { routeOf, shardOf } from '../../src/core/ids.js';
import type { Random } from '../chaos/random.js';
import type { Api } from './api.js';
import type { Faults } from './faults.js';
import type { MemoryTables } from './memory-tables.js';
import type { World } from './world.js';

export interface PurgerDeps {
  readonly world: World;
  readonly api: Api;
  readonly faults: Faults;
  readonly random: Random;
  readonly tables: MemoryTables;
  readonly shards: number;
  /** Told of every instance before its removal is asked for. */
  readonly onAsked: (instance: string) => void;
}

const ASKED_MAX = 4;

/** Goes on until the faults are over. */
export async function purge(deps: PurgerDeps): Promise<void> {
  const { world, api, faults, random, tables, shards, onAsked } = deps;
  while (!faults.isOver) {
    await world.sleep(world.latency(100, 3_000));
    const shard = random.integer(0, shards - 1);
    const ids = [...tables.rows('instances').keys()].filter(
      (id) => shardOf(routeOf(id), shards) === shard && random.chance(0.5),
    );
    if (ids.length === 0) continue;
    const asked = ids.slice(0, ASKED_MAX);
    for (const id of asked) onAsked(id);
    const before = world.now - random.integer(0, 2_000);
    await api.call('instances.purge', '', '', { ids: asked, before }, shard);
  }
}
