/** Operations on data of callers whose cost is bounded for any input. */

import type { JsonValue } from './json.js';

/** Deeper values are not inspected. Twice the depth that the entry check allows, far from a stack overflow. */
const DEPTH_MAX = 512;

/**
 * The approximate length of `value` as JSON; undefined when it nests deeper than `depthMax` or exceeds `sizeMax`.
 * Visits at most `sizeMax` members, so that values referenced more than once do not multiply the cost.
 */
export function sizeWithin(
  value: JsonValue,
  sizeMax: number,
  depthMax: number = DEPTH_MAX,
): number | undefined {
  const size = measure(value, sizeMax, depthMax);
  return size <= sizeMax ? size : undefined;
}

function measure(value: JsonValue, remaining: number, depthLeft: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 5;
  if (depthLeft <= 0) return Number.POSITIVE_INFINITY;
  let size = 2;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && size <= remaining; i += 1) {
      size += 1 + measure(value[i]!, remaining - size, depthLeft - 1);
    }
    return size;
  }
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    size += key.length + 4;
    if (size > remaining) return size;
    size += measure(value[key]!, remaining - size, depthLeft - 1);
    if (size > remaining) return size;
  }
  return size;
}

/** Strings as they are, other values as compact JSON. */
export function displayText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The number of members of an array or object, or of UTF-8 bytes of a string; null for other values. */
export function lengthOf(value: JsonValue): number | null {
  if (typeof value === 'string') return Buffer.byteLength(value, 'utf8');
  if (typeof value !== 'object' || value === null) return null;
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/** At most `max` UTF-16 units of `text`, never half of a surrogate pair. */
export function clip(text: string, max = 64): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  const isHighSurrogate = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, isHighSurrogate ? max - 1 : max)}…`;
}

/** Numbers are compared by value, objects regardless of the order of their keys. */
export function isDeepEqual(a: JsonValue, b: JsonValue, depthLeft = DEPTH_MAX): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (depthLeft <= 0) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => isDeepEqual(item, b[i]!, depthLeft - 1));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && isDeepEqual(a[key]!, b[key]!, depthLeft - 1));
}

/** The same text for all values that are deeply equal. The caller has bounded the depth. */
export function canonicalText(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key]!)}`).join(',')}}`;
}

/** Compares by code points, whose order differs from that of UTF-16 units. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const unitA = a.charCodeAt(i);
    const unitB = b.charCodeAt(i);
    if (unitA !== unitB) return rank(unitA) - rank(unitB);
  }
  return a.length - b.length;
}

/** Surrogates encode code points above U+FFFF, so they rank behind all other units. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
