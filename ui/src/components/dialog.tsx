/** A modal dialog, by the browser's own element: it keeps the focus, and Escape closes it. */

import { X } from 'lucide-react';
import { createContext, type ReactNode, useContext, useId, useLayoutEffect, useRef } from 'react';
import { createPortal } from 'react-dom';
import { type ActionOptions, useAction } from './action.ts';
import { Button, type ButtonKind, IconButton } from './button.tsx';
import styles from './dialog.module.css';
import { ErrorBox } from './error-box.tsx';
import { Toasts } from './toasts.tsx';

/** Closes the dialogs that are opened within it. */
export const CloseContext = createContext<() => void>(() => undefined);
export const useClose = () => useContext(CloseContext);

interface DialogProps {
  readonly title: string;
  /** Default: what opened it closes it. */
  readonly onClose?: (() => void) | undefined;
  readonly isWide?: boolean;
  /** Only the content is shown; the title is for screen readers. A click beside it closes it. */
  readonly isBare?: boolean;
  readonly children: ReactNode;
}

/** Open for as long as it is rendered. */
export function Dialog({ title, onClose: onOwnClose, isWide, isBare, children }: DialogProps) {
  const close = useClose();
  const onClose = onOwnClose ?? close;
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // The focus must be returned while the dialog is still in the document; other effects are cleaned up later.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  // In the body, since it may be opened from within a row of a table, whose styles are not its own.
  return createPortal(
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it
    <dialog
      ref={ref}
      className={[styles.dialog, isWide && styles.wide, isBare && styles.bare]
        .filter(Boolean)
        .join(' ')}
      {...(isBare ? { 'aria-label': title } : { 'aria-labelledby': titleId })}
      onClick={(event) => {
        if (isBare && event.target === ref.current) onClose();
      }}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      {isBare ? (
        children
      ) : (
        <>
          <div className={styles.head}>
            <h2 id={titleId}>{title}</h2>
            <IconButton label="Close" icon={X} size={18} onClick={onClose} />
          </div>
          <div className={styles.body}>{children}</div>
        </>
      )}
      <Toasts />
    </dialog>,
    document.body,
  );
}

/** The last row of a dialog: the buttons that leave it and that confirm it. */
export function DialogActions(props: {
  readonly label: string;
  readonly kind?: ButtonKind;
  readonly isBusy?: boolean;
  readonly isDisabled?: boolean;
  readonly onClose?: (() => void) | undefined;
  /** Label of the button that changes nothing, where `Cancel` could be taken for the action. */
  readonly keep?: string;
  /** Absent: the button submits the form around it. */
  readonly onConfirm?: () => void;
}) {
  const close = useClose();
  return (
    <div className={styles.actions}>
      <Button onClick={props.onClose ?? close}>{props.keep ?? 'Cancel'}</Button>
      <Button
        kind={props.kind ?? 'primary'}
        submits={props.onConfirm === undefined}
        isBusy={props.isBusy ?? false}
        disabled={props.isDisabled}
        onClick={props.onConfirm}
      >
        {props.label}
      </Button>
    </div>
  );
}

export interface Confirmation<Result> extends ActionOptions<Result> {
  readonly title: string;
  readonly isWide?: boolean;
  /** Label of the button, such as `Cancel 37 instances`. */
  readonly action: string;
  readonly kind?: ButtonKind;
  readonly keep?: string;
  readonly isDisabled?: boolean;
  /** Sends the request. */
  readonly act: () => PromiseLike<Result>;
  readonly children: ReactNode;
}

/** Asks for confirmation before an action, shows why it failed, and closes when it is done. */
export function ConfirmDialog<Result>(props: Confirmation<Result>) {
  const { title, isWide = false, action, act, children } = props;
  const { isBusy, error, run } = useAction(act, { onDone: useClose(), ...props });
  return (
    <Dialog title={title} isWide={isWide}>
      {children}
      {error !== null && <ErrorBox error={error} />}
      <DialogActions {...props} label={action} isBusy={isBusy} onConfirm={run} />
    </Dialog>
  );
}
