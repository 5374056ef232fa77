/** Maps with a bound: the entries that were used last stay, the others are forgotten. */

import { LRUCache } from 'lru-cache';

/**
 * Counted by size: with its own `max` the library would reserve the whole room at once, for each cache of each thread.
 */
export function lastUsed<Key extends string, Value extends {}>(max: number): LRUCache<Key, Value> {
  return new LRUCache<Key, Value>({ maxSize: max, sizeCalculation: () => 1 });
}

interface Entries<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value | undefined): unknown;
}

/** The value of the key, which is made on first use, and again once it was forgotten. */
export function valueFor<Key, Value extends {}>(
  entries: Entries<Key, Value>,
  key: Key,
  make: () => Value,
): Value {
  const known = entries.get(key);
  if (known !== undefined) return known;
  const made = make();
  entries.set(key, made);
  return made;
}
