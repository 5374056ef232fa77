/** The restrictions on JSON Schemas of users, which bound the work of a validation. */

import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../src/base/json.js';
import { words } from './states.js';

/** Values in a user's schema with references followed. Bounds the work of every validation. */
export const USER_SCHEMA_NODES_MAX = 5_000;
export const USER_SCHEMA_BYTES_MAX = 65_536;
/**
 * The size of the compiled code (`SchemaCost`): most kinds took 15 to 50 ms of a shard on a busy machine, the most
 * expensive 139. Some hundred properties with two or three keywords each are a large schema.
 */
export const USER_SCHEMA_PARTS_MAX = 1_000;
/** Nested schemas with references followed: the compiler recurses as deep, with some 20 frames for each. */
export const USER_SCHEMA_DEPTH_MAX = 100;
/** Longer lists of names and values are searched by a loop, whose code does not grow. */
export const USER_SCHEMA_LOOP_FROM = 20;

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const ONE_SCHEMA = setOf(
  'additionalProperties additionalItems contains contentSchema else if items not propertyNames',
  'then unevaluatedItems unevaluatedProperties',
);
const SCHEMA_LIST = setOf('allOf anyOf oneOf prefixItems items');
const SCHEMA_MAP = setOf('properties dependentSchemas dependencies');
/** Patterns would reach a backtracking engine; the others are not part of the supported drafts. */
const REFUSED_KEYWORDS = setOf('pattern patternProperties id nullable $async $vocabulary');
/** They change the meaning of references, and count even where nothing refers. */
const REFUSED_NAMES = setOf(
  '$id $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor',
);
/** They assert nothing about a value. */
const REMARKS = setOf(
  'title description $comment default examples deprecated readOnly writeOnly $defs definitions',
  '$schema $id',
);
const LOOPED = setOf('required enum');

function setOf(...lines: readonly string[]): ReadonlySet<string> {
  return new Set(words(...lines));
}

/** Without percent-encoding, a reference has one reading. */
const LOCAL_REFERENCE = /^#(?:\/[\w$.~-]+)*$/;

export interface Examination {
  /** Why the schema is refused, as the end of a sentence about its field; the counts end there. */
  readonly problem: string | undefined;
  readonly nodes: number;
  /** Schemas, asserting keywords, and their list items outside loops. */
  readonly parts: number;
  readonly depth: number;
}

/**
 * Refuses patterns, recursive references and references to elsewhere, and bounds the size, so that a validation takes
 * time proportional to schema × data. Does not check whether it is a valid JSON Schema.
 *
 * @param findInvalid receives every referenced part, and may refuse it
 */
export function examineSchema(
  root: JsonObject,
  findInvalid: (schema: JsonObject) => string | undefined = () => undefined,
): Examination {
  const open = new Set<JsonObject>();
  const checked = new Set<JsonObject>();
  let nodes = 0;
  let parts = 0;
  let depth = 0;

  function visitSchema(schema: JsonValue): string | undefined {
    if (!isJsonObject(schema)) return undefined;
    if (open.has(schema)) return 'must not contain a recursive $ref';
    open.add(schema);
    depth = Math.max(depth, open.size);
    for (const [keyword, value] of Object.entries(schema)) {
      const problem = visitKeyword(keyword, value);
      if (problem !== undefined) return problem;
    }
    open.delete(schema);
    return undefined;
  }

  function visitKeyword(keyword: string, value: JsonValue): string | undefined {
    nodes += Array.isArray(value) ? 1 + value.length : 1;
    if (!REMARKS.has(keyword)) parts += partsOf(keyword, value);
    if (nodes > USER_SCHEMA_NODES_MAX) {
      return `is too complex: more than ${USER_SCHEMA_NODES_MAX} values with references followed`;
    }
    if (keyword === '$ref') return visitReference(value);
    if (REFUSED_KEYWORDS.has(keyword)) return refusedKeyword(keyword);
    if (Array.isArray(value)) return SCHEMA_LIST.has(keyword) ? visitAll(value) : undefined;
    if (ONE_SCHEMA.has(keyword)) return visitSchema(value);
    const isMap = SCHEMA_MAP.has(keyword) && isJsonObject(value);
    return isMap ? visitAll(Object.values(value)) : undefined;
  }

  function visitAll(schemas: readonly JsonValue[]): string | undefined {
    for (const schema of schemas) {
      nodes += 1;
      parts += Array.isArray(schema) ? 1 + schema.length : 1;
      const problem = visitSchema(schema);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  function visitReference(reference: JsonValue): string | undefined {
    if (typeof reference !== 'string' || !LOCAL_REFERENCE.test(reference)) {
      return 'must not use a $ref other than #/… within the same schema';
    }
    const target = resolvePointer(root, reference);
    if (target === undefined) return 'has a $ref that names nothing in the schema';
    if (isJsonObject(target) && !checked.has(target)) {
      checked.add(target);
      const problem = findInvalid(target);
      if (problem !== undefined) return problem;
    }
    return visitSchema(target);
  }

  const problem = findRefusedName(root, true) ?? visitSchema(root);
  return { problem, nodes, parts, depth };
}

/** The cost of a keyword without the schemas in it. */
function partsOf(keyword: string, value: JsonValue): number {
  if (Array.isArray(value)) {
    if (SCHEMA_LIST.has(keyword)) return 1;
    return 1 + (LOOPED.has(keyword) ? Math.min(value.length, USER_SCHEMA_LOOP_FROM) : value.length);
  }
  if (keyword !== 'dependentRequired' || !isJsonObject(value)) return 1;
  return Object.values(value).reduce<number>(
    (sum, names) => sum + 1 + (Array.isArray(names) ? names.length : 0),
    1,
  );
}

/** The root's own `$id` is accepted: it is removed before use. */
function findRefusedName(value: JsonValue, isRoot: boolean): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const isName = REFUSED_NAMES.has(key) && typeof inner !== 'object';
    if (isName && !(isRoot && key === '$id')) return refusedKeyword(key);
    const found = findRefusedName(inner, false);
    if (found !== undefined) return found;
  }
  return undefined;
}

function refusedKeyword(keyword: string): string {
  return `must not use ${keyword}: it is not supported`;
}

/** The schema at `#/a/b`; undefined if there is none. */
function resolvePointer(root: JsonObject, reference: string): JsonValue | undefined {
  let at: JsonValue | undefined = root;
  for (const part of reference.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = /^\d{1,6}$/.test(key) ? at[Number(key)] : undefined;
    else at = isJsonObject(at) ? ownValue(at, key) : undefined;
  }
  return isJsonObject(at) || typeof at === 'boolean' ? at : undefined;
}
