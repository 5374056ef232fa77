/**
 * Transforms, version 1: copies, moves and drops members in the data of a checkpoint. Paths name
 * own keys of objects only, never inherited members such as `constructor`.
 */

import type { Transform as SentTransform } from '../../../schema/continuity.js';
import { sizeWithin } from '../../../src/base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../../src/base/json.js';
import { type Parsed, parsing, refuse } from '../../../src/core/parsed.js';

export const PATH_BYTES_MAX = 1_024;
const PATH_SEGMENTS_MAX = 32;
const PATH_SEGMENT_BYTES_MAX = 128;
/** Repeated copies can grow exponentially; this fits the largest body. */
const TRANSFORMED_SIZE_MAX = 16 * 1_024 * 1_024;
const TRANSFORMED_DEPTH_MAX = 256;

/** `to_path` is empty for `drop` only. */
export interface Transform extends SentTransform {
  readonly version: 1;
  readonly to_path: string;
}

export function transformsOf(sent: readonly SentTransform[]): Parsed<readonly Transform[]> {
  return parsing(() => {
    const transforms = sent.map((one, i) => transformOf(one, `transforms[${i}]`));
    refuseRepeatedTargets(transforms);
    return transforms;
  });
}

/** Applies the transforms in order to a copy; creates missing parents and replaces values. */
export function applyTransforms(
  data: JsonValue,
  transforms: readonly Transform[],
): Parsed<JsonValue> {
  return parsing(() => {
    let remaining = TRANSFORMED_SIZE_MAX - sizeOf(data, TRANSFORMED_SIZE_MAX, 'the checkpoint');
    const result = cloned(data);
    for (const [i, { transform, from_path, to_path }] of transforms.entries()) {
      const from = placeOf(`transforms[${i}].from_path`, from_path);
      const to = placeOf(`transforms[${i}].to_path`, to_path);
      let value = valueAt(result, from);
      if (transform === 'copy') {
        remaining -= sizeOf(value, remaining, `transforms[${i}]`);
        value = cloned(value);
      } else {
        removeAt(result, from);
      }
      if (transform !== 'drop') setAt(result, to, value);
    }
    if (sizeWithin(result, Number.MAX_SAFE_INTEGER, TRANSFORMED_DEPTH_MAX) === undefined) {
      refuse('transforms', `make the data nest deeper than ${TRANSFORMED_DEPTH_MAX} levels`);
    }
    return result;
  });
}

function transformOf({ transform, from_path, to_path }: SentTransform, name: string): Transform {
  checkPath(`${name}.from_path`, from_path);
  const destination = to_path ?? '';
  if (transform === 'drop') {
    if (destination !== '') refuse(`${name}.to_path`, 'must be empty for a drop');
  } else if (to_path == null) refuse(`${name}.to_path`, 'is required');
  else checkPath(`${name}.to_path`, destination);
  return { version: 1, transform, from_path, to_path: destination };
}

function checkPath(field: string, path: string): void {
  if (path === '' || Buffer.byteLength(path) > PATH_BYTES_MAX) {
    refuse(field, `must have 1 to ${PATH_BYTES_MAX} bytes`);
  }
  const segments = path.split('.');
  if (segments.length > PATH_SEGMENTS_MAX) {
    refuse(field, `must have at most ${PATH_SEGMENTS_MAX} segments`);
  }
  for (const segment of segments) {
    if (segment === '' || Buffer.byteLength(segment) > PATH_SEGMENT_BYTES_MAX) {
      refuse(field, `must have segments of 1 to ${PATH_SEGMENT_BYTES_MAX} bytes`);
    }
  }
}

function refuseRepeatedTargets(transforms: readonly Transform[]): void {
  const seen = new Map<string, number>();
  for (const [i, { to_path }] of transforms.entries()) {
    if (to_path === '') continue;
    const first = seen.get(to_path);
    if (first !== undefined) {
      refuse(`transforms[${i}].to_path`, `is also the destination of transforms[${first}]`);
    }
    seen.set(to_path, i);
  }
}

type Place = ReturnType<typeof placeOf>;

function placeOf(field: string, path: string) {
  const parents = path.split('.');
  const key = parents.pop() ?? '';
  return { field, path, parents, key };
}

function valueAt(data: JsonValue, place: Place): JsonValue {
  const parent = parentAt(data, place, () => refuseMissing(place));
  const value = ownValue(parent, place.key);
  return value === undefined ? refuseMissing(place) : value;
}

function removeAt(data: JsonValue, place: Place): void {
  delete parentAt(data, place, () => refuseMissing(place))[place.key];
}

function setAt(data: JsonValue, place: Place, value: JsonValue): void {
  const parent = parentAt(data, place, (object, key) => {
    const created: JsonObject = {};
    setOwn(object, key, created);
    return created;
  });
  setOwn(parent, place.key, value);
}

/** @param make called for a missing parent */
function parentAt(
  data: JsonValue,
  place: Place,
  make: (object: JsonObject, key: string) => JsonObject,
): JsonObject {
  let object = objectAt(data, place);
  for (const key of place.parents) {
    const inner = ownValue(object, key);
    object = objectAt(inner === undefined ? make(object, key) : inner, place);
  }
  return object;
}

function objectAt(value: JsonValue, { field, path }: Place): JsonObject {
  if (!isJsonObject(value)) refuse(field, `leads through something that is no object: ${path}`);
  return value;
}

/** JSON is faster than a structured clone for objects with many keys. */
function cloned(value: JsonValue): JsonValue {
  return JSON.parse(JSON.stringify(value)) as JsonValue;
}

/** Assigning to `__proto__` would set the prototype instead of a key. */
function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  const attributes = { writable: true, enumerable: true, configurable: true };
  Object.defineProperty(object, key, { value, ...attributes });
}

function sizeOf(value: JsonValue, most: number, what: string): number {
  const size = sizeWithin(value, most);
  if (size === undefined) {
    refuse(what, `would make more than ${TRANSFORMED_SIZE_MAX} characters`);
  }
  return size;
}

function refuseMissing({ field, path }: Place): never {
  refuse(field, `does not exist in the checkpoint: ${path}`);
}
