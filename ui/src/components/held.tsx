/** Holds what the user chose for some seconds, with a toast to undo it (`lib/held.ts`). */

import { type ReactNode, useSyncExternalStore } from 'react';
import { HELD_MS, HeldActions } from '../lib/held.ts';
import { leave } from '../lib/leaving.ts';
import { Button } from './button.tsx';
import { useToast } from './toasts.tsx';

const held = new HeldActions();

addEventListener('beforeunload', (event) => {
  if (held.size === 0) return;
  event.preventDefault();
  leave(() => held.sendAll());
});
addEventListener('pagehide', () => leave(() => held.sendAll()));

/** @param id of what the action changes, for which one action is held at a time */
export function useHeld(id: string) {
  const tell = useToast();
  const isHeld = useSyncExternalStore(held.subscribe, () => held.has(id));
  const undo = () => held.takeBack(id);
  return {
    isHeld,
    undo,
    /** @param text of the toast */
    hold: (send: () => void, text: ReactNode) => {
      const dismiss = tell(
        <>
          {text}
          <Button onClick={undo}>Undo</Button>
        </>,
        { lastsMs: HELD_MS },
      );
      held.hold(id, send, dismiss);
    },
  };
}

export const undoLast = () => held.takeBack();
