/** Latencies of a run, kept one by one: percentiles are exact, and sorting comes afterwards. */

/** In milliseconds. */
export interface Latency {
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const FIRST_CAPACITY = 65_536;

export class Samples {
  #values = new Float64Array(FIRST_CAPACITY);
  #count = 0;

  add(ms: number): void {
    if (this.#count === this.#values.length) {
      const grown = new Float64Array(this.#values.length * 2);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#count] = ms;
    this.#count += 1;
  }

  /** Zeros when there is no sample. */
  summary(): Latency {
    const sorted = this.#values.subarray(0, this.#count).sort();
    const at = (share: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
    let sum = 0;
    for (const value of sorted) sum += value;
    return {
      count: sorted.length,
      mean: sorted.length === 0 ? 0 : sum / sorted.length,
      p50: at(0.5) ?? 0,
      p99: at(0.99) ?? 0,
      max: sorted.at(-1) ?? 0,
    };
  }
}
