/** Statements of the release owner and of routing. */

import type { ReleaseState } from '../../schema/release-states.js';
import type { Queries } from '../runtime/queries.js';
import type { Outcomes, RunsToJudge } from './core/gates.js';
import {
  RELEASE_COLUMNS,
  type ReleaseRow,
  releaseRowOf,
  type StoredRelease,
} from './core/record.js';
import type { RoutingRow } from './core/routes.js';

export type ReleaseStateRow = { readonly id: string; readonly state: ReleaseState };

export const RELEASE_SQL = {
  release: `select ${RELEASE_COLUMNS} from releases where id = $1::uuid`,
  routingRelease:
    'select id, state from releases where baseline_sequence_id = $1::uuid ' +
    "and state in ('canary', 'promoted') limit 1",
  // A draft needs only its baseline: its candidate may be deleted.
  releaseNaming:
    'select id, state from releases where baseline_sequence_id = $1::uuid ' +
    "and state in ('draft', 'validating', 'ready', 'canary', 'paused', 'promoted') union all " +
    'select id, state from releases where candidate_sequence_id = $1::uuid ' +
    "and state in ('validating', 'ready', 'canary', 'paused', 'promoted') limit 1",
  leadingReleases:
    "select id, state from releases where candidate_sequence_id = $1::uuid and state in ('canary', 'promoted')",
  openReleases:
    'select id, state, is_deprecated from (select id, state, gates, ' +
    'coalesce((select s.deprecated from sequences s where s.id = candidate_sequence_id), false) ' +
    "as is_deprecated from releases where state in ('canary', 'validating')) r " +
    "where state = 'validating' or is_deprecated or json_array_length(gates) > 0",
  // Earlier runs are read by index, newest first, and only as many as the baseline lacks. One statement, so that both
  // parts are of one snapshot.
  releaseOutcomes:
    'with counted as (select sequence_id, state, count(*) as instances from release_outcomes ' +
    'where release_id = $1::uuid and created_at >= $2::timestamptz group by sequence_id, state) ' +
    'select sequence_id, state, instances, false as is_earlier from counted union all ' +
    'select $3::uuid, state, count(*), true from (select state from instances ' +
    'where sequence_id = $3::uuid and created_at < $2::timestamptz ' +
    'and created_at >= $4::timestamptz ' +
    "and state in ('completed', 'failed', 'cancelled') " +
    "and (runtime ->> 'dry_run') is distinct from 'true' " +
    'order by created_at desc, id desc limit greatest(0, $5::bigint - ' +
    '(select coalesce(sum(instances), 0)::bigint from counted where sequence_id = $3::uuid))) i ' +
    'group by state',
  // One statement, so that the table is one snapshot.
  routingReleases:
    'select id, tenant_id, baseline_sequence_id, candidate_sequence_id, state, canary_percent, ' +
    'created_at, updated_at, coalesce((select s.deprecated from sequences s ' +
    'where s.id = candidate_sequence_id), false) as is_deprecated ' +
    "from releases where state in ('canary', 'promoted')",
} as const;

export function releaseLoads(queries: Queries) {
  const sql = queries.of(RELEASE_SQL);
  return {
    async release(id: string): Promise<ReleaseRow | undefined> {
      const stored = await sql.one<StoredRelease>('release', [id]);
      return stored && releaseRowOf(stored);
    },
    routingRelease: (baseline: string) => sql.one<ReleaseStateRow>('routingRelease', [baseline]),
    /** A release that has the sequence as baseline or candidate. */
    releaseNaming: (sequence: string) => sql.one<ReleaseStateRow>('releaseNaming', [sequence]),
    leadingReleases: (candidate: string) =>
      sql.all<ReleaseStateRow>('leadingReleases', [candidate]),
    /** Releases in validation, and canaries with gates or a deprecated candidate. */
    openReleases: () =>
      sql.all<ReleaseStateRow & { readonly is_deprecated: boolean }>('openReleases', []),
    /** Outcomes of instances routed since the canary began, plus as many earlier baseline runs as the sample lacks. */
    releaseOutcomes: (release: string, { since, baseline, from, sample }: RunsToJudge) =>
      sql.all<Outcomes>('releaseOutcomes', [release, since, baseline, from, sample]),
    routingReleases: () => sql.all<RoutingRow>('routingReleases', []),
  };
}

export type ReleaseLoads = ReturnType<typeof releaseLoads>;
