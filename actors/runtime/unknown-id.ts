/**
 * Unused ids. A request for another tenant's object waits for a read of one, even if the object is in
 * memory, so that its timing is that of a request for an unknown id.
 */

/** Two concurrent requests never have the same id. */
const IDS = 1_000_000_000;

export class UnknownId {
  #last = 0;

  next(): string {
    this.#last = (this.#last + 1) % IDS;
    return `00000000-0000-0000-0000-${String(this.#last + 1).padStart(12, '0')}`;
  }
}
