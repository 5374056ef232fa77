/** The actions for a release in its current state, each with a dialog that explains its effect. */

import type { GateReport, Release } from 'durable-workflow-engine-client';
import { type ReactNode, useState } from 'react';
import { useLocation } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import type { ButtonKind } from '../../components/button.tsx';
import { Button } from '../../components/button.tsx';
import { CloseContext, ConfirmDialog, useClose } from '../../components/dialog.tsx';
import { Checkbox, NumberField } from '../../components/field.tsx';
import { FormDialog, useForm } from '../../components/form.tsx';
import { countOf } from '../../lib/format.ts';
import { type NumberLimits, numberOf } from '../../lib/numbers.ts';
import { type ActionName, actionsOf, outlookOf } from './life.ts';

interface Props {
  readonly release: Release;
  readonly report: GateReport | undefined;
}

export function ReleaseActions(props: Props) {
  const { state } = props.release;
  // A refusal may change the state, and with it the actions: the dialog that reports it stays.
  const [open, setOpen] = useState<ActionName>();
  const isPromotable = props.report?.gates.every(({ verdict }) => verdict === 'pass') ?? false;
  const Part = open && ACTIONS[open][2];
  return (
    <>
      {actionsOf(state).map((name) => (
        <Button
          key={name}
          kind={name === 'promote' && isPromotable ? 'primary' : ACTIONS[name][1]}
          onClick={() => setOpen(name)}
        >
          {name === 'canary' && state === 'paused' ? 'Restart canary' : ACTIONS[name][0]}
        </Button>
      ))}
      <CloseContext value={() => setOpen(undefined)}>{Part && <Part {...props} />}</CloseContext>
    </>
  );
}

type Look = readonly [label: string, kind: ButtonKind, part: (props: Props) => ReactNode];

const ACTIONS: Readonly<Record<ActionName, Look>> = {
  validate: ['Validate', 'primary', Validate],
  canary: ['Start canary', 'primary', StartCanary],
  evaluate: ['Evaluate', 'plain', Evaluate],
  promote: ['Promote', 'plain', Promote],
  pause: ['Pause', 'plain', Pause],
  rollback: ['Roll back', 'danger', RollBack],
};

/** The server's limit. */
const SAMPLE_MAX = 50;
const SAMPLE: NumberLimits = { isInteger: true, min: 1, max: SAMPLE_MAX };
const SHARE: NumberLimits = { isInteger: true, min: 1, max: 100 };

/** A failing gate rolls back and refuses. */
const isReadAfterFailure = true;

function Validate({ release }: Props) {
  const { client } = useEngine();
  const close = useClose();
  const [, go] = useLocation();
  const form = useForm(
    { sample: '10', skip: false },
    ({ sample, skip }) =>
      client.releases.validate(
        release.id,
        skip ? { skip } : { sample: numberOf('Instances to replay', sample, SAMPLE) },
      ),
    {
      isReadAfterFailure,
      done: ({ release_state, replayed, matches, diverged, inconclusive }, { skip }) =>
        release_state === 'failed'
          ? 'The candidate cannot run: the release failed.'
          : skip
            ? 'The release is ready without validation.'
            : `${countOf(replayed, 'run')} replayed: ${matches} matched, ${diverged} diverged, ${inconclusive} inconclusive.`,
      onDone: (_, { skip }) => {
        close();
        if (!skip) go(`/releases/${release.id}/evidence`);
      },
    },
  );
  const { baseline_version: old, candidate_version: next } = release;
  const { skip } = form.draft;
  return (
    <FormDialog form={form} title="Validate" label={skip ? 'Make ready' : 'Validate'}>
      <p>
        The newest finished instances of version {old} are replayed with version {next}, in virtual
        time, without external effects and without changing any instance. Differences are for you to
        review: the release becomes ready in any case, and fails only if version {next} cannot run
        at all.
      </p>
      <NumberField
        label="Instances to replay"
        limits={SAMPLE}
        required
        disabled={skip}
        hint={`At most ${SAMPLE_MAX}`}
        {...form.at('sample')}
      />
      <Checkbox label="Skip the replay and make the release ready" {...form.at('skip')} />
    </FormDialog>
  );
}

