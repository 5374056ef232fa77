/** Asks before a dialog with unsaved input is closed. */

import { type ReactNode, useState } from 'react';
import { Dialog, DialogActions, useClose } from './dialog.tsx';

/**
 * @param isTyped whether there is input to lose
 * @returns `leave`, to use as the dialog's `onClose`, and the question, to render beside the dialog
 */
export function useDiscard(isTyped: boolean): {
  readonly leave: () => void;
  readonly question: ReactNode;
} {
  const [isAsked, setAsked] = useState(false);
  const close = useClose();
  return {
    leave: () => (isTyped ? setAsked(true) : close()),
    question: isAsked && (
      <Dialog title="Discard your changes?" onClose={() => setAsked(false)}>
        <p>Your input has not been sent and is not saved.</p>
        <DialogActions
          label="Discard"
          kind="danger"
          onConfirm={close}
          onClose={() => setAsked(false)}
        />
      </Dialog>
    ),
  };
}
