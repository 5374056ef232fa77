/** A dialog over the page, by the browser's own element: it keeps the focus, and Escape closes it. */

import { X } from 'lucide-react';
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';
import { Button, type ButtonKind, IconButton } from './button.tsx';
import styles from './dialog.module.css';
import { ErrorBox } from './error-box.tsx';
import { releaseLists } from './steady.ts';
import { Toasts } from './toasts.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly isWide?: boolean;
  readonly children: ReactNode;
}

/** Open for as long as it is rendered. */
export function Dialog({ title, onClose, isWide, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // It gives the focus back while it is still in the document: effects are undone later than that.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      releaseLists();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={isWide ? `${styles.dialog} ${styles.wide}` : styles.dialog}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div className={styles.head}>
        <h2 id={titleId}>{title}</h2>
        <IconButton label="Close" icon={<X size={18} aria-hidden />} onClick={onClose} />
      </div>
      <div className={styles.body}>{children}</div>
      <Toasts />
    </dialog>
  );
}

/** The last row of a dialog: to leave it, and to do what it is about. */
export function DialogActions(props: {
  readonly label: string;
  readonly kind?: ButtonKind;
  readonly isBusy?: boolean;
  readonly isDisabled?: boolean;
  readonly onClose: () => void;
  /** What leaves everything as it is, where `Cancel` would be taken for the action. */
  readonly keep?: string;
  /** Absent: the button submits the form around it. */
  readonly onConfirm?: () => void;
}) {
  return (
    <div className={styles.actions}>
      <Button onClick={props.onClose}>{props.keep ?? 'Cancel'}</Button>
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

/** Asks once more before something is done, and shows why it could not be done. */
export function ConfirmDialog(
  props: Omit<DialogProps, 'isWide'> & {
    /** What the button says, such as `Cancel 37 instances`. */
    readonly action: string;
    readonly kind?: ButtonKind;
    readonly isBusy?: boolean;
    readonly keep?: string;
    readonly isDisabled?: boolean;
    readonly error?: unknown;
    readonly onConfirm: () => void;
  },
) {
  const { action, error, children, ...rest } = props;
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      {children}
      {error !== undefined && error !== null && <ErrorBox error={error} />}
      <DialogActions label={action} {...rest} />
    </Dialog>
  );
}
