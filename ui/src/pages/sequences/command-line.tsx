/** A shell command to copy. */

import { CopyButton } from '../../components/copy.tsx';
import styles from './sequences.module.css';

export function CommandLine({ command }: { readonly command: string }) {
  return (
    <p className={styles.command}>
      <code>{command}</code>
      <CopyButton text={command} label="Copy the command" />
    </p>
  );
}
