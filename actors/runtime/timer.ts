/** The timers of a shard: their kinds, each of which has one room, and the heap of those in memory. */

import TinyQueue from 'tinyqueue';
import type { UnixMs } from '../../src/base/time.js';

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

interface Due<Item> {
  readonly at: UnixMs;
  readonly item: Item;
}

/** Due times. Entries are never removed early: their owner ignores stale ones. */
export class TimerHeap<Item> {
  readonly #heap = new TinyQueue<Due<Item>>([], (a, b) => a.at - b.at);

  get size(): number {
    return this.#heap.length;
  }

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
