/**
 * A binary heap of what is due when: one per shard, slim entries in two parallel arrays. An entry is
 * never removed early; whoever is woken recognises a stale entry by its own state and ignores it.
 */

import type { UnixMs } from '../src/core/time.js';

export class TimerHeap<Item> {
  readonly #at: UnixMs[] = [];
  readonly #items: Item[] = [];

  get size(): number {
    return this.#at.length;
  }

  /** When the first entry is due, or undefined when there is none. */
  get nextAt(): UnixMs | undefined {
    return this.#at[0];
  }

  push(at: UnixMs, item: Item): void {
    let child = this.#at.length;
    this.#at.push(at);
    this.#items.push(item);
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (this.#at[parent]! <= at) break;
      this.#swap(child, parent);
      child = parent;
    }
  }

  /** Takes the first entry out if it is due at `now`. */
  popDue(now: UnixMs): Item | undefined {
    if (this.#at.length === 0 || this.#at[0]! > now) return undefined;
    const item = this.#items[0]!;
    const lastAt = this.#at.pop()!;
    const lastItem = this.#items.pop()!;
    if (this.#at.length > 0) {
      this.#at[0] = lastAt;
      this.#items[0] = lastItem;
      this.#sink();
    }
    return item;
  }

  #sink(): void {
    const size = this.#at.length;
    let parent = 0;
    for (;;) {
      const left = 2 * parent + 1;
      if (left >= size) return;
      const right = left + 1;
      const child = right < size && this.#at[right]! < this.#at[left]! ? right : left;
      if (this.#at[parent]! <= this.#at[child]!) return;
      this.#swap(parent, child);
      parent = child;
    }
  }

  #swap(a: number, b: number): void {
    [this.#at[a], this.#at[b]] = [this.#at[b]!, this.#at[a]!];
    [this.#items[a], this.#items[b]] = [this.#items[b]!, this.#items[a]!];
  }
}
