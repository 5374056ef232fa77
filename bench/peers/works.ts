/** What is asked of every engine, each a row that can also be run alone. Pure. */

import type { WorkName } from './peer.js';

export interface WorkRow {
  readonly name: WorkName;
  /** Connections or workers. */
  readonly at: number;
  readonly title: string;
}

/** In the order of the turns. */
export const WORKS: readonly WorkRow[] = [
  { name: 'created', at: 64, title: 'created one by one and completed, 64 connections' },
  { name: 'created', at: 256, title: 'created one by one and completed, 256 connections' },
  { name: 'bulk', at: 4, title: 'created in batches of 500, 4 connections' },
  { name: 'rounds', at: 16, title: 'created, claimed, completed one by one, 16 workers' },
  { name: 'rounds', at: 64, title: 'created, claimed, completed one by one, 64 workers' },
  { name: 'batches', at: 16, title: 'rounds in batches of 50 (exchange), 16 workers' },
  { name: 'idle', at: 1, title: 'idle: created to completed, p50 ms' },
];

/** Such as `created64`. */
export function nameOfWork({ name, at }: Pick<WorkRow, 'name' | 'at'>): string {
  return `${name}${at}`;
}

export const WORK_NAMES: readonly string[] = WORKS.map(nameOfWork);
