/** The actions that end a wait. */

import type { Wait } from 'durable-workflow-engine-client';
import { useEngine, useMaySee } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Button, LinkButton } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { hrefOf } from '../../lib/address.ts';
import { useInstantAction } from './action-bar.tsx';
import styles from './now.module.css';
import type { Run } from './run.ts';

export function WaitActions({ run, wait }: { readonly run: Run; readonly wait: Wait }) {
  const { allowed } = useEngine();
  const maySee = useMaySee();
  const instant = useInstantAction(run);
  const start = useStartNow(run);
  const buttons = [];
  const canStart =
    allowed.operate && run.explanation?.next.some(({ action }) => action === 'start_now');
  switch (wait.kind) {
    case 'pause':
      if (allowed.operate) {
        buttons.push(
          <Button
            key="resume"
            kind="primary"
            isBusy={instant.isBusy}
            onClick={() => instant.run('resume')}
          >
            Resume
          </Button>,
        );
      }
      break;
    case 'start':
    case 'delay':
    case 'retry':
      if (canStart) {
        buttons.push(
          <Button key="start" isBusy={start.isBusy} onClick={() => start.run(undefined)}>
            {wait.kind === 'retry' ? 'Retry now' : 'Start now'}
          </Button>,
        );
      }
      break;
    case 'event':
    case 'signal':
      if (allowed.start) {
        buttons.push(
          <Button key="signal" onClick={() => run.ask('signal', wait.name ?? 'continue')}>
            {wait.kind === 'event' ? `Send ${wait.name} to this instance…` : 'Wake up…'}
          </Button>,
        );
      }
      break;
    case 'child':
      if (wait.child_id !== undefined) {
        buttons.push(
          <LinkButton key="child" href={`/instances/${wait.child_id}`}>
            Open the child
          </LinkButton>,
        );
      }
      break;
    default:
  }
  const place = placeOf(wait);
  if (place !== undefined && maySee(place.href)) {
    buttons.push(
      <LinkButton key="place" href={place.href}>
        {place.label}
      </LinkButton>,
    );
  }
  const error = instant.error ?? start.error;
  if (buttons.length === 0 && error === null) return null;
  return (
    <>
      <p className={styles.actions}>{buttons}</p>
      {error !== null && <ErrorBox error={error} />}
    </>
  );
}

/** The page with what it waits for. */
function placeOf({ kind, key, workers }: Wait) {
  switch (kind) {
    case 'rate_limit':
      return { href: hrefOf('/limits', { key }), label: 'Rate limits' };
    case 'slot':
      return {
        href: hrefOf('/instances', { waiting_for: kind }),
        label: 'All that wait for a slot',
      };
    case 'task':
      return workers?.endpoints === undefined
        ? { href: '/workers', label: 'Workers and queues' }
        : { href: '/workers/endpoints', label: 'Worker endpoints' };
    default:
      return undefined;
  }
}

function useStartNow({ instance }: Run) {
  const { client } = useEngine();
  return useAction(() => client.instances.patchState(instance.id, { state: 'running' }), {
    done: () => 'Continuing now.',
  });
}
