/**
 * The counts and measurements of one thread, in memory that it shares with the front thread: they survive the thread,
 * and its successor continues them. Only one thread writes. Aligned 64-bit numbers are written atomically on every
 * platform of Node.
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

/** The offset of a histogram: its buckets, those above the last bound, their sum. */
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

  /** @param memory of another meter of the same thread, or of its predecessor */
  constructor(memory = new SharedArrayBuffer(NUMBERS_BYTES + NAMED_BYTES)) {
    this.memory = memory;
    this.#numbers = new Float64Array(memory, 0, numbers);
    this.#named = new NamedCounts(memory, NUMBERS_BYTES);
  }

  /** For events without a commit; those of commit units are counted in the ledger. */
  count(name: CounterName, by = 1): void {
    this.#add(COUNTER_INDEX[name], by);
  }

  countNamed(counter: NamedCounterName, name: string, by = 1): void {
    this.#named.add(counter, name, by);
  }

  /** @param times how often the value was observed */
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

  clearGauges(): void {
    for (const index of Object.values(GAUGE_PLACES)) this.#numbers[index] = 0;
  }
}
