/**
 * A Map for entries that come and go all the time. When V8 replaces the table of a Map or Set, the old table keeps its
 * entries and refers to the new one. Once a table is in the old generation, minor collections take it for alive, with all
 * tables behind it and all values that were in them: everything that passes is promoted
 * (docs/decisions/0010-resident-actors.md). Here a table refers to a box, which is empty once its entry is deleted.
 */

class Box<Value> {
  value: Value | undefined;

  constructor(value: Value) {
    this.value = value;
  }
}

/** The tables keep deleted keys: objects must not be keys. */
export class ChurningMap<Key extends string | number, Value extends object> {
  readonly #boxes = new Map<Key, Box<Value>>();

  get size(): number {
    return this.#boxes.size;
  }

  has(key: Key): boolean {
    return this.#boxes.has(key);
  }

  get(key: Key): Value | undefined {
    return this.#boxes.get(key)?.value;
  }

  set(key: Key, value: Value): void {
    const box = this.#boxes.get(key);
    if (box === undefined) this.#boxes.set(key, new Box(value));
    else box.value = value;
  }

  delete(key: Key): boolean {
    const box = this.#boxes.get(key);
    if (box === undefined) return false;
    box.value = undefined;
    return this.#boxes.delete(key);
  }

  clear(): void {
    for (const box of this.#boxes.values()) box.value = undefined;
    this.#boxes.clear();
  }

  /** In the order of insertion, like those of a Map. */
  keys(): IterableIterator<Key> {
    return this.#boxes.keys();
  }

  *values(): IterableIterator<Value> {
    for (const { value } of this.#boxes.values()) yield value as Value;
  }

  *[Symbol.iterator](): IterableIterator<[Key, Value]> {
    for (const [key, { value }] of this.#boxes) yield [key, value as Value];
  }
}
