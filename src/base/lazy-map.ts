/** A Map that allocates on the first `set`: an empty one takes 200 bytes. */

/** What a `LazyMap` and a Map have in common. */
export interface MapLike<Key, Value> extends Iterable<[Key, Value]> {
  readonly size: number;
  has(key: Key): boolean;
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): void;
  delete(key: Key): boolean;
  clear(): void;
  keys(): IterableIterator<Key>;
  values(): IterableIterator<Value>;
}

const NO_ENTRIES: ReadonlyMap<never, never> = new Map<never, never>();

export class LazyMap<Key, Value> implements MapLike<Key, Value> {
  #map: Map<Key, Value> | undefined;

  get size(): number {
    return this.#map?.size ?? 0;
  }

  has(key: Key): boolean {
    return this.#map?.has(key) ?? false;
  }

  get(key: Key): Value | undefined {
    return this.#map?.get(key);
  }

  set(key: Key, value: Value): void {
    this.#map ??= new Map();
    this.#map.set(key, value);
  }

  delete(key: Key): boolean {
    return this.#map?.delete(key) ?? false;
  }

  clear(): void {
    this.#map = undefined;
  }

  keys(): IterableIterator<Key> {
    return (this.#map ?? NO_ENTRIES).keys();
  }

  values(): IterableIterator<Value> {
    return (this.#map ?? NO_ENTRIES).values();
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return (this.#map ?? NO_ENTRIES)[Symbol.iterator]();
  }
}
