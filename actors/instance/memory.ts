/**
 * How much one instance keeps in memory beside its context: the outputs that its expressions can read,
 * the items of its for_each blocks, and the parameters of its tasks. Each value has a limit of its own,
 * their number has not: without a limit on the sum, one instance could end its shard, and again
 * whenever it is loaded.
 */

import { LIMITS } from '../../src/config.js';
import { sizeWithin } from '../../src/core/expression/bounds.js';
import type { JsonValue } from '../../src/core/json.js';
import type { Snapshot } from '../../src/core/progress.js';

const MAX = LIMITS.keptCharactersMax;

/** Characters of JSON, roughly; of values that are beyond the limit by themselves, just that. */
export function charactersOf(value: JsonValue): number {
  return sizeWithin(value, MAX) ?? MAX + 1;
}

/** The sizes of outputs and items, by names that the two do not share. */
export class KeptValues {
  readonly #sizes = new Map<string, number>();
  #characters = 0;

  constructor(snapshot: Snapshot) {
    this.count(snapshot);
  }

  get characters(): number {
    return this.#characters;
  }

  output(blockId: string, characters: number): void {
    this.#set(`output:${blockId}`, characters);
  }

  items(key: string, characters: number): void {
    this.#set(`items:${key}`, characters);
  }

  /** Anew: some values have gone since they were counted. */
  count({ outputs, snapshots }: Snapshot): void {
    this.#sizes.clear();
    this.#characters = 0;
    for (const [blockId, output] of outputs) this.output(blockId, charactersOf(output));
    for (const [key, items] of snapshots) this.items(key, charactersOf(items));
  }

  #set(name: string, characters: number): void {
    this.#characters += characters - (this.#sizes.get(name) ?? 0);
    this.#sizes.set(name, characters);
  }
}
