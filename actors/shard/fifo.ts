/** What waits in a line, first come first served, at the same small cost however long the line is. */

/** What has left is cut off so many at a time. */
const CUT_AT = 1_024;

export class Fifo<Item> {
  readonly #items: (Item | undefined)[] = [];
  /** Index of the first that has not left. */
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

  /** Puts one before all others: it has been the first already. */
  unshift(item: Item): void {
    if (this.#head === 0) this.#items.unshift(item);
    else {
      this.#head -= 1;
      this.#items[this.#head] = item;
    }
  }

  /** Takes the first one out. */
  shift(): Item | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    // Nothing of it is kept: it may be large.
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
