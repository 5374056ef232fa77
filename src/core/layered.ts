/**
 * One object that lies over another: what the two give when they are spread into one, made without
 * looking at either. A for_each makes one for every item, and the data below may have 20,000 keys.
 */

import type { JsonObject } from '../base/json.js';

/** Both are never changed afterwards, and nor is the result: it may be kept like any other value. */
export function layered(under: JsonObject, over: JsonObject): JsonObject {
  return new Proxy<JsonObject>({}, new Layers(under, over));
}

/**
 * Single keys are looked up in the two layers. Whoever wants all keys, such as JSON.stringify, gets
 * them from the merged object, which is made for the first that asks.
 */
class Layers implements ProxyHandler<JsonObject> {
  readonly #under: JsonObject;
  readonly #over: JsonObject;
  #merged: JsonObject | undefined;

  constructor(under: JsonObject, over: JsonObject) {
    this.#under = under;
    this.#over = over;
  }

  get(target: JsonObject, key: string): unknown {
    const layer = this.#layerOf(key);
    return layer === undefined ? Reflect.get(target, key) : layer[key];
  }

  has(target: JsonObject, key: string): boolean {
    return this.#layerOf(key) !== undefined || Reflect.has(target, key);
  }

  getOwnPropertyDescriptor(_target: JsonObject, key: string): PropertyDescriptor | undefined {
    const layer = this.#layerOf(key);
    if (layer === undefined) return undefined;
    return { value: layer[key], writable: true, enumerable: true, configurable: true };
  }

  ownKeys(): string[] {
    this.#merged ??= { ...this.#under, ...this.#over };
    return Object.keys(this.#merged);
  }

  #layerOf(key: string): JsonObject | undefined {
    if (Object.hasOwn(this.#over, key)) return this.#over;
    return Object.hasOwn(this.#under, key) ? this.#under : undefined;
  }
}
