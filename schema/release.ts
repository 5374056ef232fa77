/** Wire shapes and routes of releases (docs/releases.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  Cursor,
  flag,
  IdParams,
  INT32_MAX,
  InstanceStateWord,
  named,
  noted,
  oneOfWords,
  optional,
  Timestamp,
  Uuid,
  withDefault,
} from './common.js';
import { DIFF_CATEGORIES, DIFF_ENTRIES_MAX, SEVERITIES } from './diff-entry.js';
import {
  GATE_METRICS,
  GATE_VERDICTS,
  IN_FLIGHT_POLICIES,
  RELEASE_STATES,
} from './release-states.js';
import { get, getById, listOf, type RouteRow, refusals, rowsOf } from './route-row.js';
import { strictNamed } from './strict.js';

/** There are two metrics. */
export const GATES_MAX = 16;
const RELEASE_LIST_DEFAULT = 100;
export const RELEASE_LIST_MAX = 1_000;
export const SAMPLE_DEFAULT = 10;
export const SAMPLE_MAX = 50;

export const ReleaseState = oneOfWords(RELEASE_STATES);
export type ReleaseState = Static<typeof ReleaseState>;

export const Gate = named(
  'Gate',
  'Evaluated once both versions have min_sample finished instances. Fails if the ' +
    "candidate's rate exceeds the baseline's by more than max_regression.",
  {
    metric: oneOfWords(
      GATE_METRICS,
      'error_rate: share of failed instances among finished ' +
        'ones; cancel_rate: share of cancelled ones.',
    ),
    max_regression: Type.Number({
      minimum: 0,
      description: "Allowed excess of the candidate's rate over the baseline's, 0 to 1.",
    }),
    min_sample: noted(
      Type.Integer({ minimum: 0, maximum: INT32_MAX }),
      'Finished instances of each version required for a verdict.',
    ),
  },
);
export type Gate = Static<typeof Gate>;

const InFlightPolicy = oneOfWords(
  IN_FLIGHT_POLICIES,
  'Neither migrates running instances: with operator_decision an operator does so explicitly.',
);

export const CreateRelease = strictNamed(
  'CreateRelease',
  'Baseline and candidate are versions of one sequence name in one namespace.',
  {
    tenant_id: noted(optional(Type.String()), 'Must equal the header x-tenant-id, if sent.'),
    baseline_sequence_id: Uuid,
    candidate_sequence_id: Uuid,
    gates: optional(Type.Array(Gate, { maxItems: GATES_MAX, default: [] })),
    in_flight_policy: optional(withDefault(InFlightPolicy, 'pin')),
  },
);
export type CreateRelease = Static<typeof CreateRelease>;

/** A limit out of range becomes the nearest bound. */
const ReleaseListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  state: Type.Optional(ReleaseState),
  sequence_name: Type.Optional(Type.String()),
  limit: Type.Integer({
    default: RELEASE_LIST_DEFAULT,
    description: `At least 1 and at most ${RELEASE_LIST_MAX}.`,
  }),
  cursor: Cursor,
});

/** A sample out of range becomes the nearest bound. */
export const ValidateRelease = strictNamed('ValidateRelease', {
  sample: noted(
    optional(Type.Integer({ minimum: 0, default: SAMPLE_DEFAULT })),
    `Number of newest finished runs to replay: at least 1 and at most ${SAMPLE_MAX}.`,
  ),
  skip: noted(flag(false), 'Makes the release ready without a replay.'),
});
export type ValidateRelease = Static<typeof ValidateRelease>;

export const StartCanary = strictNamed('StartCanary', {
  percent: noted(
    Type.Integer({ minimum: 1, maximum: 100 }),
    "Percentage of the baseline's new instances routed to the candidate.",
  ),
});
export type StartCanary = Static<typeof StartCanary>;

export const PromoteRelease = strictNamed('PromoteRelease', {
  force: noted(flag(false), 'Recorded in the decision; failing evidence is refused regardless.'),
});
export type PromoteRelease = Static<typeof PromoteRelease>;

