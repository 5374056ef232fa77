/** Copies a text to the clipboard and confirms it. */

import { Check, Copy } from 'lucide-react';
import { useEffect, useId, useRef, useState } from 'react';
import { shortIdOf } from '../lib/format.ts';
import { IconButton } from './button.tsx';
import styles from './copy.module.css';

const SHOWN_MS = 1500;

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [state, setState] = useState<'copied' | 'by-hand'>();
  useEffect(() => {
    if (state !== 'copied') return undefined;
    const timer = setTimeout(() => setState(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  if (state === 'by-hand') return <ByHand text={text} onEnd={() => setState(undefined)} />;
  const Icon = state === 'copied' ? Check : Copy;
  return (
    <IconButton
      label={state === 'copied' ? 'Copied' : label}
      icon={Icon}
      onClick={async () => {
        try {
          await navigator.clipboard.writeText(text);
          setState('copied');
        } catch {
          // Browsers deny the clipboard on plain HTTP, and users may deny it elsewhere.
          setState('by-hand');
        }
      }}
    />
  );
}

/** The whole text, selected, for as long as it has the focus. */
function ByHand({ text, onEnd }: { readonly text: string; readonly onEnd: () => void }) {
  const id = useId();
  return (
    <span className={styles.byHand}>
      <textarea
        ref={select}
        id={id}
        className={styles.text}
        readOnly
        rows={1}
        value={text}
        onBlur={onEnd}
        onCopy={onEnd}
      />
      <label htmlFor={id} className="small">
        Press Ctrl+C to copy
      </label>
    </span>
  );
}

/** The same for a long text, within a dialog. */
export function TextToCopy(props: { readonly text: string; readonly onCopied: () => void }) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  // After the dialog has opened, which gives the focus to its first button.
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <>
      <label htmlFor={id} className="small">
        Press Ctrl+C to copy
      </label>
      <textarea
        ref={field}
        id={id}
        className={`${styles.text} ${styles.long}`}
        readOnly
        rows={8}
        value={props.text}
        onCopy={props.onCopied}
      />
    </>
  );
}

const select = (element: HTMLTextAreaElement | null) => element?.select();

/** A shortened id, with the full id as a tooltip and for copying. */
export function ShortId({ id }: { readonly id: string }) {
  return <code title={id}>{shortIdOf(id)}</code>;
}
