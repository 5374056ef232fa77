/** Commands for releases, which roll out a new version of a sequence. */

import type { EvaluationReport, Gate, Release, ValidationReport } from '../../client/src/index.js';
import { RELEASE_STATES, type ReleaseState } from '../../schema/release-states.js';
import { type Argument, acting, type Command, type Given, listing, showing } from '../command.js';
import { EXIT, usageError } from '../exit.js';
import type { Session } from '../session.js';
import { ago, type Column, memberText, tableLines, toned } from '../table.js';
import { toneOf } from '../tones.js';
import { isId, VERSION_REFERENCE, versionGiven } from '../version-reference.js';

const ID: Argument = { name: 'id', about: 'The id of a release.' };

const said = ({
  state,
  sequence_name,
  baseline_version,
  candidate_version,
  canary_percent,
}: Release) => {
  const share = state === 'canary' ? `, ${canary_percent} % of new instances` : '';
  return `${memberText(sequence_name)} v${baseline_version} → v${candidate_version} is ${state}${share}.`;
};

/** Parses `error_rate:0.05:20`: metric, allowed increase, and minimum of finished instances. */
function gatesOf(given: Given): Gate[] {
  return given.texts('gate').map((text) => {
    const [metric, max_regression, min_sample] = text.split(':');
    const gate = {
      metric: metric as Gate['metric'],
      max_regression: Number(max_regression),
      min_sample: Number(min_sample),
    };
    if (Number.isNaN(gate.max_regression) || Number.isNaN(gate.min_sample)) {
      throw usageError(
        `--gate must be metric:max_regression:min_sample, such as error_rate:0.05:20, not ${text}`,
      );
    }
    return gate;
  });
}

const SIDES = ['baseline', 'candidate'] as const;

/** The id of a version, given as an argument or as an option. @throws CommandError */
async function sideGiven(session: Session, given: Given, at: 0 | 1): Promise<string> {
  const text = (given.args[at] as string | undefined) ?? given.text(SIDES[at]);
  if (text === undefined) {
    throw usageError('a release needs two versions, such as order@1 order@2');
  }
  return isId(text) ? text : (await versionGiven(session, text)).id;
}

async function status({ client }: Session, given: Given) {
  const [release, decisions] = await Promise.all([
    client.releases.get(given.arg()),
    client.releases.decisions(given.arg()),
  ]);
  return { ...release, decisions };
}

function evaluationLines({ out }: Session, report: EvaluationReport): string[] {
  const counts = ({ total, completed, failed, cancelled }: EvaluationReport['baseline']) =>
    `${total} ended: ${completed} completed, ${failed} failed, ${cancelled} cancelled`;
  return [
    `The release is ${report.release_state}${report.auto_rolled_back ? ': rolled back by this evaluation' : ''}.`,
    `baseline   ${counts(report.baseline)}`,
    `candidate  ${counts(report.candidate)}`,
    ...report.gates.map(({ gate, verdict, baseline_rate, candidate_rate }) => {
      const rates = `${rate(baseline_rate)} → ${rate(candidate_rate)}`;
      const tone = verdict === 'pass' ? 'good' : verdict === 'fail' ? 'bad' : 'busy';
      return `${toned(verdict.padEnd(12), tone, out.paint)} ${gate.metric} ${rates}, at most ${gate.max_regression} more`;
    }),
  ];
}

function validationLines({ out }: Session, report: ValidationReport): string[] {
  const { release_state, replayed, matches, diverged, inconclusive, divergences } = report;
  const runs = report.inconclusive_runs ?? [];
  const counts = `${matches} match, ${diverged} diverge, ${inconclusive} are inconclusive`;
  return [
    `The release is ${release_state}: of ${replayed} replayed runs ${counts}.`,
    ...(divergences.length === 0 ? [] : tableLines(DIVERGENCE_COLUMNS, divergences, out.place)),
    ...(runs.length === 0 ? [] : tableLines(INCONCLUSIVE_COLUMNS, runs, out.place)),
  ];
}

type Divergence = ValidationReport['divergences'][number];
type Inconclusive = NonNullable<ValidationReport['inconclusive_runs']>[number];

const INSTANCE = { head: 'INSTANCE', text: (run: Inconclusive | Divergence) => run.instance_id };

const DIVERGENCE_COLUMNS: readonly Column<Divergence>[] = [
  { ...INSTANCE, isWhole: true },
  {
    head: 'STATE',
    text: ({ recorded_state: before, replayed_state: now }) =>
      before === now ? now : `${before} → ${now}`,
    tone: ({ replayed_state }) => toneOf(replayed_state),
  },
  { head: 'MORE STEPS', text: ({ blocks_added }) => memberText(blocks_added.join(', ')) },
  { head: 'FEWER STEPS', text: ({ blocks_removed }) => memberText(blocks_removed.join(', ')) },
  {
    head: 'OTHER REQUESTS',
    text: ({ calls_changed = [] }) =>
      memberText(calls_changed.map(({ block_id }) => block_id).join(', ')),
  },
];

const INCONCLUSIVE_COLUMNS: readonly Column<Inconclusive>[] = [
  { ...INSTANCE, isWhole: true },
  { head: 'INCONCLUSIVE, SINCE', text: ({ reason }) => reason },
];