export const CompareSequences = named('CompareSequences', {
  tenant_id: optional(Type.String()),
  baseline_sequence_id: Uuid,
  candidate_sequence_id: Uuid,
});

export const ChangedCall = named('ChangedCall', {
  block_id: Type.String(),
  member: Type.String({ description: 'handler, or a path such as params.body.amount.' }),
});
export type ChangedCall = Static<typeof ChangedCall>;

export const Divergence = named('Divergence', 'A run that takes another path with the candidate.', {
  instance_id: Uuid,
  recorded_state: InstanceStateWord,
  replayed_state: InstanceStateWord,
  blocks_added: Type.Array(Type.String()),
  blocks_removed: Type.Array(Type.String()),
  calls_changed: noted(
    Type.Optional(Type.Array(ChangedCall)),
    'Steps whose request differs from the recorded one; absent if none.',
  ),
});
export type Divergence = Static<typeof Divergence>;

export const InconclusiveRun = named('InconclusiveRun', {
  instance_id: Uuid,
  reason: Type.String(),
});
export type InconclusiveRun = Static<typeof InconclusiveRun>;

const Evidence = {
  replayed: Type.Integer({ description: 'Includes the inconclusive runs.' }),
  matches: Type.Integer(),
  diverged: Type.Integer({ description: 'All diverged runs; divergences lists the first 20.' }),
  inconclusive: Type.Integer(),
  divergences: Type.Array(Divergence),
  inconclusive_runs: noted(
    Type.Optional(Type.Array(InconclusiveRun)),
    'The first 20 inconclusive runs with reasons; absent if none.',
  ),
};

export const ValidationReport = named('ValidationReport', 'Result of replays of finished runs.', {
  ...Evidence,
  release_state: ReleaseState,
});
export type ValidationReport = Static<typeof ValidationReport>;

export const ValidationSummary = named('ValidationSummary', 'Evidence of the last validation.', {
  ...Evidence,
  validated_at: Timestamp,
});
export type ValidationSummary = Static<typeof ValidationSummary>;

