/** A first-in, first-out queue whose operations cost the same at any length. */

/** The array is shortened once this many entries at its beginning were removed. */
const CUT_AT = 1_024;

export class Fifo<Item> {
  readonly #items: (Item | undefined)[] = [];
  /** Index of the first entry. */
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  get first(): Item | undefined {
    return this.#items[this.#head];
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  /** Returns an entry to the front. */
  unshift(item: Item): void {
    if (this.#head === 0) this.#items.unshift(item);
    else {
      this.#head -= 1;
      this.#items[this.#head] = item;
    }
  }

  shift(): Item | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    // Releases the reference: the entry may be large.
    this.#items[this.#head] = undefined;
    this.#head += 1;
    if (this.#head === this.#items.length) {
      this.#items.length = 0;
      this.#head = 0;
    } else if (this.#head === CUT_AT) {
      this.#items.splice(0, CUT_AT);
      this.#head = 0;
    }
    return item;
  }
}
