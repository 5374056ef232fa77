/** Maps with a limit: the least recently used entries are evicted. */

import { LRUCache } from 'lru-cache';

/** With its `max` option the library would allocate the whole capacity at once, for each cache and thread. */
export function lastUsed<Key extends string, Value extends {}>(max: number): LRUCache<Key, Value> {
  return new LRUCache<Key, Value>({ maxSize: max, sizeCalculation: () => 1 });
}

export function valueFor<Key, Value extends {}>(
  entries: { get(key: Key): Value | undefined; set(key: Key, value: Value | undefined): unknown },
  key: Key,
  make: () => Value,
): Value {
  const known = entries.get(key);
  if (known !== undefined) return known;
  const made = make();
  entries.set(key, made);
  return made;
}
