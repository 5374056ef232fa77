/** The kinds of a shard's timers besides those of instances; each has one room. */

import type { UnixMs } from '../../src/base/time.js';

/** An instance that is due. */
export interface DueTimer {
  readonly instance: string;
  readonly rank: number;
  /** The tenant; '': unknown. */
  readonly tenant: string;
}

export interface WakeTimer extends DueTimer {
  readonly kind: 'wake';
}

export type Timer =
  | WakeTimer
  /** A worker's heartbeat is due. */
  | { readonly kind: 'reap'; readonly instance: string; readonly task: string }
  /** A parked poll times out. */
  | { readonly kind: 'expire'; readonly request: number };

export interface TimerQueue {
  push(at: UnixMs, timer: Timer): void;
}