export const Release = named('Release', 'Routes new instances from baseline to candidate.', {
  id: Uuid,
  tenant_id: Type.String(),
  namespace: Type.String(),
  sequence_name: Type.String(),
  baseline_sequence_id: Uuid,
  baseline_version: Type.Integer(),
  candidate_sequence_id: Uuid,
  candidate_version: Type.Integer(),
  state: ReleaseState,
  canary_percent: noted(Type.Integer(), 'Last requested percentage; 0 before the first canary.'),
  gates: Type.Optional(Type.Array(Gate, { description: 'Absent if there are none.' })),
  in_flight_policy: InFlightPolicy,
  validation_summary: Type.Optional(ValidationSummary),
  canary_started_at: Type.Optional(
    noted(Timestamp, 'Last start of the canary; absent before the first.'),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Release = Static<typeof Release>;

export const ReleaseDecision = named('ReleaseDecision', 'A state change; immutable.', {
  id: Uuid,
  release_id: Uuid,
  from_state: ReleaseState,
  to_state: ReleaseState,
  actor: Type.String({ description: 'operator, validation, deprecation, or gate:<metric>.' }),
  reason: Type.String(),
  decided_at: Timestamp,
});
export type ReleaseDecision = Static<typeof ReleaseDecision>;

const Severity = oneOfWords(SEVERITIES);

export const DiffEntry = named('DiffEntry', {
  category: oneOfWords(DIFF_CATEGORIES),
  severity: Severity,
  block_id: Type.Optional(Type.String()),
  summary: Type.String(),
});

export const SemanticDiff = named('SemanticDiff', 'Differences, most severe first.', {
  entries: Type.Array(DiffEntry),
  max_severity: Type.Optional(Severity),
  entries_omitted: noted(
    Type.Optional(Type.Integer({ minimum: 1 })),
    `Present above ${DIFF_ENTRIES_MAX} entries: the least severe are omitted.`,
  ),
  candidate_lint: Type.Optional(Type.Array(Type.String())),
});
export type SemanticDiff = Static<typeof SemanticDiff>;

export const EndedCounts = named('EndedCounts', 'Finished instances of a version by final state.', {
  total: Type.Integer(),
  completed: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
});
export type EndedCounts = Static<typeof EndedCounts>;

export const GateJudgement = named('GateJudgement', 'Verdict of a gate with both rates.', {
  gate: Gate,
  baseline_rate: Type.Optional(Type.Number()),
  candidate_rate: Type.Optional(Type.Number()),
  verdict: oneOfWords(GATE_VERDICTS),
});
export type GateJudgement = Static<typeof GateJudgement>;

const HISTORY =
  "baseline_history: the baseline's newest runs before " +
  'the canary, for gates with too few since then.';

const GateEvidence = {
  baseline: EndedCounts,
  baseline_history: Type.Optional(EndedCounts),
  candidate: EndedCounts,
  gates: listOf(GateJudgement),
};

export const GateReport = named(
  'GateReport',
  `Finished instances since the canary started, and current verdicts. ${HISTORY}`,
  GateEvidence,
);
export type GateReport = Static<typeof GateReport>;

export const EvaluationReport = named(
  'EvaluationReport',
  `Finished instances since the canary started, and verdicts. ${HISTORY}`,
  { ...GateEvidence, auto_rolled_back: Type.Boolean(), release_state: ReleaseState },
);
export type EvaluationReport = Static<typeof EvaluationReport>;

/** Transitions belong to the owner of the releases, on the first shard. */
const owned = { method: 'POST', params: IdParams, owner: 'first-shard' } as const;
const move = rowsOf(owned, 400, 404, 409);
const decide = rowsOf(owned, 400, 404, 409, 413);
const evaluate = rowsOf(owned, 400, 404);

export const RELEASE_ROWS = {
  'releases.create': {
    method: 'POST',
    path: '/releases',
    summary: 'Draft a release from one version of a sequence to another.',
    owner: 'first-shard',
    body: CreateRelease,
    replies: { 201: Release, ...refusals(400, 404, 409, 413) },
  },
  'releases.list': get('/releases', 'List releases, newest first.', listOf(Release), {
    query: ReleaseListQuery,
  }),
  'releases.get': getById('/releases/{id}', 'Get a release.', Release),
  'releases.diff': getById('/releases/{id}/diff', 'Compare baseline and candidate.', SemanticDiff),
  'releases.gates': getById('/releases/{id}/gates', 'Get current verdicts of gates.', GateReport),
  'releases.decisions': getById(
    '/releases/{id}/decisions',
    'List the decisions about a release, oldest first.',
    listOf(ReleaseDecision),
  ),
  'releases.validate': {
    method: 'POST',
    path: '/releases/{id}/validate',
    summary: 'Replay finished runs of the baseline with the candidate, without side effects.',
    params: IdParams,
    owner: 'front',
    body: ValidateRelease,
    isBodyOptional: true,
    replies: { 200: ValidationReport, ...refusals(400, 404, 409, 413) },
  },
  'releases.canary': decide(
    '/releases/{id}/canary',
    "Route a percentage of the baseline's new instances to the candidate.",
    Release,
    { body: StartCanary },
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
    { body: PromoteRelease, isBodyOptional: true },
  ),
  'releases.pause': move(
    '/releases/{id}/pause',
    'Route new instances to the baseline until the canary continues.',
    Release,
  ),
  'releases.rollback': move(
    '/releases/{id}/rollback',
    'Route new instances to the baseline permanently.',
    Release,
    { repeats: 'a release that was rolled back is returned unchanged' },
  ),
  'sequences.compare': {
    method: 'POST',
    path: '/sequences/releases/diff',
    summary: 'Compare two stored definitions.',
    owner: 'front',
    body: CompareSequences,
    repeats: 'it changes nothing',
    replies: { 200: SemanticDiff, ...refusals(400, 404, 413) },
  },
} as const satisfies Record<string, RouteRow>;
