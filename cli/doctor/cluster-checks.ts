/** Checks of the directory of a cluster: whether it is reachable, unserved cells, and stalled moves. */

import {
  type CellRow,
  type Directory,
  ENGINE_SILENT_MS,
  type EngineRow,
  type MoveRow,
} from '../../src/cluster/directory.js';
import { clusterUrl, withDirectory } from '../cluster.js';
import { CommandError } from '../exit.js';
import type { Session } from '../session.js';
import { durationText } from '../table.js';
import { type Check, check, ok } from './check.js';

/** A move without progress for this long has stalled: copying millions of rows takes as long. */
const STILL_MS = 60_000;
const MOVES_MAX = 100;

/** Empty if no cluster is configured. */
export async function clusterChecks(session: Session): Promise<Check[]> {
  if (clusterUrl(session) === undefined) return [];
  try {
    return await withDirectory(session, async (directory) =>
      clusterFindings(await factsOf(directory), session.out.place.now),
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const todo = 'Check ENGINE_CLUSTER_URL and its Postgres: docs/operate/cells.md.';
    return [check('bad', 'cluster', error.message, todo)];
  }
}

export interface ClusterFacts {
  readonly cells: readonly Pick<CellRow, 'name'>[];
  readonly engines: readonly Pick<
    EngineRow,
    'cell' | 'role' | 'silent_ms' | 'migration' | 'key_ids'
  >[];
  /** Moves in progress. */
  readonly moves: readonly Pick<
    MoveRow,
    'tenant_id' | 'from_cell' | 'to_cell' | 'updated_at' | 'error'
  >[];
}

async function factsOf(directory: Directory): Promise<ClusterFacts> {
  const [cells, engines, moves] = await Promise.all([
    directory.cells(),
    directory.engines(),
    directory.moves({ limit: MOVES_MAX, isUnderWay: true }),
  ]);
  return { cells, engines, moves };
}

/** @param now of this machine, in Unix milliseconds */
export function clusterFindings({ cells, engines, moves }: ClusterFacts, now: number): Check[] {
  const owners = engines.filter(
    ({ role, silent_ms }) => role === 'owner' && silent_ms <= ENGINE_SILENT_MS,
  );
  const orphans = cells.filter(({ name }) => !owners.some(({ cell }) => cell === name));
  const still = moves.filter(({ updated_at }) => now - Date.parse(updated_at) > STILL_MS);
  const traits = (of: (owner: ClusterFacts['engines'][number]) => string) =>
    new Set(owners.map(of)).size;
  const found: Check[] = [];
  if (orphans.length > 0) {
    const names = orphans.map(({ name }) => name).join(', ');
    const todo = 'Start their engines; their tenants wait until then.';
    found.push(check('bad', 'cells', `no engine serves ${names}`, todo));
  }
  if (traits(({ migration }) => `${migration}`) > 1) {
    const levels = owners.map(({ cell, migration }) => `${cell} has ${migration}`).join(', ');
    const todo =
      'Upgrade the older ones: tenants cannot be moved between cells with different schema versions.';
    found.push(check('warn', 'migrations', levels, todo));
  }
  if (traits(({ key_ids }) => key_ids[0] ?? '') > 1) {
    const todo = 'Set the same ENGINE_ENCRYPTION_KEY on all of them, or tenants cannot be moved.';
    found.push(check('warn', 'keys', 'cells have different encryption keys', todo));
  }
  for (const { tenant_id, from_cell, to_cell, updated_at, error } of still) {
    const since = durationText(now - Date.parse(updated_at));
    const why = error === null ? '' : `: ${error}`;
    const what = `the move of ${tenant_id} from ${from_cell} to ${to_cell} has stalled for ${since}${why}`;
    const todo = 'Run tenants move again to continue, or undo the move with --give-up.';
    found.push(check('bad', 'moves', what, todo));
  }
  if (found.length > 0) return found;
  return [
    ok('cluster', `all ${cells.length} cells are served; moves in progress: ${moves.length}`),
  ];
}
