/**
 * The counts of one thread, in memory shared with the front thread, where its successor continues them. Only one
 * thread writes. Aligned 64-bit numbers are written atomically on every platform of Node.
 */

import {
  COUNTER_INDEX,
  COUNTER_NAMES,
  type CounterName,
  HISTOGRAMS,
  type HistogramName,
  NAMED_COUNTERS,
  type NamedCounterName,
  THREAD_GAUGES,
  type ThreadGaugeName,
} from './catalog.js';

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

export interface Observations {
  readonly buckets: Float64Array;
  readonly sum: number;
}

/** Names per label and shard with their own series. */
export const NAMES_MAX = 100;
/** The shared series. A sequence with this name counts here as well. */
export const OTHER = 'other';
/** The longest name that the API accepts, in UTF-8. */
const NAME_BYTES = 255 * 4;
export type Label = (typeof NAMED_COUNTERS)[NamedCounterName]['label'];

const LABELS: readonly Label[] = [...new Set(Object.values(NAMED_COUNTERS).map((it) => it.label))];
const SLOTS = LABELS.length * (NAMES_MAX + 1);
const COLUMNS = Object.fromEntries(
  (Object.keys(NAMED_COUNTERS) as NamedCounterName[]).map((name, i) => [name, i]),
) as Readonly<Record<NamedCounterName, number>>;
const WIDTH = Object.keys(COLUMNS).length;
const NAMED_NUMBERS_BYTES = SLOTS * WIDTH * Float64Array.BYTES_PER_ELEMENT;
const LENGTHS_BYTES = SLOTS * Int32Array.BYTES_PER_ELEMENT;
const NAMED_BYTES = NAMED_NUMBERS_BYTES + LENGTHS_BYTES + SLOTS * NAME_BYTES;

/**
 * Counts labelled with names that users chose. Each name is a permanent series in a monitoring system: the first names
 * of a shard have their own series, the rest share `other`.
 */
class NamedCounts {
  readonly #numbers: Float64Array;
  /** The lengths of the names in bytes; 0: the slot is free. Stored last and read first. */
  readonly #lengths: Int32Array;
  readonly #names: Uint8Array;
  readonly #slots: Readonly<Record<Label, Map<string, number>>>;

  /** @param at the offset in the memory, a multiple of eight */
  constructor(memory: SharedArrayBuffer, at: number) {
    this.#numbers = new Float64Array(memory, at, SLOTS * WIDTH);
    this.#lengths = new Int32Array(memory, at + NAMED_NUMBERS_BYTES, SLOTS);
    this.#names = new Uint8Array(
      memory,
      at + NAMED_NUMBERS_BYTES + LENGTHS_BYTES,
      SLOTS * NAME_BYTES,
    );
    this.#slots = Object.fromEntries(
      LABELS.map((label) => [label, new Map([[OTHER, firstSlot(label)], ...this.#named(label)])]),
    ) as Record<Label, Map<string, number>>;
  }

  add(counter: NamedCounterName, name: string, by: number): void {
    const { label } = NAMED_COUNTERS[counter];
    const slot = this.#slots[label].get(name) ?? this.#claim(label, name);
    const at = slot * WIDTH + COLUMNS[counter];
    this.#numbers[at] = this.#numbers[at]! + by;
  }

  /** The counts by name: `other` always, names only if counted. */
  read(counter: NamedCounterName): Map<string, number> {
    const counts = new Map<string, number>();
    const { label } = NAMED_COUNTERS[counter];
    for (const [name, slot] of [[OTHER, firstSlot(label)] as const, ...this.#named(label)]) {
      const count = this.#numbers[slot * WIDTH + COLUMNS[counter]]!;
      if (count > 0 || name === OTHER) counts.set(name, count);
    }
    return counts;
  }

  #claim(label: Label, name: string): number {
    const slots = this.#slots[label];
    const first = firstSlot(label);
    if (slots.size > NAMES_MAX) return first;
    const bytes = Buffer.from(name);
    if (bytes.length === 0 || bytes.length > NAME_BYTES) return first;
    const slot = first + slots.size;
    this.#names.set(bytes, slot * NAME_BYTES);
    Atomics.store(this.#lengths, slot, bytes.length);
    slots.set(name, slot);
    return slot;
  }

  *#named(label: Label): Iterable<readonly [name: string, slot: number]> {
    const first = firstSlot(label);
    for (let slot = first + 1; slot <= first + NAMES_MAX; slot++) {
      const length = Atomics.load(this.#lengths, slot);
      if (length === 0) return;
      const at = slot * NAME_BYTES;
      yield [Buffer.from(this.#names.slice(at, at + length)).toString(), slot];
    }
  }
}

/** The slot of `other`, before those of the names. */
function firstSlot(label: Label): number {
  return LABELS.indexOf(label) * (NAMES_MAX + 1);
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
