/** Examples of releases: the second version of `order` takes over from the first. */

import type { JsonValue } from '../src/base/json.js';
import { AT, EXAMPLE_IDS, EXAMPLE_TENANT, LATER } from './example-ids.js';

const versions = {
  baseline_sequence_id: EXAMPLE_IDS.sequence,
  candidate_sequence_id: EXAMPLE_IDS.nextSequence,
};

const gate = { metric: 'error_rate', max_regression: 0.02, min_sample: 100 };

const divergence = {
  instance_id: EXAMPLE_IDS.instance,
  recorded_state: 'completed',
  replayed_state: 'completed',
  blocks_added: ['archive'],
  blocks_removed: [],
};

const evidence = {
  replayed: 10,
  matches: 8,
  diverged: 1,
  inconclusive: 1,
  divergences: [divergence],
};

const entry = {
  category: 'block_added',
  severity: 'behavioral',
  block_id: 'archive',
  summary: 'step archive with the handler noop is new',
};

const ended = { total: 120, completed: 117, failed: 3, cancelled: 0 };

/** By the `$id` of the schema. */
const judgement = { gate, baseline_rate: 0.025, candidate_rate: 0.05, verdict: 'pass' };

export const RELEASE_EXAMPLES: Readonly<Record<string, JsonValue>> = {
  Gate: gate,
  CreateRelease: {
    tenant_id: EXAMPLE_TENANT,
    ...versions,
    gates: [gate],
    in_flight_policy: 'pin',
  },
  Release: {
    ...versions,
    id: EXAMPLE_IDS.release,
    sequence_name: 'order',
    baseline_version: 1,
    candidate_version: 2,
    state: 'canary',
    canary_percent: 20,
    gates: [gate],
    in_flight_policy: 'pin',
    canary_started_at: LATER,
    updated_at: LATER,
  },
  ReleaseDecision: {
    id: EXAMPLE_IDS.decision,
    release_id: EXAMPLE_IDS.release,
    from_state: 'ready',
    to_state: 'canary',
    actor: 'operator',
    reason: 'canary at 20%',
    decided_at: LATER,
  },
  ValidateRelease: { sample: 20 },
  ValidationReport: { ...evidence, release_state: 'ready' },
  ValidationSummary: { ...evidence, validated_at: AT },
  Divergence: divergence,
  StartCanary: { percent: 20 },
  PromoteRelease: { force: false },
  CompareSequences: versions,
  SemanticDiff: { entries: [entry], max_severity: 'behavioral' },
  DiffEntry: entry,
  EndedCounts: ended,
  GateJudgement: judgement,
  GateReport: {
    baseline: ended,
    candidate: { ...ended, completed: 114, failed: 6 },
    gates: [judgement],
  },
  EvaluationReport: {
    baseline: ended,
    candidate: { ...ended, completed: 114, failed: 6 },
    gates: [{ gate, baseline_rate: 0.025, candidate_rate: 0.05, verdict: 'fail' }],
    auto_rolled_back: true,
    release_state: 'rolled_back',
  },
};