const rate = (value: number | undefined) => (value === undefined ? '?' : value.toFixed(3));

export const RELEASE_COMMANDS: readonly Command[] = [
  acting({
    name: 'releases create',
    summary: 'Create a release from one version of a sequence to another; prints its id.',
    args: [
      {
        name: 'baseline',
        about: `The current version. ${VERSION_REFERENCE.about}`,
        isOptional: true,
      },
      { name: 'candidate', about: 'The new version, in the same forms.', isOptional: true },
    ],
    options: [
      { flags: '--baseline <version>', about: 'Instead of the first argument.' },
      { flags: '--candidate <version>', about: 'Instead of the second argument.' },
      {
        flags: '--gate <text>',
        about: 'metric:max_regression:min_sample, such as error_rate:0.05:20; may be repeated.',
        isMany: true,
      },
    ],
    ask: async (session, given) => {
      const gates = gatesOf(given);
      const [baseline_sequence_id, candidate_sequence_id] = await Promise.all([
        sideGiven(session, given, 0),
        sideGiven(session, given, 1),
      ]);
      return session.client.releases.create({
        tenant_id: session.tenant,
        baseline_sequence_id,
        candidate_sequence_id,
        gates,
      });
    },
    said: ({ id }) => id,
  }),
  listing<Release>({
    name: 'releases list',
    summary: 'List releases, newest first.',
    options: [
      { flags: '--state <state>', about: 'Only releases in this state.', choices: RELEASE_STATES },
      { flags: '--sequence <name>', about: 'Only releases of this sequence.' },
    ],
    columns: [
      { head: 'ID', text: ({ id }) => id, isWhole: true },
      {
        head: 'STATE',
        text: ({ state }) => state,
        tone: ({ state }) => toneOf(state),
        isWhole: true,
      },
      { head: 'SEQUENCE', text: ({ sequence_name }) => sequence_name },
      {
        head: 'VERSIONS',
        text: ({ baseline_version, candidate_version }) =>
          `${baseline_version} → ${candidate_version}`,
      },
      { head: 'CANARY', text: ({ canary_percent }) => `${canary_percent} %` },
      { head: 'UPDATED', text: ({ updated_at }, now) => ago(updated_at, now) },
    ],
    ask: ({ client }, given, limit) =>
      client.releases.list({
        state: given.text('state') as ReleaseState | undefined,
        sequence_name: given.text('sequence'),
        limit,
      }),
  }),
  showing({
    name: 'releases status',
    summary: 'Show a release and its decisions, oldest first.',
    args: [ID],
    ask: status,
    lines: (_, release) => [
      said(release),
      ...release.decisions.map(
        ({ decided_at, from_state, to_state, actor, reason }) =>
          `${decided_at}  ${from_state} → ${to_state}  ${memberText(actor)}: ${memberText(reason)}`,
      ),
    ],
  }),
  showing({
    name: 'releases validate',
    summary:
      'Replay finished instances of the baseline with the candidate, without side effects; exits with 1 if any diverge.',
    args: [ID],
    options: [
      { flags: '--sample <n>', about: 'How many of the newest finished instances to replay.' },
      { flags: '--skip', about: 'Make the release ready without a replay.' },
    ],
    ask: ({ client }, given) =>
      client.releases.validate(given.arg(), {
        sample: given.count('sample'),
        skip: given.flag('skip') || undefined,
      }),
    lines: validationLines,
    exit: ({ release_state, divergences }) =>
      release_state === 'failed' || divergences.length > 0 ? EXIT.failed : EXIT.ok,
  }),
  acting({
    name: 'releases canary',
    summary: 'Route a share of the new instances of the baseline to the candidate.',
    args: [ID, { name: 'percent', about: '1 to 100.' }],
    ask: ({ client }, given) =>
      client.releases.canary(given.arg(0), { percent: Number(given.arg(1)) }),
    said,
  }),
  showing({
    name: 'releases evaluate',
    summary:
      'Evaluate the gates with the finished instances; a failing gate rolls the canary back and exits with 1.',
    args: [ID],
    ask: ({ client }, given) => client.releases.evaluate(given.arg()),
    lines: evaluationLines,
    exit: ({ auto_rolled_back, gates }) =>
      auto_rolled_back || gates.some(({ verdict }) => verdict === 'fail') ? EXIT.failed : EXIT.ok,
  }),
  acting({
    name: 'releases promote',
    summary: 'Route all new instances of the baseline to the candidate, permanently.',
    args: [ID],
    options: [
      {
        flags: '--force',
        about: 'Recorded in the decision; failing gates still prevent the promotion.',
      },
    ],
    ask: ({ client }, given) =>
      client.releases.promote(given.arg(), { force: given.flag('force') }),
    said,
  }),
  acting({
    name: 'releases pause',
    summary: 'Route new instances to the baseline again, until the canary resumes.',
    args: [ID],
    ask: ({ client }, given) => client.releases.pause(given.arg()),
    said,
  }),
  acting({
    name: 'releases rollback',
    summary: 'Route new instances to the baseline again, permanently.',
    args: [ID],
    ask: ({ client }, given) => client.releases.rollback(given.arg()),
    said,
  }),
];
