/** Tables of releases, their decisions, and the outcomes of routed instances. Pure. */

import { clear, insert, mutations, set } from '../../src/db/mutation.js';
import { belonging, table } from '../../src/db/table.js';

export const RELEASES = table('releases', ['id'], {
  id: 'uuid',
  tenant_id: 'text',
  namespace: 'text',
  sequence_name: 'text',
  baseline_sequence_id: 'uuid',
  baseline_version: 'integer',
  candidate_sequence_id: 'uuid',
  candidate_version: 'integer',
  state: 'text',
  canary_percent: 'smallint',
  gates: 'json',
  in_flight_policy: 'text',
  validation_summary: 'json?',
  canary_started_at: 'timestamptz?',
  created_at: 'timestamptz',
  updated_at: 'timestamptz',
});

export const RELEASE = mutations('release', {
  set: set(RELEASES, [
    'state',
    'canary_percent',
    'validation_summary',
    'canary_started_at',
    'updated_at',
  ]),
});

export const RELEASE_DECISIONS = table(
  'release_decisions',
  ['id'],
  {
    id: 'uuid',
    release_id: 'uuid',
    from_state: 'text',
    to_state: 'text',
    actor: 'text',
    reason: 'text',
    decided_at: 'timestamptz',
  },
  { ofTenant: 'release_id in (select id from releases where tenant_id = $T)' },
);

export const RELEASE_DECISION = mutations('releaseDecision', { insert: insert(RELEASE_DECISIONS) });

export const RELEASE_OUTCOMES = belonging('release_outcomes', ['instance_id'], {
  instance_id: 'uuid',
  release_id: 'uuid',
  sequence_id: 'uuid',
  state: 'text',
  created_at: 'timestamptz',
});

export const RELEASE_OUTCOME = mutations('releaseOutcome', {
  clear: clear(RELEASE_OUTCOMES),
  set: set(RELEASE_OUTCOMES, ['sequence_id', 'state']),
});

export const RELEASE_STORE = [RELEASE, RELEASE_DECISION, RELEASE_OUTCOME];
