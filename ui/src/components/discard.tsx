/** Asks before a dialog is left in which something was typed. */

import { type ReactNode, useState } from 'react';
import { ConfirmDialog } from './dialog.tsx';

/**
 * @param isTyped whether there is anything to lose
 * @returns `leave` for the dialog in place of `onClose`, and the question, which stands beside the dialog
 */
export function useDiscard(
  isTyped: boolean,
  onClose: () => void,
): { readonly leave: () => void; readonly question: ReactNode } {
  const [isAsked, setAsked] = useState(false);
  return {
    leave: () => (isTyped ? setAsked(true) : onClose()),
    question: isAsked && (
      <ConfirmDialog
        title="Throw away what you typed?"
        action="Throw it away"
        kind="danger"
        onConfirm={onClose}
        onClose={() => setAsked(false)}
      >
        <p>It was not sent, and is kept nowhere.</p>
      </ConfirmDialog>
    ),
  };
}
