/** Lifts the hold of a version, after saying what its name leads to then. */

import type { SequenceListed } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { hrefOf } from '../../lib/address.ts';

export function LiftHoldDialog(props: {
  readonly version: Pick<SequenceListed, 'id' | 'name' | 'version'>;
  readonly onClose: () => void;
}) {
  const { client } = useEngine();
  const { id, name, version } = props.version;
  const lift = useAction(() => client.sequences.update(id, { hold: false }), {
    done: () => `Version ${version} is no longer on hold.`,
    onDone: props.onClose,
  });
  return (
    <ConfirmDialog
      title={`Lift the hold of version ${version}`}
      action="Lift the hold"
      kind="primary"
      isBusy={lift.isBusy}
      error={lift.error}
      onClose={props.onClose}
      onConfirm={() => lift.run(undefined)}
    >
      <p>
        If version {version} is the newest, all new instances that are started by the name {name}{' '}
        take it from now on, as schedules, triggers and parents do, unless a release that was not
        promoted leads to it. Instances that run already stay in their version. It cannot be held
        again, only deprecated.
      </p>
      <p>
        To give it a share of the new instances first,{' '}
        <Link href={hrefOf('/releases', { sequence: name, new: 'yes', candidate: id })}>
          draft a release
        </Link>
        : its promotion lifts the hold.
      </p>
    </ConfirmDialog>
  );
}
