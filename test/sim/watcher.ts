/** What watches the rows of a run, and what several watchers ask of a row. */

import type { Execution, StepRecord } from '../../schema/execution.js';
import type { Counts } from './faults.js';
import type { MemoryTables, Row } from './memory-tables.js';

export interface Watched {
  readonly tables: MemoryTables;
  readonly counts: Counts;
  readonly now: () => number;
}

export class Watcher implements Watched {
  readonly tables: MemoryTables;
  readonly counts: Counts;
  readonly now: () => number;

  constructor({ tables, counts, now }: Watched) {
    this.tables = tables;
    this.counts = counts;
    this.now = now;
  }
}

export function openSteps({ execution }: Row): StepRecord[] {
  const { o } = execution as unknown as Execution;
  return Object.values(o ?? {}).filter((record): record is StepRecord => 'p' in record);
}

export const owner = (row: Row) => String(row.instance_id);
