/**
 * Ids that nothing has. Who asks for what lies in memory and is not his waits for a read of one of them, as for
 * what is not there: neither the time nor what is busy tells of it.
 */

/** Two who wait have the same by no chance. */
const NOBODIES = 1_000_000_000;

export class Nobody {
  #asked = 0;

  next(): string {
    this.#asked = (this.#asked + 1) % NOBODIES;
    return `00000000-0000-0000-0000-${String(this.#asked + 1).padStart(12, '0')}`;
  }
}
