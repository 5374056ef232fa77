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
  const { client, allowed } = useEngine();
  const maySee = useMaySee();
  const instant = useInstantAction(run);
  const start = useAction(
    () => client.instances.patchState(run.instance.id, { state: 'running' }),
    { done: () => 'Continuing now.' },
  );
  const { kind, name, child_id } = wait;
  const canStart = run.explanation?.next.some(({ action }) => action === 'start_now');
  const place = placeOf(wait);
  const buttons = [
    kind === 'pause' && allowed.operate && (
      <Button
        key="resume"
        kind="primary"
        isBusy={instant.isBusy}
        onClick={() => instant.run('resume')}
      >
        Resume
      </Button>
    ),
    (kind === 'start' || kind === 'delay' || kind === 'retry') && allowed.operate && canStart && (
      <Button key="start" isBusy={start.isBusy} onClick={() => start.run(undefined)}>
        {kind === 'retry' ? 'Retry now' : 'Start now'}
      </Button>
    ),
    (kind === 'event' || kind === 'signal') && allowed.start && (
      <Button key="signal" onClick={() => run.ask('signal', name ?? 'continue')}>
        {kind === 'event' ? `Send ${name} to this instance…` : 'Wake up…'}
      </Button>
    ),
    kind === 'child' && child_id !== undefined && (
      <LinkButton key="child" href={`/instances/${child_id}`}>
        Open the child
      </LinkButton>
    ),
    place !== undefined && maySee(place.href) && (
      <LinkButton key="place" href={place.href}>
        {place.label}
      </LinkButton>
    ),
  ].filter(Boolean);
  const error = instant.error ?? start.error;
  if (buttons.length === 0 && error === null) return null;
  return (
    <>
      {buttons.length > 0 && <p className={styles.actions}>{buttons}</p>}
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
