/** What can be done with the instance as a whole: the likely things as buttons, the others in a menu. */

import { Pause, Play, RotateCw } from 'lucide-react';
import { useEngine } from '../../api/engine.tsx';
import { useAction } from '../../components/action.ts';
import { Button } from '../../components/button.tsx';
import { ErrorBox } from '../../components/error-box.tsx';
import { Menu } from '../../components/menu.tsx';
import { ACTION_LABELS, type ActionName, choicesOf } from './choices.ts';
import styles from './instance.module.css';
import type { Run } from './run.ts';

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
  // They stand beside the sentences that say why.
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
              icon={<Icon size={15} aria-hidden />}
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
  retry: 'It runs again from where it failed.',
  pause: 'It is paused: nothing new starts.',
  resume: 'It goes on.',
};

/** What can be undone by its opposite is done without asking. */
export function useInstantAction({ instance }: Run) {
  const { client } = useEngine();
  const { id } = instance;
  return useAction(
    async (name: ActionName) => {
      if (name === 'retry') await client.instances.retry(id);
      else await client.instances.signal(id, { signal_type: name });
    },
    { done: (_result, name) => DONE[name] },
  );
}
