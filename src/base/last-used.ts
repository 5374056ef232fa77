/** How caches of so many entries are made, in one way. */

import { LRUCache } from 'lru-cache';

/**
 * The entries that were used last, at most `max` of them. They are counted by size: with its own `max` the
 * library would reserve the whole room at once, for each cache of each thread.
 */
export function lastUsed<Key extends string, Value extends {}>(max: number): LRUCache<Key, Value> {
  return new LRUCache<Key, Value>({ maxSize: max, sizeCalculation: () => 1 });
}
