/** Releases and the decisions about them. Reads only; their changes belong to the releases' owner. */

import type { Outcomes } from '../../../src/core/releases/gates.js';
import {
  RELEASE_COLUMNS,
  releaseOf,
  releaseRowOf,
  type StoredRelease,
} from '../../../src/core/releases/record.js';
import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/tables.js';
import { LOAD_SQL } from '../../runtime/load-sql.js';

export const releaseById = lookup<StoredRelease>(
  'reads_release_get',
  `select ${RELEASE_COLUMNS} from releases where id = $1::uuid`,
);

/** `Release` records, newest first, of all tenants without one. */
export const releaseList = list({
  columns: RELEASE_COLUMNS,
  from: 'releases r',
  by: filtersOf('releases', ['tenant_id', 'state', 'sequence_name'], 'r'),
  walk: { table: 'releases r', alias: 'r', along: ['tenant_id'], isOfAll: true, within: [] },
  order: orderBy('releases', ['created_at', 'id'], 'descending', 'r'),
  toText: (row: StoredRelease) => JSON.stringify(releaseOf(releaseRowOf(row))),
  cheaper: 'name the tenant, or ask for a smaller limit',
});

/** The same rows as the owner of the releases judges by. */
export const releaseOutcomes = lookup<Outcomes>('reads_release_outcomes', LOAD_SQL.releaseOutcomes);

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
