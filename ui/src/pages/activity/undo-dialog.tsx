/** Undoes an action by the operation that does the opposite, if the object is still as the action left it. */

import { useQuery } from '@tanstack/react-query';
import type { Action, Client } from 'durable-workflow-engine-client';
import { useEngine } from '../../api/engine.tsx';
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx';
import { Loaded } from '../../components/loaded.tsx';
import { Time } from '../../components/time.tsx';
import { shortSummaryOf } from './action-text.ts';
import type { Undoing } from './undoing.ts';

interface Way {
  /** The state of the object in words. */
  readonly state: string;
  /** It is stopped now. */
  readonly isStopped: boolean;
  /** Neither: it has ended. */
  readonly isOver?: boolean;
}

const enabledWay = ({ enabled }: { readonly enabled: boolean }): Way => ({
  state: enabled ? 'enabled' : 'disabled',
  isStopped: !enabled,
});

const LIVE = ['scheduled', 'running', 'waiting'];

const WAYS: Readonly<
  Record<
    Undoing['of'],
    {
      readonly read: (client: Client, id: string, options: { signal: AbortSignal }) => Promise<Way>;
      readonly act: (client: Client, id: string, stops: boolean) => Promise<unknown>;
    }
  >
> = {
  instance: {
    read: async (client, id, options) => {
      const { state } = await client.instances.get(id, options);
      return { state, isStopped: state === 'paused', isOver: ![...LIVE, 'paused'].includes(state) };
    },
    act: (client, id, stops) =>
      client.instances.signal(id, { signal_type: stops ? 'pause' : 'resume' }),
  },
  schedule: {
    read: async (client, id, options) => enabledWay(await client.cron.get(id, options)),
    act: (client, id, stops) => client.cron.update(id, { enabled: !stops }),
  },
  trigger: {
    read: async (client, slug, options) => enabledWay(await client.triggers.get(slug, options)),
    act: (client, slug, stops) => client.triggers.update(slug, { enabled: !stops }),
  },
  credential: {
    read: async (client, id, options) => enabledWay(await client.credentials.get(id, options)),
    act: (client, id, stops) => client.credentials.update(id, { enabled: !stops }),
  },
};

export function UndoDialog(props: { readonly action: Action; readonly undoing: Undoing }) {
  const { action, undoing } = props;
  const { client } = useEngine();
  const way = WAYS[undoing.of];
  const { target } = action;
  const now = useQuery({
    queryKey: ['undo', undoing.of, target],
    queryFn: ({ signal }) => way.read(client, target, { signal }),
    // What the dialog offers depends on the present state.
    staleTime: 0,
  });
  const title = `${undoing.label} the ${undoing.of}?`;
  const said = (
    <p>
      {action.by} {shortSummaryOf(action)} <Time at={action.at} />.
    </p>
  );
  if (now.data === undefined) {
    return (
      <Dialog title={title}>
        {said}
        <Loaded query={now} height={60}>
          {() => null}
        </Loaded>
      </Dialog>
    );
  }
  const { state, isStopped, isOver = false } = now.data;
  const isPossible = !isOver && isStopped !== undoing.stops;
  return (
    <ConfirmDialog
      title={title}
      action={undoing.label}
      isDisabled={!isPossible}
      act={() => way.act(client, target, undoing.stops)}
      done={() => 'Undone.'}
    >
      {said}
      <p>
        The {undoing.of} is {state} now{isPossible ? '.' : ': there is nothing to undo.'}
      </p>
    </ConfirmDialog>
  );
}
