/** The state of all cells, for the command line and the dashboard. */

import type { Cell, CellEngine } from '../../schema/cell.js';
import { type CellRow, type Directory, ENGINE_SILENT_MS, type EngineRow } from './directory.js';

/** By name. Rejects with the errors of `pg`. */
export async function cellsOf(directory: Directory): Promise<Cell[]> {
  const [cells, engines, counts] = await Promise.all([
    directory.cells(),
    directory.engines(),
    directory.counts(),
  ]);
  return cells.map(({ engines: addresses, joined_at, found_at, ...row }: CellRow) => ({
    ...row,
    addresses: [...addresses],
    engines: engines.filter(({ cell }) => cell === row.name).map(engineOf),
    ...(counts.get(row.name) ?? { tenants: 0, moves_under_way: 0 }),
  }));
}

export async function cellNamed(directory: Directory, name: string): Promise<Cell | undefined> {
  return (await cellsOf(directory)).find((cell) => cell.name === name);
}

function engineOf({ address, role, version, lag_ms, seen_at, silent_ms }: EngineRow): CellEngine {
  return { address, role, version, lag_ms, seen_at, is_silent: silent_ms > ENGINE_SILENT_MS };
}

/** The engine that serves the cell, by the latest reports. */
export function ownerOf({ engines }: Pick<Cell, 'engines'>): CellEngine | undefined {
  return engines.find(({ role, is_silent }) => role === 'owner' && !is_silent);
}
