/** Buttons that act on the server: at once, after a confirmation, or by a dialog of their own. */

import { type ReactNode, useState } from 'react';
import { type ActionOptions, useAction } from './action.ts';
import { Button, type ButtonProps } from './button.tsx';
import { CloseContext, type Confirmation, ConfirmDialog } from './dialog.tsx';

type Looks = Pick<ButtonProps, 'kind' | 'icon' | 'disabled'> & { readonly label: string };

/** Acts at once; a failure is shown as a toast. */
export function ActionButton<Result>(
  props: Looks & ActionOptions<Result> & { readonly act: () => PromiseLike<Result> },
) {
  const { label, act, done, onDone, isReadAfterFailure, ...looks } = props;
  const action = useAction(act, props);
  return (
    <Button {...looks} isBusy={action.isBusy} onClick={() => action.run()}>
      {label}
    </Button>
  );
}

/** Opens a dialog, which is there for as long as it is open. */
export function DialogButton(props: Looks & { readonly children: ReactNode }) {
  const { label, children, ...looks } = props;
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button {...looks} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen && <CloseContext value={() => setOpen(false)}>{children}</CloseContext>}
    </>
  );
}

/** Acts once it is confirmed. */
export function ConfirmButton<Result>({
  label,
  ...confirmation
}: Confirmation<Result> & { readonly label: string }) {
  return (
    <DialogButton label={label}>
      <ConfirmDialog kind="danger" {...confirmation} />
    </DialogButton>
  );
}
