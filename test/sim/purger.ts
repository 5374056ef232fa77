/**
 * Asks for the removal of instances while clients still work with them: as the retention of an engine
 * does, those that have ended, and for good measure some that have not; and, as it does after the
 * deletion of a sequence, what that one has left.
 */

import { routeOf, shardOf } from '../../src/base/ids.js';
import type { Parts } from './parts.js';
import { Violation } from './violation.js';

type RemoverDeps = Pick<Parts, 'world' | 'api' | 'faults' | 'tables' | 'shards'>;

interface PurgerDeps extends RemoverDeps, Pick<Parts, 'random'> {
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

const REMOVAL_EVERY_MS = 500;
const CALM_ROUNDS_MAX = 200;

/** Goes on until the faults are over and nothing is left. @throws Violation when that does not happen */
export async function removeOrphans(deps: RemoverDeps): Promise<void> {
  const { world, api, faults, tables, shards } = deps;
  for (let rounds = 0; rounds < CALM_ROUNDS_MAX; ) {
    await world.sleep(REMOVAL_EVERY_MS);
    const tombstones = [...tables.rows('sequence_tombstones').keys()];
    if (faults.isOver) {
      if (tombstones.length === 0) return;
      rounds += 1;
    }
    for (const sequence of tombstones) {
      const left = [...tables.rows('instances')].filter(([, row]) => row.sequence_id === sequence);
      if (left.length === 0) await api.call('catalog.forget', '', sequence, undefined, 0);
      for (let shard = 0; shard < shards; shard++) {
        const ids = left.map(([id]) => id).filter((id) => shardOf(routeOf(id), shards) === shard);
        const body = { ids: ids.slice(0, ASKED_MAX), before: null };
        if (ids.length > 0) await api.call('instances.purge', '', '', body, shard);
      }
    }
  }
  throw new Violation('instances of a deleted sequence are never removed');
}
