/**
 * Counts labelled with names that users chose, such as that of a sequence, in memory that a shard shares with the front
 * thread. The number of names is bounded, since each is a permanent series in a monitoring system: the first names of a
 * shard have their own series, the rest share `other`.
 */

import { NAMED_COUNTERS, type NamedCounterName } from './catalog.js';

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

const NUMBERS_BYTES = SLOTS * WIDTH * Float64Array.BYTES_PER_ELEMENT;
const LENGTHS_BYTES = SLOTS * Int32Array.BYTES_PER_ELEMENT;

export const NAMED_BYTES = NUMBERS_BYTES + LENGTHS_BYTES + SLOTS * NAME_BYTES;

/** Only one thread counts; its successor continues the counts. */
export class NamedCounts {
  readonly #numbers: Float64Array;
  /** The lengths of the names in bytes; 0: the slot is free. Stored last and read first. */
  readonly #lengths: Int32Array;
  readonly #names: Uint8Array;
  readonly #slots: Readonly<Record<Label, Map<string, number>>>;

  /** @param at the offset in the memory, a multiple of eight */
  constructor(memory: SharedArrayBuffer, at: number) {
    this.#numbers = new Float64Array(memory, at, SLOTS * WIDTH);
    this.#lengths = new Int32Array(memory, at + NUMBERS_BYTES, SLOTS);
    this.#names = new Uint8Array(memory, at + NUMBERS_BYTES + LENGTHS_BYTES, SLOTS * NAME_BYTES);
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
