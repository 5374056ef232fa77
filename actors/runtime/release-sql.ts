/** What the owner of the releases reads. Every statement is keyed by an index of 0004. */

import { RELEASE_COLUMNS } from '../../src/core/releases/record.js';
import type { ReleaseState } from '../../src/core/releases/release.js';

/** Part of `LOAD_SQL`. */
export const RELEASE_SQL = {
  release: `select ${RELEASE_COLUMNS} from releases where id = $1::uuid`,
  routingRelease:
    'select id, state from releases where baseline_sequence_id = $1::uuid ' +
    "and state in ('canary', 'promoted') limit 1",
  // A draft needs its baseline only: its candidate may go.
  releaseNaming:
    'select id, state from releases where baseline_sequence_id = $1::uuid ' +
    "and state in ('draft', 'validating', 'ready', 'canary', 'paused', 'promoted') union all " +
    'select id, state from releases where candidate_sequence_id = $1::uuid ' +
    "and state in ('validating', 'ready', 'canary', 'paused', 'promoted') limit 1",
  openReleases:
    "select id, state from releases where state in ('canary', 'validating') " +
    "and (state = 'validating' or json_array_length(gates) > 0)",
  releaseOutcomes:
    'select sequence_id, state, count(*) as instances from release_outcomes ' +
    'where release_id = $1::uuid and created_at >= $2::timestamptz group by sequence_id, state',
} as const;

/** A release by its state alone. */
export interface ReleaseStateRow {
  readonly id: string;
  readonly state: ReleaseState;
}
