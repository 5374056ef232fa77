/** Opens the palette: by a button in the bar, Ctrl-K or Cmd-K, and `/` outside of fields. */

import { Search } from 'lucide-react';
import { Suspense, useEffect, useState } from 'react';
import { isDialogOpen, isShortcut, useSingleKeys } from '../lib/keys.ts';
import { later } from '../lib/load.ts';
import styles from './finder.module.css';

const Palette = later(() => import('./palette.tsx'));

const IS_MAC = /mac|iphone|ipad/i.test(navigator.platform);

export function Finder() {
  const [isOpen, setOpen] = useState(false);
  const [areSingleKeysOn] = useSingleKeys();
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isOpener(event)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        className={styles.opener}
        aria-keyshortcuts={areSingleKeysOn ? 'Control+K Meta+K /' : 'Control+K Meta+K'}
        title={`Find an instance, sequence, page or action (${IS_MAC ? '⌘K' : 'Ctrl K'})`}
        onClick={() => setOpen(true)}
      >
        <Search size={16} aria-hidden />
        <span className={styles.words}>Find…</span>
        <kbd className={styles.words}>{IS_MAC ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      {isOpen && (
        <Suspense>
          <Palette onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

/** Not while another dialog is open, whose input would be lost behind it. */
function isOpener(event: KeyboardEvent): boolean {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
  if (ctrlKey === metaKey) return key === '/' && isShortcut(event);
  return key.toLowerCase() === 'k' && !altKey && !shiftKey && !isDialogOpen();
}
