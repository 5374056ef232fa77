/** The current time for components: one clock for the whole page. */

import { useSyncExternalStore } from 'react';

const TICK_MS = 1000;

const listeners = new Set<() => void>();
let now = Date.now();
/** Set while the engine is unreachable: the data shown is as of this instant. */
let heldAt: number | undefined;
let timer: ReturnType<typeof setInterval> | undefined;

/** Milliseconds since the epoch, to the second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** Like `useNow`, but stops at the engine's last answer while the engine is unreachable. */
export function useKnownNow(): number {
  return useSyncExternalStore(subscribe, () => heldAt ?? now);
}

/** Undefined while the data shown is current. */
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
