/**
 * Ids that nothing has. A request for an object of another tenant that is in memory waits for a read of one of them,
 * as a request for an unknown id does: neither its time nor its load tells them apart.
 */

/** Two requests that wait at once never have the same id. */
const IDS = 1_000_000_000;

export class UnknownId {
  #asked = 0;

  next(): string {
    this.#asked = (this.#asked + 1) % IDS;
    return `00000000-0000-0000-0000-${String(this.#asked + 1).padStart(12, '0')}`;
  }
}
