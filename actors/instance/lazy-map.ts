/**
 * A map that takes no room until something is put into it: of what each of many thousand objects may have
 * and hardly any has. An empty Map takes 200 bytes.
 */

const NONE: ReadonlyMap<never, never> = new Map<never, never>();

export class LazyMap<Key, Value> implements Iterable<[Key, Value]> {
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
    return (this.#map ?? NONE).keys();
  }

  values(): IterableIterator<Value> {
    return (this.#map ?? NONE).values();
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return (this.#map ?? NONE)[Symbol.iterator]();
  }
}