function StartCanary({ release }: Props) {
  const { client } = useEngine();
  const form = useForm(
    { percent: String(release.canary_percent || 10) },
    ({ percent }) =>
      client.releases.canary(release.id, { percent: numberOf('The share', percent, SHARE) }),
    {
      isReadAfterFailure,
      done: (moved) => `${moved.canary_percent} % of the new instances run the candidate.`,
    },
  );
  const { baseline_version: old, candidate_version: next } = release;
  const gates = release.gates?.length ?? 0;
  return (
    <FormDialog form={form} title="Start canary" label="Start canary">
      <p>
        This share of the new instances of version {old} will run version {next}. Running instances
        are not migrated.{' '}
        {gates > 0
          ? `${countOf(gates, 'gate')} ${gates === 1 ? 'is' : 'are'} evaluated as instances finish; the first to fail rolls the release back automatically.`
          : 'There are no gates, so there is no automatic rollback.'}
        {release.canary_started_at !== undefined && ' The gates start counting from zero.'}
      </p>
      <NumberField
        label="Share of new instances, in %"
        limits={SHARE}
        required
        {...form.at('percent')}
      />
    </FormDialog>
  );
}

function Evaluate({ release }: Props) {
  const { client } = useEngine();
  return (
    <ConfirmDialog
      title="Evaluate the gates now?"
      action="Evaluate"
      isReadAfterFailure
      act={() => client.releases.evaluate(release.id)}
      done={(report) =>
        report.auto_rolled_back
          ? 'A gate failed: the release was rolled back.'
          : `Evaluated: ${outlookOf(report)}`
      }
    >
      <p>
        The gates are evaluated with the instances finished so far. If one fails, the release is
        rolled back for good. This also happens automatically as instances finish.
      </p>
    </ConfirmDialog>
  );
}

function Promote({ release, report }: Props) {
  const { client } = useEngine();
  const { baseline_version: old, candidate_version: next } = release;
  return (
    <ConfirmDialog
      title={`Promote version ${next}?`}
      action={`Promote version ${next}`}
      isReadAfterFailure
      act={() => client.releases.promote(release.id)}
      done={(moved) => `All new instances run version ${moved.candidate_version}.`}
    >
      <p>
        All new instances of version {old} will run version {next}, and a hold of version {next} is
        lifted. Running instances stay on their version. The gates are evaluated once more: unless
        all pass, the promotion is refused, and a failed gate rolls the release back.
      </p>
      {report !== undefined && <p className="dim">{outlookOf(report)}</p>}
    </ConfirmDialog>
  );
}

function Pause({ release }: Props) {
  const { client } = useEngine();
  return (
    <ConfirmDialog
      title="Pause the canary?"
      action="Pause"
      isReadAfterFailure
      act={() => client.releases.pause(release.id)}
      done={(moved) => `Paused: all new instances run version ${moved.baseline_version}.`}
    >
      <p>
        New instances run version {release.baseline_version} again for now. You can restart the
        canary with any share; the gates then start counting from zero.
      </p>
    </ConfirmDialog>
  );
}

function RollBack({ release }: Props) {
  const { client } = useEngine();
  return (
    <ConfirmDialog
      title="Roll this release back?"
      action="Roll back"
      kind="danger"
      isReadAfterFailure
      act={() => client.releases.rollback(release.id)}
      done={(moved) => `Rolled back: all new instances run version ${moved.baseline_version}.`}
    >
      <p>
        All new instances will run version {release.baseline_version}. This release cannot be
        restarted. Running instances of version {release.candidate_version} stay on it.
      </p>
    </ConfirmDialog>
  );
}
