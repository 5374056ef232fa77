/** Operations on data of callers whose cost is bounded whatever the input. */

import type { JsonValue } from './json.js';

/** Values nested deeper are not looked at. Twice what the entry check admits, far from a stack overflow. */
const DEPTH_MAX = 512;

/**
 * Approximately the length of `value` as JSON; undefined when it nests deeper than `depthMax` or exceeds `sizeMax`.
 * Looks at no more than `sizeMax` members, so that shared parts cost no more than others.
 */
export function sizeWithin(
  value: JsonValue,
  sizeMax: number,
  depthMax: number = DEPTH_MAX,
): number | undefined {
  const size = measure(value, sizeMax, depthMax);
  return size <= sizeMax ? size : undefined;
}

function measure(value: JsonValue, left: number, depthLeft: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 5;
  if (depthLeft <= 0) return Number.POSITIVE_INFINITY;
  let size = 2;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && size <= left; i += 1) {
      size += 1 + measure(value[i]!, left - size, depthLeft - 1);
    }
    return size;
  }
  for (const key in value) {
    if (!Object.hasOwn(value, key)) continue;
    size += key.length + 4;
    if (size > left) return size;
    size += measure(value[key]!, left - size, depthLeft - 1);
    if (size > left) return size;
  }
  return size;
}

/** The text of a value inside other text: strings as they are, the rest as compact JSON. */
export function displayText(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Members of arrays and objects, UTF-8 bytes of strings; null for other values. */
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

/** Equal in value: numbers by value, objects whatever the order of their keys. */
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

/** One text for all values that are equal in value. The caller has bounded the depth. */
export function canonicalText(value: JsonValue): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  const members = Object.keys(value).sort();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key]!)}`).join(',')}}`;
}

/** Negative, zero or positive in the order of code points, which UTF-16 units alone do not give. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const unitA = a.charCodeAt(i);
    const unitB = b.charCodeAt(i);
    if (unitA !== unitB) return rank(unitA) - rank(unitB);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all other units: they are moved behind U+FFFF. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
