/** The life of a release in steps and words: how far it is, what comes next, and what can be done with it. Pure. */

import type {
  GateReport,
  Release,
  ReleaseDecision,
  ReleaseState,
} from 'durable-workflow-engine-client';
import { countOf, wordsOf } from '../../lib/format.ts';

/** What happened to a step: skipped ones were never entered. */
export type StepMark = 'done' | 'skipped' | 'current' | 'open';

export interface Step {
  readonly state: ReleaseState;
  readonly mark: StepMark;
  /** When the release came to it last. */
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

/** The states that it goes through, with those beside the line in the place where they left it. */
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

/** What the server takes in this state, what leads on first. */
export function actionsOf(state: ReleaseState): readonly ActionName[] {
  return ACTIONS[state];
}

/** What the state means now and what comes next. @param report undefined while it is not known */
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
      return `Nothing is routed yet. Validate it next: ended runs of ${old} are replayed through ${next}.`;
    case 'validating':
      return `Ended runs of ${old} are replayed through ${next}. It is ready as soon as they are through.`;
    case 'ready':
      return `Nothing is routed yet.${evidenceWords(release)} Start the canary next, so that ${next} gets a share of the new instances.`;
    case 'canary':
      return `${release.canary_percent} % of the new instances of ${old} run ${next}. ${outlookOf(report)}`;
    case 'paused':
      return `All new instances run ${old}. Start the canary again with any share, or roll back for good.`;
    case 'promoted':
      return `All new instances run ${next}. Those that ran before stay in their version. To go back, deprecate ${next}, or release from ${next} to ${old}.`;
    case 'rolled_back': {
      const metric = last?.actor.startsWith('gate:') ? last.actor.slice('gate:'.length) : undefined;
      const why =
        metric === undefined ? '' : ` The gate on the ${wordsOf(metric).toLowerCase()} failed.`;
      return `All new instances run ${old}, for good.${why} A mended version needs a new release.`;
    }
    case 'failed':
      return `It has ended, for ${next} cannot run: ${last?.reason ?? 'see the decisions'}. A mended version needs a new release.`;
  }
}

function evidenceWords({ validation_summary: summary }: Release): string {
  if (summary === undefined) return ' It was not validated.';
  const { diverged, replayed } = summary;
  if (diverged > 0)
    return ` ${diverged} of ${countOf(replayed, 'replayed run')} diverged: look at the evidence first.`;
  if (replayed === 0) return ' There were no ended runs to replay.';
  return '';
}

/** What the gates lead to. */
export function outlookOf(report: GateReport | undefined): string {
  if (report === undefined) return 'Its gates decide what comes next.';
  const { gates } = report;
  if (gates.length === 0)
    return 'It has no gates: promote it or roll it back when you know enough.';
  if (gates.some(({ verdict }) => verdict === 'fail')) {
    return 'A gate fails: it is rolled back by itself.';
  }
  const open = gates.filter(({ verdict }) => verdict === 'inconclusive').length;
  if (open === 0) return 'Every gate passes: it can be promoted.';
  return `It cannot be promoted yet: ${open === 1 ? 'one gate has' : `${open} gates have`} too few ended instances.`;
}
