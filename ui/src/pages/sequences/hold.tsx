/** Lifts the hold of a version, after explaining the effect. */

import type { SequenceListed } from 'durable-workflow-engine-client';
import { Link } from 'wouter';
import { useEngine } from '../../api/engine.tsx';
import { ConfirmDialog } from '../../components/dialog.tsx';
import { hrefOf } from '../../lib/address.ts';

export function LiftHoldDialog(props: {
  readonly version: Pick<SequenceListed, 'id' | 'name' | 'version'>;
}) {
  const { client } = useEngine();
  const { id, name, version } = props.version;
  return (
    <ConfirmDialog
      title={`Lift the hold of version ${version}`}
      action="Lift hold"
      kind="primary"
      act={() => client.sequences.update(id, { hold: false })}
      done={() => `Version ${version} is no longer on hold.`}
    >
      <p>
        If version {version} is the newest, all new instances started by the name {name} use it from
        now on, including those of schedules, triggers and parents, unless a release that is not
        promoted yet routes to it. Running instances stay on their version. The version cannot be
        put on hold again, only deprecated.
      </p>
      <p>
        To route only a share of the new instances to it first,{' '}
        <Link href={hrefOf('/releases', { sequence: name, new: 'yes', candidate: id })}>
          create a release
        </Link>
        : its promotion lifts the hold.
      </p>
    </ConfirmDialog>
  );
}
