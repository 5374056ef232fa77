/** Wire shapes and routes of releases (docs/releases.md). */

import { type Static, Type } from '@sinclair/typebox';
import {
  Cursor,
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
import { listOf, type RouteRow, read, readById, refusals } from './route-row.js';
import { strict } from './strict.js';

/** Nobody needs more: there are two metrics. */
export const GATES_MAX = 16;
export const RELEASE_LIST_DEFAULT = 100;
export const RELEASE_LIST_MAX = 1_000;
/** How many ended runs are replayed (docs/releases.md). */
export const SAMPLE_DEFAULT = 10;
export const SAMPLE_MAX = 50;

export const ReleaseState = oneOfWords(RELEASE_STATES);
export type ReleaseState = Static<typeof ReleaseState>;

export const Gate = named(
  'Gate',
  'Judged once both versions have min_sample ended instances: it fails when the rate of the ' +
    'candidate is above that of the baseline by more than max_regression.',
  {
    metric: oneOfWords(
      GATE_METRICS,
      'error_rate: failed among all that ended; cancel_rate: cancelled among them.',
    ),
    max_regression: Type.Number({
      minimum: 0,
      description: 'By how much the rate of the candidate may exceed that of the baseline, 0 to 1.',
    }),
    min_sample: Type.Integer({
      minimum: 0,
      maximum: INT32_MAX,
      description: 'How many ended instances each version needs for a verdict.',
    }),
  },
);
export type Gate = Static<typeof Gate>;

const InFlightPolicy = oneOfWords(
  IN_FLIGHT_POLICIES,
  'Neither moves a running instance: with operator_decision an operator migrates them explicitly.',
);

export const CreateRelease = strict(
  named('CreateRelease', 'Baseline and candidate are versions of one name in one namespace.', {
    tenant_id: optional(
      Type.String({ description: 'The same as in the header x-tenant-id when that is sent.' }),
    ),
    baseline_sequence_id: Uuid,
    candidate_sequence_id: Uuid,
    gates: optional(Type.Array(Gate, { maxItems: GATES_MAX, default: [] })),
    in_flight_policy: optional(withDefault(InFlightPolicy, 'pin')),
  }),
);
export type CreateRelease = Static<typeof CreateRelease>;

/** A limit beyond the bounds is taken for the nearest one. */
export const ReleaseListQuery = Type.Object({
  tenant_id: Type.Optional(Type.String()),
  state: Type.Optional(ReleaseState),
  sequence_name: Type.Optional(Type.String()),
  limit: Type.Integer({
    default: RELEASE_LIST_DEFAULT,
    description: `At least 1 and at most ${RELEASE_LIST_MAX}.`,
  }),
  cursor: Cursor,
});
export type ReleaseListQuery = Static<typeof ReleaseListQuery>;

/** A sample beyond the bounds is taken for the nearest one. */
export const ValidateRelease = strict(
  named('ValidateRelease', {
    sample: optional(
      Type.Integer({
        minimum: 0,
        default: SAMPLE_DEFAULT,
        description: `How many of the newest ended runs are replayed: at least 1, at most ${SAMPLE_MAX}.`,
      }),
    ),
    skip: optional(
      Type.Boolean({ default: false, description: 'Makes the release ready without a replay.' }),
    ),
  }),
);
export type ValidateRelease = Static<typeof ValidateRelease>;

export const StartCanary = strict(
  named('StartCanary', {
    percent: Type.Integer({
      minimum: 1,
      maximum: 100,
      description: 'Of new instances of the baseline, those that the candidate gets.',
    }),
  }),
);
export type StartCanary = Static<typeof StartCanary>;

export const PromoteRelease = strict(
  named('PromoteRelease', {
    force: optional(
      Type.Boolean({
        default: false,
        description: 'Noted in the decision; evidence that does not pass is refused all the same.',
      }),
    ),
  }),
);
export type PromoteRelease = Static<typeof PromoteRelease>;

export const CompareSequences = named('CompareSequences', {
  tenant_id: optional(Type.String()),
  baseline_sequence_id: Uuid,
  candidate_sequence_id: Uuid,
});
export type CompareSequences = Static<typeof CompareSequences>;

export const ChangedCall = named('ChangedCall', {
  block_id: Type.String(),
  member: Type.String({ description: 'handler, or a path such as params.body.amount.' }),
});
export type ChangedCall = Static<typeof ChangedCall>;

export const Divergence = named('Divergence', 'A run that went another way with the candidate.', {
  instance_id: Uuid,
  recorded_state: InstanceStateWord,
  replayed_state: InstanceStateWord,
  blocks_added: Type.Array(Type.String()),
  blocks_removed: Type.Array(Type.String()),
  calls_changed: Type.Optional(
    Type.Array(ChangedCall, {
      description: 'Steps that ask for something else than was recorded; left out without any.',
    }),
  ),
});
export type Divergence = Static<typeof Divergence>;

export const InconclusiveRun = named('InconclusiveRun', {
  instance_id: Uuid,
  reason: Type.String(),
});
export type InconclusiveRun = Static<typeof InconclusiveRun>;

const Evidence = {
  replayed: Type.Integer({ description: 'The inconclusive ones among them.' }),
  matches: Type.Integer(),
  diverged: Type.Integer({ description: 'All, of which divergences lists the first 20.' }),
  inconclusive: Type.Integer(),
  divergences: Type.Array(Divergence),
  inconclusive_runs: Type.Optional(
    Type.Array(InconclusiveRun, {
      description: 'The first 20 of those that show nothing, and why; left out without any.',
    }),
  ),
};

export const ValidationReport = named(
  'ValidationReport',
  'What replays of ended runs of the baseline showed.',
  { ...Evidence, release_state: ReleaseState },
);
export type ValidationReport = Static<typeof ValidationReport>;

export const ValidationSummary = named(
  'ValidationSummary',
  'The evidence of the last validation.',
  { ...Evidence, validated_at: Timestamp },
);
export type ValidationSummary = Static<typeof ValidationSummary>;

export const Release = named('Release', 'Leads new instances from the baseline to the candidate.', {
  id: Uuid,
  tenant_id: Type.String(),
  namespace: Type.String(),
  sequence_name: Type.String(),
  baseline_sequence_id: Uuid,
  baseline_version: Type.Integer(),
  candidate_sequence_id: Uuid,
  candidate_version: Type.Integer(),
  state: ReleaseState,
  canary_percent: Type.Integer({
    description: 'What was asked for last; 0 before the first canary.',
  }),
  gates: Type.Optional(Type.Array(Gate, { description: 'Left out when there are none.' })),
  in_flight_policy: InFlightPolicy,
  validation_summary: Type.Optional(ValidationSummary),
  canary_started_at: Type.Optional(
    noted(Timestamp, 'Of the last start of the canary; left out until the first.'),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
});
export type Release = Static<typeof Release>;

export const ReleaseDecision = named('ReleaseDecision', 'A change of state; never altered.', {
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
export type DiffEntry = Static<typeof DiffEntry>;

export const SemanticDiff = named(
  'SemanticDiff',
  'What changes from one definition to another, the gravest first.',
  {
    entries: Type.Array(DiffEntry),
    max_severity: Type.Optional(Severity),
    entries_omitted: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: `Present when there are more than ${DIFF_ENTRIES_MAX}: the least severe are left out.`,
      }),
    ),
    candidate_lint: Type.Optional(Type.Array(Type.String())),
  },
);
export type SemanticDiff = Static<typeof SemanticDiff>;

export const EndedCounts = named('EndedCounts', 'How many instances of a version ended, and how.', {
  total: Type.Integer(),
  completed: Type.Integer(),
  failed: Type.Integer(),
  cancelled: Type.Integer(),
});
export type EndedCounts = Static<typeof EndedCounts>;

export const GateJudgement = named('GateJudgement', 'What a gate says of both versions.', {
  gate: Gate,
  baseline_rate: Type.Optional(Type.Number()),
  candidate_rate: Type.Optional(Type.Number()),
  verdict: oneOfWords(GATE_VERDICTS),
});
export type GateJudgement = Static<typeof GateJudgement>;

const HISTORY =
  'baseline_history: the newest runs of the baseline before the canary, for gates that have too few since then.';

const GateEvidence = {
  baseline: EndedCounts,
  baseline_history: Type.Optional(EndedCounts),
  candidate: EndedCounts,
  gates: listOf(GateJudgement),
};

export const GateReport = named(
  'GateReport',
  `Ended instances since the canary began, and what the gates say of them now. ${HISTORY}`,
  GateEvidence,
);
export type GateReport = Static<typeof GateReport>;

export const EvaluationReport = named(
  'EvaluationReport',
  `Ended instances since the canary began, and what the gates say of them. ${HISTORY}`,
  { ...GateEvidence, auto_rolled_back: Type.Boolean(), release_state: ReleaseState },
);
export type EvaluationReport = Static<typeof EvaluationReport>;

// ---------------------------------------------------------------- routes

/** The transitions belong to the owner of the releases, on the first shard. */
const move = {
  method: 'POST',
  params: IdParams,
  owner: 'first-shard',
} as const;

export const RELEASE_ROWS = {
  'releases.create': {
    method: 'POST',
    path: '/releases',
    summary: 'Draft a release that leads from one version of a sequence to another.',
    owner: 'first-shard',
    body: CreateRelease,
    replies: { 201: Release, ...refusals(400, 404, 409, 413) },
  },
  'releases.list': {
    ...read,
    path: '/releases',
    summary: 'List releases, newest first.',
    query: ReleaseListQuery,
    replies: { 200: listOf(Release), ...refusals(400) },
  },
  'releases.get': {
    ...readById,
    path: '/releases/{id}',
    summary: 'Get a release.',
    replies: { 200: Release, ...refusals(400, 404) },
  },
  'releases.diff': {
    ...readById,
    path: '/releases/{id}/diff',
    summary: 'Tell what changes from the baseline to the candidate.',
    replies: { 200: SemanticDiff, ...refusals(400, 404) },
  },
  'releases.gates': {
    ...readById,
    path: '/releases/{id}/gates',
    summary: 'Tell what the gates say now. Changes nothing.',
    replies: { 200: GateReport, ...refusals(400, 404) },
  },
  'releases.decisions': {
    ...readById,
    path: '/releases/{id}/decisions',
    summary: 'List the decisions about a release, oldest first.',
    replies: { 200: listOf(ReleaseDecision), ...refusals(400, 404) },
  },
  'releases.validate': {
    method: 'POST',
    path: '/releases/{id}/validate',
    summary: 'Replay ended runs of the baseline through the candidate, without any side effect.',
    params: IdParams,
    owner: 'front',
    body: ValidateRelease,
    isBodyOptional: true,
    replies: { 200: ValidationReport, ...refusals(400, 404, 409, 413) },
  },
  'releases.canary': {
    ...move,
    path: '/releases/{id}/canary',
    summary: 'Route a share of the new instances of the baseline to the candidate.',
    body: StartCanary,
    replies: { 200: Release, ...refusals(400, 404, 409, 413) },
  },
  'releases.evaluate': {
    ...move,
    path: '/releases/{id}/evaluate',
    summary: 'Judge the gates by the instances that have ended; a failing one rolls a canary back.',
    repeats: 'the gates are judged again',
    replies: { 200: EvaluationReport, ...refusals(400, 404) },
  },
  'releases.promote': {
    ...move,
    path: '/releases/{id}/promote',
    summary: 'Route all new instances of the baseline to the candidate, for good.',
    body: PromoteRelease,
    isBodyOptional: true,
    replies: { 200: Release, ...refusals(400, 404, 409, 413) },
  },
  'releases.pause': {
    ...move,
    path: '/releases/{id}/pause',
    summary: 'Route new instances to the baseline again, for the time being.',
    replies: { 200: Release, ...refusals(400, 404, 409) },
  },
  'releases.rollback': {
    ...move,
    path: '/releases/{id}/rollback',
    summary: 'Route new instances to the baseline again, for good.',
    repeats: 'a release that was rolled back is answered as it is',
    replies: { 200: Release, ...refusals(400, 404, 409) },
  },
  'sequences.compare': {
    method: 'POST',
    path: '/sequences/releases/diff',
    summary: 'Tell what changes from one stored definition to another.',
    owner: 'front',
    body: CompareSequences,
    repeats: 'it changes nothing',
    replies: { 200: SemanticDiff, ...refusals(400, 404, 413) },
  },
} as const satisfies Record<string, RouteRow>;
