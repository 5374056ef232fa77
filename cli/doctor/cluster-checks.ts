/** What the directory of a cluster tells: whether it can be asked, who serves which cell, what stands still. */

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

/** Of a move of which nothing was noted: a copy of millions of rows takes as long. */
const STILL_MS = 60_000;
const MOVES_MAX = 100;

/** None where nobody has said that there is a cluster. */
export async function clusterChecks(session: Session): Promise<Check[]> {
  if (clusterUrl(session) === undefined) return [];
  try {
    return await withDirectory(session, async (directory) =>
      clusterFindings(await factsOf(directory), session.out.place.now),
    );
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const todo = 'Look at ENGINE_CLUSTER_URL and at its Postgres: docs/operate/cells.md.';
    return [check('bad', 'cluster', error.message, todo)];
  }
}

export interface ClusterFacts {
  readonly cells: readonly Pick<CellRow, 'name'>[];
  readonly engines: readonly Pick<
    EngineRow,
    'cell' | 'role' | 'silent_ms' | 'migration' | 'key_ids'
  >[];
  /** Those under way. */
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
    const todo = 'Start their engines: until then their tenants wait.';
    found.push(check('bad', 'cells', `nobody serves ${names}`, todo));
  }
  if (traits(({ migration }) => `${migration}`) > 1) {
    const levels = owners.map(({ cell, migration }) => `${cell} has ${migration}`).join(', ');
    const todo = 'Upgrade the older ones: between cells of two levels no tenant can be moved.';
    found.push(check('warn', 'migrations', levels, todo));
  }
  if (traits(({ key_ids }) => key_ids[0] ?? '') > 1) {
    const todo = 'Give all the same ENGINE_ENCRYPTION_KEY: else tenants cannot be moved.';
    found.push(check('warn', 'keys', 'cells have different encryption keys', todo));
  }
  for (const { tenant_id, from_cell, to_cell, updated_at, error } of still) {
    const since = durationText(now - Date.parse(updated_at));
    const why = error === null ? '' : `: ${error}`;
    const what = `${tenant_id} on its way from ${from_cell} to ${to_cell} stands still for ${since}${why}`;
    const todo = 'Run tenants move for it again, or take the move back with --give-up.';
    found.push(check('bad', 'moves', what, todo));
  }
  if (found.length > 0) return found;
  return [ok('cluster', `all ${cells.length} cells are served; moves under way: ${moves.length}`)];
}
