/** The stored release and its wire record (docs/releases.md). Row fields are those of `release.set`. Pure. */

import type { Gate, Release, ValidationSummary } from '../../../schema/release.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import { RELEASES } from '../tables.js';

export interface ReleaseRow
  extends Omit<Release, 'gates' | 'validation_summary' | 'canary_started_at'> {
  readonly gates: readonly Gate[];
  readonly validation_summary: ValidationSummary | null;
  readonly canary_started_at: string | null;
}

/** A row of `RELEASE_COLUMNS`, with JSON as text. */
export interface StoredRelease extends Omit<ReleaseRow, 'gates' | 'validation_summary'> {
  readonly gates: string;
  readonly validation_summary: string | null;
}

export const RELEASE_COLUMNS = selected(columnsBut(RELEASES));

export function releaseRowOf(stored: StoredRelease): ReleaseRow {
  const { gates, validation_summary: summary } = stored;
  return {
    ...stored,
    gates: JSON.parse(gates) as Gate[],
    validation_summary: summary === null ? null : (JSON.parse(summary) as ValidationSummary),
  };
}

export function releaseOf(row: ReleaseRow): Release {
  const { gates, validation_summary, canary_started_at, created_at, updated_at, ...rest } = row;
  return {
    ...rest,
    ...(gates.length === 0 ? {} : { gates: [...gates] }),
    ...(validation_summary === null ? {} : { validation_summary }),
    ...(canary_started_at === null ? {} : { canary_started_at }),
    created_at,
    updated_at,
  };
}
