/** Releases and the decisions about them. Reads only; their changes belong to the releases' owner. */

import {
  RELEASE_COLUMNS,
  releaseOf,
  releaseRowOf,
  type StoredRelease,
} from '../../core/releases/record.js';
import { columnsBut, selected } from '../tables.js';
import { filtersOf } from './filters.js';
import { list } from './list.js';
import { lookup, TRY_LATER } from './lookup.js';

export const releaseById = lookup<StoredRelease>(
  'reads_release_get',
  `select ${RELEASE_COLUMNS} from releases where id = $1::uuid`,
);

/** `Release` records, newest first, of all tenants without one. */
export const releaseList = list({
  columns: RELEASE_COLUMNS,
  from: 'releases',
  by: filtersOf('releases', ['tenant_id']),
  order: 'created_at desc, id desc',
  toText: (row: StoredRelease) => JSON.stringify(releaseOf(releaseRowOf(row))),
  cheaper: 'name the tenant, or ask for a smaller limit',
});

/**
 * `ReleaseDecision` records, oldest first. Those of one instant by their ids, which grow
 * (docs/releases.md).
 */
export const decisionList = list({
  columns: selected(columnsBut('release_decisions')),
  from: 'release_decisions',
  of: filtersOf('release_decisions', ['release_id']),
  order: 'decided_at, id',
  toText: (row) => JSON.stringify(row),
  cheaper: TRY_LATER,
});
