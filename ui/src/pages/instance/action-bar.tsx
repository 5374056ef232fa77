/** Actions on the instance as a whole: the most likely ones as buttons, the others in a menu. */

import { useQueryClient } from '@tanstack/react-query';
import { Pause, Play, RotateCw } from 'lucide-react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Menu } from '../../components/menu.tsx';
import { ACTION_LABELS, type ActionName, choicesOf } from './choices.ts';
import styles from './instance.module.css';
import type { Run } from './run.ts';
import { againIn, type RetryAction } from './runs-again.tsx';

const ICONS: Partial<Record<ActionName, typeof Play>> = {
  retry: RotateCw,
  pause: Pause,
  resume: Play,
};

export function ActionBar({ run }: { readonly run: Run }) {
  const { allowed } = useEngine();
  const act = useInstantAction(run);
  const { failure } = run.instance;
  const { buttons, menu } = choicesOf(run.instance, allowed);
  // These are shown beside the sentences that explain them.
  const isBelow = (name: ActionName) =>
    (name === 'retry' && failure !== null) || (name === 'resume' && run.explanation !== undefined);
  return (
    <>
      {buttons
        .filter((name) => !isBelow(name))
        .map((name) => {
          const Icon = ICONS[name] ?? Play;
          return (
            <Button
              key={name}
              kind={name === 'pause' ? 'plain' : 'primary'}
              icon={Icon}
              isBusy={act.isBusy}
              onClick={() => act.run(name)}
            >
              {ACTION_LABELS[name]}
            </Button>
          );
        })}
      <Menu
        label="Actions"
        items={menu.map((name) => ({
          label: ACTION_LABELS[name],
          isDangerous: name === 'cancel' || name === 'stop',
          onChoose: () => run.ask(name),
        }))}
      />
      {act.error !== null && (
        <div className={styles.whole}>
          <ErrorBox error={act.error} />
        </div>
      )}
    </>
  );
}

const DONE: Partial<Record<ActionName, string>> = {
  retry: 'The instance was retried from where it failed.',
  pause: 'The instance is paused: no new steps start.',
  resume: 'The instance was resumed.',
};

/** Reversible actions need no confirmation, except for a retry that repeats external effects. */
export function useInstantAction(run: Run) {
  const { client } = useEngine();
  const queries = useQueryClient();
  const { id, failure } = run.instance;
  /** Read now, since the explanation on the page may be of an earlier failure. */
  const repeatsEffects = async (name: RetryAction) => {
    const explanation = await client.instances.explain(id);
    queries.setQueryData(['instances.explain', id], explanation);
    return againIn(explanation, name)?.repeats_effects === true;
  };
  return useAction(
    async (name: ActionName) => {
      const isRetry = name === 'retry' || (name === 'resume' && failure !== null);
      if (isRetry && (await repeatsEffects(name))) return 'asks';
      if (name === 'retry') await client.instances.retry(id);
      else await client.instances.signal(id, { signal_type: name });
      return 'done';
    },
    {
      done: (result, name) => (result === 'asks' ? undefined : DONE[name]),
      onDone: (result, name) => {
        if (result === 'asks') run.ask(name);
      },
    },
  );
}
