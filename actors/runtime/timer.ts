/** The kinds of timers of a shard, each handled by one room, and the heap of those in memory. */

import TinyQueue from 'tinyqueue';
import type { UnixMs } from '../../src/base/time.js';

/** @property tenant '' if unknown */
export interface DueTimer {
  readonly instance: string;
  readonly rank: number;
  readonly tenant: string;
}

export type WakeTimer = DueTimer & { readonly kind: 'wake' };

export type Timer =
  | WakeTimer
  /** The heartbeat of a worker is due. */
  | { readonly kind: 'reap'; readonly instance: string; readonly task: string }
  /** Collected creations of the key are to start. */
  | { readonly kind: 'start'; readonly key: string }
  /** A parked poll times out. */
  | { readonly kind: 'expire'; readonly request: number }
  /** A request waits no longer for its instance. */
  | { readonly kind: 'answer'; readonly request: number };

export interface TimerQueue {
  push(at: UnixMs, timer: Timer): void;
}

type Due<Item> = { readonly at: UnixMs; readonly item: Item };

/** Entries are never removed early: their owner ignores stale ones. */
export class TimerHeap<Item> {
  readonly #heap = new TinyQueue<Due<Item>>([], (a, b) => a.at - b.at);

  get nextAt(): UnixMs | undefined {
    return this.#heap.peek()?.at;
  }

  push(at: UnixMs, item: Item): void {
    this.#heap.push({ at, item });
  }

  /** Removes and returns the first entry if it is due at `now`. */
  popDue(now: UnixMs): Item | undefined {
    const first = this.#heap.peek();
    return first !== undefined && first.at <= now ? this.#heap.pop()?.item : undefined;
  }
}
