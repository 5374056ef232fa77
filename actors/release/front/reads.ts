/** Lists and lookups of releases and their decisions. */

import { filtersOf } from '../../../src/db/reads/filters.js';
import { list } from '../../../src/db/reads/list.js';
import { lookup, TRY_LATER } from '../../../src/db/reads/lookup.js';
import { orderBy } from '../../../src/db/reads/order.js';
import { columnsBut, selected } from '../../../src/db/table.js';
import type { Outcomes } from '../core/gates.js';
import { RELEASE_COLUMNS, releaseOf, releaseRowOf, type StoredRelease } from '../core/record.js';
import { RELEASE_SQL } from '../loads.js';
import { RELEASE_DECISIONS, RELEASES } from '../tables.js';

export const releaseById = lookup<StoredRelease>(
  'reads_release_get',
  `select ${RELEASE_COLUMNS} from releases where id = $1::uuid`,
);

/** `Release` records, newest first. */
export const releaseList = list({
  columns: RELEASE_COLUMNS,
  from: 'releases r',
  by: filtersOf(RELEASES, ['tenant_id', 'state', 'sequence_name'], 'r'),
  walk: { table: 'releases r', alias: 'r', along: ['tenant_id'], isOfAll: true, within: [] },
  order: orderBy(RELEASES, ['created_at', 'id'], 'descending', 'r'),
  toText: (row: StoredRelease) => JSON.stringify(releaseOf(releaseRowOf(row))),
  cheaper: 'name the tenant, or ask for a smaller limit',
});

/** The rows by which the release owner judges. */
export const releaseOutcomes = lookup<Outcomes>(
  'reads_release_outcomes',
  RELEASE_SQL.releaseOutcomes,
);

/** `ReleaseDecision` records, oldest first; ids order those of one instant (docs/releases.md). */
export const decisionList = list({
  columns: selected(columnsBut(RELEASE_DECISIONS)),
  from: 'release_decisions',
  of: filtersOf(RELEASE_DECISIONS, ['release_id']),
  order: 'decided_at, id',
  cheaper: TRY_LATER,
});
