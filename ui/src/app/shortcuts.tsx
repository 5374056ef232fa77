/** Keyboard shortcuts: `g` and a key open a page, `r` reads the page again, `?` and the palette list them. */

import { useQueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { useMaySee } from '../api/engine.tsx';
import { CloseContext } from '../components/dialog.tsx';
import { useToast } from '../components/toasts.tsx';
import { isShortcut } from '../lib/keys.ts';
import { later } from '../lib/load.ts';
import { NAVIGATION } from './navigation.ts';

const ShortcutDialog = later(() => import('./shortcut-dialog.tsx'));

/** A key that comes later than this after `g` is one by itself. */
const CHORD_MS = 1_500;

const LIST = 'list-shortcuts';

export function listShortcuts(): void {
  dispatchEvent(new Event(LIST));
}

export function Shortcuts() {
  const [isListed, setListed] = useState(false);
  const onKey = useShortcut(() => setListed(true));
  const latest = useRef(onKey);
  useEffect(() => {
    latest.current = onKey;
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (isShortcut(event) && latest.current(event.key)) event.preventDefault();
    };
    const list = () => setListed(true);
    addEventListener('keydown', listener);
    addEventListener(LIST, list);
    return () => {
      removeEventListener('keydown', listener);
      removeEventListener(LIST, list);
    };
  }, []);
  return (
    isListed && (
      <Suspense>
        <CloseContext value={() => setListed(false)}>
          <ShortcutDialog />
        </CloseContext>
      </Suspense>
    )
  );
}

/** @returns a function that does what the key stands for, and whether there is anything */
function useShortcut(list: () => void): (key: string) => boolean {
  const queries = useQueryClient();
  const maySee = useMaySee();
  const [, navigate] = useLocation();
  const tell = useToast();
  const leaderAt = useRef(Number.NEGATIVE_INFINITY);
  return (key) => {
    const isSecond = performance.now() - leaderAt.current < CHORD_MS;
    leaderAt.current = key === 'g' && !isSecond ? performance.now() : Number.NEGATIVE_INFINITY;
    if (isSecond) {
      const items = NAVIGATION.flatMap((group) => group.items);
      const wanted = items.find((item) => item.key === key);
      if (wanted === undefined || !maySee(wanted.href)) return false;
      navigate(wanted.href);
      return true;
    }
    if (key === '?') list();
    else if (key === 'r') void queries.invalidateQueries().then(() => tell('Refreshed'));
    else return false;
    return true;
  };
}
