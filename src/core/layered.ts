/** Spreads one object over another without copying: a for_each does so for every item, over up to 20,000 keys. */

import type { JsonObject } from '../base/json.js';

/** Neither the two objects nor the result may be changed afterwards. */
export function layered(under: JsonObject, over: JsonObject): JsonObject {
  return new Proxy<JsonObject>({}, new Layers(under, over));
}

/** Looks up single keys in the two layers; reading all keys, as JSON.stringify does, builds the merged object once. */
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
