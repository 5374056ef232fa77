/** The lifecycle of a release: its progress, its possible actions and its description. Pure. */

import type {
  GateReport,
  Release,
  ReleaseDecision,
  ReleaseState,
} from 'durable-workflow-engine-client';
import { countOf, wordsOf } from '../../lib/format.ts';

/** Progress of a step: skipped steps were never entered. */
export type StepMark = 'done' | 'skipped' | 'current' | 'open';

export interface Step {
  readonly state: ReleaseState;
  readonly mark: StepMark;
  /** When the release last entered it. */
  readonly at: string | undefined;
}

const LINE: readonly ReleaseState[] = ['draft', 'validating', 'ready', 'canary', 'promoted'];

/** @param decisions oldest first */
export function stepsOf(state: ReleaseState, decisions: readonly ReleaseDecision[]): Step[] {
  const line = lineOf(state, decisions);
  const current = line.indexOf(state);
  return line.map((step, index) => {
    const at = decisions.findLast(({ to_state }) => to_state === step)?.decided_at;
    const mark = index > current ? 'open' : index === current ? 'current' : at ? 'done' : 'skipped';
    return { state: step, mark, at: mark === 'open' ? undefined : at };
  });
}

/** The states of the lifecycle; states off the main line replace the one in which the release left it. */
function lineOf(state: ReleaseState, decisions: readonly ReleaseDecision[]): ReleaseState[] {
  switch (state) {
    case 'paused':
      return LINE.map((step) => (step === 'canary' ? 'paused' : step));
    case 'rolled_back':
      return LINE.map((step) => (step === 'promoted' ? 'rolled_back' : step));
    case 'failed': {
      const last = decisions.findLast(({ to_state }) => to_state === 'failed');
      return [...LINE.slice(0, LINE.indexOf(last?.from_state ?? 'draft') + 1), 'failed'];
    }
    default:
      return [...LINE];
  }
}

export type ActionName = 'validate' | 'canary' | 'evaluate' | 'promote' | 'pause' | 'rollback';

const ACTIONS: Readonly<Record<ReleaseState, readonly ActionName[]>> = {
  draft: ['validate'],
  validating: [],
  ready: ['canary'],
  canary: ['promote', 'evaluate', 'pause', 'rollback'],
  paused: ['canary', 'rollback'],
  promoted: [],
  rolled_back: [],
  failed: [],
};

/** The actions that the server accepts in this state, the one that advances the release first. */
export function actionsOf(state: ReleaseState): readonly ActionName[] {
  return ACTIONS[state];
}

/** Describes the state and what comes next. @param report undefined until it is known */
export function sentenceOf(
  release: Release,
  decisions: readonly ReleaseDecision[],
  report?: GateReport,
): string {
  const [old, next] = [
    `version ${release.baseline_version}`,
    `version ${release.candidate_version}`,
  ];
  const last = decisions.at(-1);
  switch (release.state) {
    case 'draft':
      return `Nothing is routed yet. Validate the release next: finished instances of ${old} are replayed with ${next}.`;
    case 'validating':
      return `Finished instances of ${old} are being replayed with ${next}. The release is ready when all are done.`;
    case 'ready':
      return `Nothing is routed yet.${evidenceWords(release)} Start the canary next to route a share of the new instances to ${next}.`;
    case 'canary':
      return `${release.canary_percent} % of the new instances of ${old} run ${next}. ${outlookOf(report)}`;
    case 'paused':
      return `All new instances run ${old}. Start the canary again with any share, or roll back for good.`;
    case 'promoted':
      return `All new instances run ${next}. Running instances stay on their version. To go back, deprecate ${next} or create a release from ${next} to ${old}.`;
    case 'rolled_back': {
      const metric = last?.actor.startsWith('gate:') ? last.actor.slice('gate:'.length) : undefined;
      const why =
        metric === undefined ? '' : ` The gate on the ${wordsOf(metric).toLowerCase()} failed.`;
      return `All new instances run ${old}.${why} This is final: a corrected version needs a new release.`;
    }
    case 'failed':
      return `The release failed because ${next} cannot run: ${last?.reason ?? 'see the decisions'}. A corrected version needs a new release.`;
  }
}

function evidenceWords({ validation_summary: summary }: Release): string {
  if (summary === undefined) return ' The release was not validated.';
  const { diverged, replayed } = summary;
  if (diverged > 0)
    return ` ${diverged} of ${countOf(replayed, 'replayed instance')} diverged: review the evidence first.`;
  if (replayed === 0) return ' There were no finished instances to replay.';
  return '';
}

/** What follows from the current verdicts. */
export function outlookOf(report: GateReport | undefined): string {
  if (report === undefined) return 'The next step depends on the gates.';
  const { gates } = report;
  if (gates.length === 0)
    return 'There are no gates: promote the release or roll it back when you are ready.';
  if (gates.some(({ verdict }) => verdict === 'fail')) {
    return 'A gate fails: the release is rolled back automatically.';
  }
  const open = gates.filter(({ verdict }) => verdict === 'inconclusive').length;
  if (open === 0) return 'All gates pass: the release can be promoted.';
  return `The release cannot be promoted yet: ${open === 1 ? 'one gate has' : `${open} gates have`} too few finished instances.`;
}
