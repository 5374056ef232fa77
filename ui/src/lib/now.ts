/** The time as components show it: one clock for the whole page. */

import { useSyncExternalStore } from 'react';

const TICK_MS = 1000;

const listeners = new Set<() => void>();
let now = Date.now();
/** What is shown is as of then, and nobody knows how it stands now. */
let heldAt: number | undefined;
let timer: ReturnType<typeof setInterval> | undefined;

/** Milliseconds since the epoch, to the second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** The same for what goes on only as far as is known: while the engine is away, the time of its last answer. */
export function useKnownNow(): number {
  return useSyncExternalStore(subscribe, () => heldAt ?? now);
}

/** Undefined while what is shown is current. */
export function useAsOf(): number | undefined {
  return useSyncExternalStore(subscribe, () => heldAt);
}

export function holdClock(at: number | undefined): void {
  heldAt = at;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick() {
  now = Date.now();
  for (const listener of listeners) listener();
}
