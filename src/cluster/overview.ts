/** What is known of all cells at once, for the command line and for the dashboard. */

import type { Cell, CellEngine } from '../../schema/cell.js';
import { type CellRow, type Directory, ENGINE_SILENT_MS, type EngineRow } from './directory.js';

/** By their names. Rejects with the errors of `pg`. */
export async function cellsOf(directory: Directory): Promise<Cell[]> {
  const [cells, engines, tenants, moves] = await Promise.all([
    directory.cells(),
    directory.engines(),
    directory.tenantCounts(),
    directory.moveCounts(),
  ]);
  return cells.map((cell) =>
    cellOf(
      cell,
      engines.filter(({ cell: own }) => own === cell.name),
      tenants.get(cell.name) ?? 0,
      moves.get(cell.name) ?? 0,
    ),
  );
}

/** Undefined when there is no such cell. Rejects with the errors of `pg`. */
export async function cellNamed(directory: Directory, name: string): Promise<Cell | undefined> {
  return (await cellsOf(directory)).find((cell) => cell.name === name);
}

function cellOf(
  { engines: addresses, joined_at, found_at, ...row }: CellRow,
  engines: readonly EngineRow[],
  tenants: number,
  moves_under_way: number,
): Cell {
  return {
    ...row,
    addresses: [...addresses],
    engines: engines.map(engineOf),
    tenants,
    moves_under_way,
  };
}

function engineOf({ address, role, version, lag_ms, seen_at, silent_ms }: EngineRow): CellEngine {
  return { address, role, version, lag_ms, seen_at, is_silent: silent_ms > ENGINE_SILENT_MS };
}

/** The engine that serves the cell, as far as it was heard of lately. */
export function ownerOf({ engines }: Pick<Cell, 'engines'>): CellEngine | undefined {
  return engines.find(({ role, is_silent }) => role === 'owner' && !is_silent);
}

export function standbysOf({ engines }: Pick<Cell, 'engines'>): CellEngine[] {
  return engines.filter(({ role, is_silent }) => role === 'standby' && !is_silent);
}
