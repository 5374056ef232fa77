/** Wire shapes and routes of releases (docs/releases.md). */

import * as t from './common.js';
import { DIFF_CATEGORIES, DIFF_ENTRIES_MAX, SEVERITIES } from './diff-entry.js';
import {
  GATE_METRICS,
  GATE_VERDICTS,
  IN_FLIGHT_POLICIES,
  RELEASE_STATES,
} from './release-states.js';
import {
  created,
  did,
  firstShard,
  front,
  get,
  getById,
  ok,
  type RouteRow,
  rowsOf,
} from './route-row.js';

/** There are two metrics. */
export const GATES_MAX = 16;
const RELEASE_LIST_DEFAULT = 100;
export const RELEASE_LIST_MAX = 1_000;
export const SAMPLE_DEFAULT = 10;
export const SAMPLE_MAX = 50;

export const ReleaseState = t.oneOf(RELEASE_STATES);
export type ReleaseState = t.Static<typeof ReleaseState>;

export const Gate = t.named(
  'Gate',
  'Evaluated once both versions have min_sample finished instances. Fails if the ' +
    "candidate's rate exceeds the baseline's by more than max_regression.",
  {
    metric: t.oneOf(
      GATE_METRICS,
      'error_rate: share of failed instances among finished ' +
        'ones; cancel_rate: share of cancelled ones.',
    ),
    max_regression: t.number({
      minimum: 0,
      description: "Allowed excess of the candidate's rate over the baseline's, 0 to 1.",
    }),
    min_sample: t.noted(
      t.integer({ minimum: 0, maximum: t.INT32_MAX }),
      'Finished instances of each version required for a verdict.',
    ),
  },
);
export type Gate = t.Static<typeof Gate>;

const InFlightPolicy = t.oneOf(
  IN_FLIGHT_POLICIES,
  'Neither migrates running instances: with operator_decision an operator does so explicitly.',
);

export const CreateRelease = t.strictNamed('CreateRelease', 'Two versions of one sequence.', {
  tenant_id: t.nullish(t.text(), 'Must equal the header x-tenant-id, if sent.'),
  baseline_sequence_id: t.Uuid,
  candidate_sequence_id: t.Uuid,
  gates: t.nullish(t.list(Gate, { maxItems: GATES_MAX, default: [] })),
  in_flight_policy: t.nullish(t.withDefault(InFlightPolicy, 'pin')),
});
export type CreateRelease = t.Static<typeof CreateRelease>;

/** A limit out of range becomes the nearest bound. */
const ReleaseListQuery = t.object({
  tenant_id: t.optional(t.text()),
  state: t.optional(ReleaseState),
  sequence_name: t.optional(t.text()),
  limit: t.integer({
    default: RELEASE_LIST_DEFAULT,
    description: `At least 1 and at most ${RELEASE_LIST_MAX}.`,
  }),
  cursor: t.Cursor,
});

/** A sample out of range becomes the nearest bound. */
export const ValidateRelease = t.strictNamed('ValidateRelease', {
  sample: t.nullish(
    t.integer({ minimum: 0, default: SAMPLE_DEFAULT }),
    `Number of newest finished runs to replay: at least 1 and at most ${SAMPLE_MAX}.`,
  ),
  skip: t.flag(false, 'Makes the release ready without a replay.'),
});
export type ValidateRelease = t.Static<typeof ValidateRelease>;

export const StartCanary = t.strictNamed('StartCanary', {
  percent: t.noted(
    t.integer({ minimum: 1, maximum: 100 }),
    "Percentage of the baseline's new instances routed to the candidate.",
  ),
});
export type StartCanary = t.Static<typeof StartCanary>;

export const PromoteRelease = t.strictNamed('PromoteRelease', {
  force: t.flag(false, 'Recorded in the decision; failing evidence is refused regardless.'),
});
export type PromoteRelease = t.Static<typeof PromoteRelease>;

export const CompareSequences = t.named('CompareSequences', {
  tenant_id: t.nullish(t.text()),
  baseline_sequence_id: t.Uuid,
  candidate_sequence_id: t.Uuid,
});

