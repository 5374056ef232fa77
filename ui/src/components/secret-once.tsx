/** Shows a new secret, which cannot be read again. */

import { Button } from './button.tsx';
import { CopyButton } from './copy.tsx';
import { Dialog, useClose } from './dialog.tsx';
import styles from './secret-once.module.css';

export function SecretOnce(props: {
  readonly title: string;
  readonly about: string;
  readonly secret: string;
}) {
  return (
    <Dialog title={props.title}>
      <p>{props.about} Copy it now: it is shown only once.</p>
      <p className={styles.secret}>
        <code>{props.secret}</code>
        <CopyButton text={props.secret} label="Copy the secret" />
      </p>
      <Button kind="primary" onClick={useClose()}>
        I have copied it
      </Button>
    </Dialog>
  );
}
