/** Parsed JSON from outside: it is never trusted for its prototype. */

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

let lastValue: JsonValue | undefined;
let lastText = '';

/** Caches the last text: one unit writes the same data to its row and its response, unchanged. */
export function textOfJson(value: JsonValue): string {
  if (value !== lastValue) {
    lastText = JSON.stringify(value);
    lastValue = value;
  }
  return lastText;
}

/** Calling JSON.stringify costs more than the check for an empty object. */
export function objectText(object: JsonObject): string {
  for (const _ in object) return JSON.stringify(object);
  return '{}';
}

/** Own properties only, so that a path such as `constructor.prototype` finds nothing. */
export function ownValue(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