export const ChangedCall = t.named('ChangedCall', {
  block_id: t.text(),
  member: t.text('handler, or a path such as params.body.amount.'),
});
export type ChangedCall = t.Static<typeof ChangedCall>;

export const Divergence = t.named('Divergence', 'A run that differs with the candidate.', {
  instance_id: t.Uuid,
  recorded_state: t.InstanceStateWord,
  replayed_state: t.InstanceStateWord,
  blocks_added: t.list(t.text()),
  blocks_removed: t.list(t.text()),
  calls_changed: t.optional(t.list(ChangedCall), 'Steps with a changed request; absent if none.'),
});
export type Divergence = t.Static<typeof Divergence>;

export const InconclusiveRun = t.named('InconclusiveRun', {
  instance_id: t.Uuid,
  reason: t.text(),
});
export type InconclusiveRun = t.Static<typeof InconclusiveRun>;

const Evidence = {
  replayed: t.integer('Number of replayed runs, with inconclusive ones.'),
  matches: t.integer(),
  diverged: t.integer('Number of diverged runs; divergences lists the first 20.'),
  inconclusive: t.integer(),
  divergences: t.list(Divergence),
  inconclusive_runs: t.optional(t.list(InconclusiveRun), 'The first 20; absent if none.'),
};

export const ValidationReport = t.named('ValidationReport', 'Result of replays of finished runs.', {
  ...Evidence,
  release_state: ReleaseState,
});
export type ValidationReport = t.Static<typeof ValidationReport>;

export const ValidationSummary = t.named('ValidationSummary', 'Evidence of the last validation.', {
  ...Evidence,
  validated_at: t.Timestamp,
});
export type ValidationSummary = t.Static<typeof ValidationSummary>;

export const Release = t.named('Release', 'Routes new instances from baseline to candidate.', {
  id: t.Uuid,
  tenant_id: t.text(),
  namespace: t.text(),
  sequence_name: t.text(),
  baseline_sequence_id: t.Uuid,
  baseline_version: t.integer(),
  candidate_sequence_id: t.Uuid,
  candidate_version: t.integer(),
  state: ReleaseState,
  canary_percent: t.integer('Last requested percentage; 0 before the first canary.'),
  gates: t.optional(t.list(Gate, 'Gates of the release; absent if none.')),
  in_flight_policy: InFlightPolicy,
  validation_summary: t.optional(ValidationSummary),
  canary_started_at: t.optional(t.Timestamp, 'Last start of the canary; absent before the first.'),
  created_at: t.Timestamp,
  updated_at: t.Timestamp,
});
export type Release = t.Static<typeof Release>;

export const ReleaseDecision = t.named('ReleaseDecision', 'A state change; immutable.', {
  id: t.Uuid,
  release_id: t.Uuid,
  from_state: ReleaseState,
  to_state: ReleaseState,
  actor: t.text('operator, validation, deprecation, or gate:<metric>.'),
  reason: t.text(),
  decided_at: t.Timestamp,
});
export type ReleaseDecision = t.Static<typeof ReleaseDecision>;

const Severity = t.oneOf(SEVERITIES);

export const DiffEntry = t.named('DiffEntry', {
  category: t.oneOf(DIFF_CATEGORIES),
  severity: Severity,
  block_id: t.optional(t.text()),
  summary: t.text(),
});

export const SemanticDiff = t.named('SemanticDiff', 'Differences, most severe first.', {
  entries: t.list(DiffEntry),
  max_severity: t.optional(Severity),
  entries_omitted: t.optional(
    t.integer({ minimum: 1 }),
    `Present above ${DIFF_ENTRIES_MAX} entries: the least severe are omitted.`,
  ),
  candidate_lint: t.optional(t.list(t.text())),
});
export type SemanticDiff = t.Static<typeof SemanticDiff>;

export const EndedCounts = t.named('EndedCounts', 'Finished instances by final state.', {
  total: t.integer(),
  completed: t.integer(),
  failed: t.integer(),
  cancelled: t.integer(),
});
export type EndedCounts = t.Static<typeof EndedCounts>;

