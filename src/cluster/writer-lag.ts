/** How long what the writer has not committed yet will take it, by how much it has committed lately. Pure. */

export interface WriterReading {
  /** Milliseconds from an arbitrary origin. */
  readonly at: number;
  /** Changes that are not committed yet. */
  readonly backlog: number;
  /** Changes that were committed so far. */
  readonly committed: number;
}

/**
 * @param before the reading before this one
 * @param stuckSince the first reading since which nothing was committed
 * @returns milliseconds; while nothing at all is committed, for how long that has been so
 */
export function writerLagMs(
  { at, backlog, committed }: WriterReading,
  before: WriterReading,
  stuckSince: number,
): number {
  if (backlog === 0) return 0;
  const done = committed - before.committed;
  return Math.round(done > 0 ? (backlog * (at - before.at)) / done : at - stuckSince);
}

/** Keeps the readings that it takes. */
export class WriterLag {
  readonly #read: () => WriterReading;
  #before: WriterReading;
  #stuckSince: number;

  constructor(read: () => WriterReading) {
    this.#read = read;
    this.#before = read();
    this.#stuckSince = this.#before.at;
  }

  /** Since it was asked last. */
  ms(): number {
    const now = this.#read();
    const lag = writerLagMs(now, this.#before, this.#stuckSince);
    if (now.backlog === 0 || now.committed > this.#before.committed) this.#stuckSince = now.at;
    this.#before = now;
    return lag;
  }
}
