/**
 * Unused ids. A request for another tenant's object that is in memory waits for a read of one of them, as a
 * request for an unknown id does, so that time and load do not tell them apart.
 */

/** Two concurrent requests never have the same id. */
const IDS = 1_000_000_000;

export class UnknownId {
  #asked = 0;

  next(): string {
    this.#asked = (this.#asked + 1) % IDS;
    return `00000000-0000-0000-0000-${String(this.#asked + 1).padStart(12, '0')}`;
  }
}
