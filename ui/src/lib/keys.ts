/**
 * Keys of a page that act without a field or a dialog in between. Users switch them off, since those who dictate or
 * whose hands shake press them by accident; the browser keeps the choice.
 */

import { useSyncExternalStore } from 'react';
import { keepAt, storedAt } from './kept.ts';

const FIELDS = 'input, textarea, select, [contenteditable=true], [role=menu]';

const STORED_AS = 'single-key shortcuts';

let areOn = storedAt(STORED_AS) !== false;
const listeners = new Set<() => void>();

/** Whether keys without a modifier act, and a function that switches them on or off. */
export function useSingleKeys(): readonly [areOn: boolean, switchTo: (areOn: boolean) => void] {
  return [useSyncExternalStore(subscribe, () => areOn), switchSingleKeys];
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function switchSingleKeys(on: boolean): void {
  areOn = on;
  keepAt(STORED_AS, on);
  for (const listener of listeners) listener();
}

/** Whether the key is meant for the page: such keys are on, no modifier, and the focus is not where one types or in a dialog. */
export function isShortcut(event: KeyboardEvent): boolean {
  const { ctrlKey, metaKey, altKey, defaultPrevented } = event;
  if (!areOn || ctrlKey || metaKey || altKey || defaultPrevented || isDialogOpen()) return false;
  // The target of an event from within an editor is its host, since editors have a shadow root.
  const [focused] = event.composedPath();
  return !(focused instanceof Element && focused.closest(FIELDS));
}

/** What a key does behind a dialog would be hidden by it. */
export function isDialogOpen(): boolean {
  return document.querySelector('dialog[open]') !== null;
}
