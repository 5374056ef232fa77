/** What a shard wakes up for, beside its instances: each kind has a room. */

import type { UnixMs } from '../../src/base/time.js';

/** An instance with something to do. */
export interface DueTimer {
  readonly instance: string;
  readonly rank: number;
  /** Whose it is; '': nobody says so. */
  readonly tenant: string;
}

export interface WakeTimer extends DueTimer {
  readonly kind: 'wake';
}

export type Timer =
  | WakeTimer
  /** A worker has to have been heard by then. */
  | { readonly kind: 'reap'; readonly instance: string; readonly task: string }
  /** A parked poll waits no longer. */
  | { readonly kind: 'expire'; readonly request: number };

export interface TimerQueue {
  push(at: UnixMs, timer: Timer): void;
}
