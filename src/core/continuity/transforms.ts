/**
 * Transforms, version 1: what a migration copies, moves and drops in the data of a checkpoint
 * (05 §16). Paths name members of objects only, by their own keys, so that `constructor` is a key
 * like any other and nothing inherited is ever reached.
 */

import { sizeWithin } from '../expression/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../json.js';
import { Fields, type Parsed, parsing, refuse } from './parsed.js';

export const TRANSFORMS_MAX = 128;
export const PATH_BYTES_MAX = 1_024;
export const PATH_SEGMENTS_MAX = 32;
export const PATH_SEGMENT_BYTES_MAX = 128;
/** Copies can double what was copied before, so the result is bounded: room for the largest body. */
export const TRANSFORMED_SIZE_MAX = 16 * 1_024 * 1_024;
/** As deep as the entry check lets a stored value nest. */
export const TRANSFORMED_DEPTH_MAX = 256;

export const TRANSFORM_OPERATIONS = ['copy', 'move', 'drop'] as const;
export type TransformOperation = (typeof TRANSFORM_OPERATIONS)[number];

/** `to_path` is empty exactly when the operation is `drop`. */
export interface Transform {
  readonly version: 1;
  readonly transform: TransformOperation;
  readonly from_path: string;
  readonly to_path: string;
}

/** Absent means none. The message names the field, as in `transforms[3].from_path`. */
export function parseTransforms(value: JsonValue | undefined): Parsed<readonly Transform[]> {
  return parsing(() => {
    const list = value ?? [];
    if (!Array.isArray(list)) refuse('transforms', 'must be an array');
    if (list.length > TRANSFORMS_MAX) {
      refuse('transforms', `must have at most ${TRANSFORMS_MAX} entries`);
    }
    const transforms = list.map((item, i) => readTransform(new Fields(item, `transforms[${i}]`)));
    refuseRepeatedTargets(transforms);
    return transforms;
  });
}

/**
 * Applies the transforms in order, each to the result of the one before it. Missing parents of a
 * destination are created, and what stands at a destination is replaced. The data is not changed;
 * the result shares with it what the transforms did not touch, so neither may be written to.
 */
export function applyTransforms(
  data: JsonValue,
  transforms: readonly Transform[],
): Parsed<JsonValue> {
  return parsing(() => {
    const size = sizeWithin(data, TRANSFORMED_SIZE_MAX);
    let budget = TRANSFORMED_SIZE_MAX - (size ?? refuseSize(0));
    let result = data;
    for (const [i, { transform, from_path, to_path }] of transforms.entries()) {
      const from: Place = { field: `transforms[${i}].from_path`, path: from_path };
      const moved = valueAt(result, from);
      if (transform === 'copy') {
        const copied = sizeWithin(moved, budget) ?? refuseSize(i);
        budget -= copied + to_path.length;
      } else {
        result = without(result, from_path.split('.'));
      }
      if (transform !== 'drop') {
        const to: Place = { field: `transforms[${i}].to_path`, path: to_path };
        result = withValue(result, to, to_path.split('.'), moved);
      }
    }
    if (sizeWithin(result, Number.MAX_SAFE_INTEGER, TRANSFORMED_DEPTH_MAX) === undefined) {
      refuse('transforms', `make the data nest deeper than ${TRANSFORMED_DEPTH_MAX} levels`);
    }
    return result;
  });
}

function readTransform(fields: Fields): Transform {
  if ((fields.value('version') ?? 1) !== 1) fields.refuse('version', 'must be 1');
  const transform = fields.required('transform', fields.word('transform', TRANSFORM_OPERATIONS));
  const from_path = readPath(fields, 'from_path');
  if (transform === 'drop') {
    if ((fields.text('to_path') ?? '') !== '') fields.refuse('to_path', 'must be empty for a drop');
    return { version: 1, transform, from_path, to_path: '' };
  }
  return { version: 1, transform, from_path, to_path: readPath(fields, 'to_path') };
}

function readPath(fields: Fields, field: string): string {
  const path = fields.required(field, fields.text(field));
  if (path === '' || Buffer.byteLength(path) > PATH_BYTES_MAX) {
    fields.refuse(field, `must have 1 to ${PATH_BYTES_MAX} bytes`);
  }
  const segments = path.split('.');
  if (segments.length > PATH_SEGMENTS_MAX) {
    fields.refuse(field, `must have at most ${PATH_SEGMENTS_MAX} segments`);
  }
  for (const segment of segments) {
    if (segment === '' || Buffer.byteLength(segment) > PATH_SEGMENT_BYTES_MAX) {
      fields.refuse(field, `must have segments of 1 to ${PATH_SEGMENT_BYTES_MAX} bytes`);
    }
  }
  return path;
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

interface Place {
  readonly field: string;
  readonly path: string;
}

function valueAt(data: JsonValue, { field, path }: Place): JsonValue {
  let value: JsonValue | undefined = data;
  for (const segment of path.split('.')) {
    if (!isJsonObject(value)) refuse(field, `leads through something that is no object: ${path}`);
    value = ownValue(value, segment);
    if (value === undefined) refuse(field, `does not exist in the checkpoint: ${path}`);
  }
  return value;
}

/** The path exists. */
function without(value: JsonValue, segments: readonly string[]): JsonValue {
  const [segment, ...rest] = segments;
  if (!isJsonObject(value) || segment === undefined) return value;
  const copy = { ...value };
  if (rest.length === 0) delete copy[segment];
  else setOwn(copy, segment, without(ownValue(value, segment) ?? null, rest));
  return copy;
}

function withValue(
  parent: JsonValue | undefined,
  place: Place,
  segments: readonly string[],
  value: JsonValue,
): JsonValue {
  const [segment, ...rest] = segments;
  if (segment === undefined) return value;
  const object = parent ?? {};
  if (parent === null || !isJsonObject(object)) {
    refuse(place.field, `leads through something that is no object: ${place.path}`);
  }
  const copy = { ...object };
  setOwn(copy, segment, withValue(ownValue(object, segment), place, rest, value));
  return copy;
}

/** Assigning to `__proto__` would set the prototype; this makes it a key. */
function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

function refuseSize(i: number): never {
  refuse(`transforms[${i}]`, `make the data larger than ${TRANSFORMED_SIZE_MAX} characters`);
}
