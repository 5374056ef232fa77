/** Puts a text into the clipboard, and says so. */

import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { IconButton } from './button.tsx';

const SHOWN_MS = 1500;

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const Icon = isCopied ? Check : Copy;
  return (
    <IconButton
      label={isCopied ? 'Copied' : label}
      icon={<Icon size={15} aria-hidden />}
      onClick={async () => {
        await navigator.clipboard.writeText(text);
        setCopied(true);
      }}
    />
  );
}

/**
 * An id, short, with the whole of it on hover and for copying. Ids of one time begin alike: it is their end that
 * tells them apart.
 */
export function ShortId({ id }: { readonly id: string }) {
  return <code title={id}>{id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id}</code>;
}
