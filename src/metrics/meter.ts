/**
 * What one thread counts and measures by itself, in memory that it shares with the front: nothing is
 * sent, nothing is lost with the thread, and its successor counts on where it ended. One thread writes
 * and the front reads. An aligned 64-bit number is written as a whole on every platform of Node.
 */

import {
  COUNTER_INDEX,
  COUNTER_NAMES,
  type CounterName,
  HISTOGRAMS,
  type HistogramName,
  type NamedCounterName,
  THREAD_GAUGES,
  type ThreadGaugeName,
} from './catalog.js';
import { NAMED_BYTES, NamedCounts } from './named.js';

/** Where the numbers of a histogram begin: its buckets, those above the last bound, their sum. */
interface Place {
  readonly at: number;
  readonly bounds: readonly number[];
}

const HISTOGRAM_PLACES = {} as Record<HistogramName, Place>;
const GAUGE_PLACES = {} as Record<ThreadGaugeName, number>;
let numbers = COUNTER_NAMES.length;
for (const [name, { buckets }] of Object.entries(HISTOGRAMS)) {
  HISTOGRAM_PLACES[name as HistogramName] = { at: numbers, bounds: buckets };
  numbers += buckets.length + 2;
}
for (const name of Object.keys(THREAD_GAUGES)) {
  GAUGE_PLACES[name as ThreadGaugeName] = numbers;
  numbers += 1;
}
const NUMBERS_BYTES = numbers * Float64Array.BYTES_PER_ELEMENT;

/** Observations by bucket, the last one unbounded, and their sum. */
export interface Observations {
  readonly buckets: Float64Array;
  readonly sum: number;
}

export class Meter {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Float64Array;
  readonly #named: NamedCounts;

  /** @param memory of another meter of the same thread, or of the thread before it */
  constructor(memory = new SharedArrayBuffer(NUMBERS_BYTES + NAMED_BYTES)) {
    this.memory = memory;
    this.#numbers = new Float64Array(memory, 0, numbers);
    this.#named = new NamedCounts(memory, NUMBERS_BYTES);
  }

  // ---------------------------------------------------------------- the thread

  /** What rests on no commit; the counts of commit units are in the ledger. */
  count(name: CounterName, by = 1): void {
    this.#add(COUNTER_INDEX[name], by);
  }

  countNamed(counter: NamedCounterName, name: string, by = 1): void {
    this.#named.add(counter, name, by);
  }

  /** @param times so many observations of the same value */
  observe(name: HistogramName, value: number, times = 1): void {
    const { at, bounds } = HISTOGRAM_PLACES[name];
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
    this.#add(at + bucket, times);
    this.#add(at + bounds.length + 1, value * times);
  }

  set(name: ThreadGaugeName, value: number): void {
    this.#numbers[GAUGE_PLACES[name]] = value;
  }

  #add(index: number, by: number): void {
    this.#numbers[index] = this.#numbers[index]! + by;
  }

  // ---------------------------------------------------------------- the front

  counter(name: CounterName): number {
    return this.#numbers[COUNTER_INDEX[name]]!;
  }

  named(counter: NamedCounterName): Map<string, number> {
    return this.#named.read(counter);
  }

  observations(name: HistogramName): Observations {
    const { at, bounds } = HISTOGRAM_PLACES[name];
    const sum = at + bounds.length + 1;
    return { buckets: this.#numbers.slice(at, sum), sum: this.#numbers[sum]! };
  }

  gauge(name: ThreadGaugeName): number {
    return this.#numbers[GAUGE_PLACES[name]]!;
  }

  /** A thread that has died executes nothing, and has nothing waiting. */
  clearGauges(): void {
    for (const index of Object.values(GAUGE_PLACES)) this.#numbers[index] = 0;
  }
}