export const GateJudgement = t.named('GateJudgement', 'Verdict of a gate with both rates.', {
  gate: Gate,
  baseline_rate: t.optional(t.number()),
  candidate_rate: t.optional(t.number()),
  verdict: t.oneOf(GATE_VERDICTS),
});
export type GateJudgement = t.Static<typeof GateJudgement>;

const HISTORY =
  "baseline_history: the baseline's newest runs before " +
  'the canary, for gates with too few since then.';

const GateEvidence = {
  baseline: EndedCounts,
  baseline_history: t.optional(EndedCounts),
  candidate: EndedCounts,
  gates: t.list(GateJudgement),
};

export const GateReport = t.named(
  'GateReport',
  `Finished instances since the canary started, and current verdicts. ${HISTORY}`,
  GateEvidence,
);
export type GateReport = t.Static<typeof GateReport>;

export const EvaluationReport = t.named(
  'EvaluationReport',
  `Finished instances since the canary started, and verdicts. ${HISTORY}`,
  { ...GateEvidence, auto_rolled_back: t.boolean(), release_state: ReleaseState },
);
export type EvaluationReport = t.Static<typeof EvaluationReport>;

/** Transitions belong to the owner of the releases, on the first shard. */
const owned = { method: 'POST', owner: 'first-shard' } as const;
const move = rowsOf(owned, 400, 404, 409);
const decide = rowsOf(owned, 400, 404, 409, 413);
const evaluate = rowsOf(owned, 400, 404);

export const RELEASE_ROWS = {
  'releases.create': firstShard.post('/releases', {
    summary: 'Draft a release from one version of a sequence to another.',
    body: CreateRelease,
    replies: created(Release, 404, 409, 413),
    action: did('release', 'created'),
  }),
  'releases.list': get('/releases', 'List releases, newest first.', t.list(Release), {
    query: ReleaseListQuery,
  }),
  'releases.get': getById('/releases/{id}', 'Get a release.', Release),
  'releases.diff': getById('/releases/{id}/diff', 'Compare baseline and candidate.', SemanticDiff),
  'releases.gates': getById('/releases/{id}/gates', 'Get current verdicts of gates.', GateReport),
  'releases.decisions': getById(
    '/releases/{id}/decisions',
    'List the decisions about a release, oldest first.',
    t.list(ReleaseDecision),
  ),
  'releases.validate': front.post('/releases/{id}/validate', {
    summary: 'Replay finished runs of the baseline with the candidate, without side effects.',
    body: ValidateRelease,
    isBodyOptional: true,
    replies: ok(ValidationReport, 404, 409, 413),
    action: did('release', 'validated', { shows: ['skip'] }),
  }),
  'releases.canary': decide(
    '/releases/{id}/canary',
    "Route a percentage of the baseline's new instances to the candidate.",
    Release,
    { body: StartCanary, action: did('release', 'started the canary of', { shows: ['percent'] }) },
  ),
  'releases.evaluate': evaluate(
    '/releases/{id}/evaluate',
    'Evaluate the gates now. A failed gate rolls a canary back.',
    EvaluationReport,
    { repeats: 'the gates are evaluated again' },
  ),
  'releases.promote': decide(
    '/releases/{id}/promote',
    'Route all new instances of the baseline to the candidate permanently.',
    Release,
    {
      body: PromoteRelease,
      isBodyOptional: true,
      action: did('release', 'promoted', { shows: ['force'] }),
    },
  ),
  'releases.pause': move(
    '/releases/{id}/pause',
    'Route new instances to the baseline until the canary continues.',
    Release,
    {
      action: did('release', 'paused'),
    },
  ),
  'releases.rollback': move(
    '/releases/{id}/rollback',
    'Route new instances to the baseline permanently.',
    Release,
    {
      repeats: 'a release that was rolled back is returned unchanged',
      action: did('release', 'rolled back'),
    },
  ),
  'sequences.compare': front.post('/sequences/releases/diff', {
    summary: 'Compare two stored definitions.',
    body: CompareSequences,
    repeats: 'it changes nothing',
    replies: ok(SemanticDiff, 404, 413),
  }),
} as const satisfies Record<string, RouteRow>;
