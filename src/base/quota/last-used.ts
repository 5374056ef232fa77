/** Maps with a limit: the least recently used entries are evicted. */

import { LRUCache } from 'lru-cache';

/**
 * Limited by size: with its `max` option the library would allocate the whole capacity at once, for each cache of
 * each thread.
 */
export function lastUsed<Key extends string, Value extends {}>(max: number): LRUCache<Key, Value> {
  return new LRUCache<Key, Value>({ maxSize: max, sizeCalculation: () => 1 });
}

interface Entries<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value | undefined): unknown;
}

/** Returns the cached value, or creates it. */
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
