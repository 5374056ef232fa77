/**
 * Due times: one heap per owner with small entries. Entries are never removed early: the owner recognises a
 * stale entry by its own state and ignores it.
 */

import TinyQueue from 'tinyqueue';
import type { UnixMs } from '../../src/base/time.js';

interface Due<Item> {
  readonly at: UnixMs;
  readonly item: Item;
}

export class TimerHeap<Item> {
  readonly #heap = new TinyQueue<Due<Item>>([], (a, b) => a.at - b.at);

  get size(): number {
    return this.#heap.length;
  }

  /** When the first entry is due, or undefined when there is none. */
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
