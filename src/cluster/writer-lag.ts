/** Estimates how long the writer needs for its backlog, from its recent throughput. */

export interface WriterReading {
  /** Milliseconds from an arbitrary origin. */
  readonly at: number;
  /** Uncommitted changes. */
  readonly backlog: number;
  /** Committed changes so far. */
  readonly committed: number;
}

export class WriterLag {
  readonly #read: () => WriterReading;
  #before: WriterReading;
  /** Time of the first reading after the last commit. */
  #stuckSince: number;

  constructor(read: () => WriterReading) {
    this.#read = read;
    this.#before = read();
    this.#stuckSince = this.#before.at;
  }

  /** From the throughput since the last call; while nothing is committed, the time since the last commit. */
  ms(): number {
    const { at, backlog, committed } = this.#read();
    const before = this.#before;
    const done = committed - before.committed;
    const lag = done > 0 ? (backlog * (at - before.at)) / done : at - this.#stuckSince;
    this.#before = { at, backlog, committed };
    if (backlog === 0 || done > 0) this.#stuckSince = at;
    return backlog === 0 ? 0 : Math.round(lag);
  }
}
