/**
 * What expressions and templates can see, and how a dotted path is followed in it. Every step looks
 * at own properties only, so `__proto__` or `constructor` find nothing that the data does not hold.
 */

import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../base/json.js';

/** The latest real output of each block. */
export interface OutputsView {
  get(blockId: string): JsonValue | undefined;
  all(): JsonObject;
}

/** The world of one evaluation. Values found in it are shared with the result, never copied. */
export interface Scope {
  readonly data: JsonObject;
  readonly config: JsonObject;
  readonly outputs: OutputsView;
  readonly runtime: JsonObject;
  readonly instanceId: string;
  /** Unix milliseconds. */
  readonly now: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** Which outputs a text can read: those of the named blocks, or all of them. */
export type OutputReads = 'all' | ReadonlySet<string>;

/**
 * The first words that name a section instead of a key of context.data
 * (docs/reference/expressions.md).
 */
const ROOTS: ReadonlySet<string> = new Set([
  'context',
  'data',
  'config',
  'outputs',
  'steps',
  'input',
  'runtime',
  'instance_id',
]);

export const ROOT_NAMES: readonly string[] = [...ROOTS];

export function isRoot(word: string): boolean {
  return ROOTS.has(word);
}

/** Whether the text begins with a root and a dot, and so with a path wherever it stands. */
export function isRootedPath(text: string): boolean {
  const dot = text.indexOf('.');
  return dot > 0 && dot < text.length - 1 && ROOTS.has(text.slice(0, dot));
}

/** Roots that are a whole section: as a condition by themselves they are keys of context.data. */
const SECTIONS: ReadonlySet<string> = new Set(['config', 'outputs', 'data', 'runtime', 'steps']);

export function isSection(word: string): boolean {
  return SECTIONS.has(word);
}

/** The value at a path that begins with a root; undefined when there is none, or no such root. */
export function readRooted(path: readonly string[], scope: Scope): JsonValue | undefined {
  switch (path[0]) {
    case 'context':
      return path[1] === 'data' || path[1] === 'config'
        ? follow(scope[path[1]], path, 2)
        : undefined;
    case 'data':
      return follow(scope.data, path, 1);
    case 'config':
      return follow(scope.config, path, 1);
    case 'outputs':
    case 'steps':
      return path[1] === undefined
        ? scope.outputs.all()
        : follow(scope.outputs.get(path[1]), path, 2);
    case 'input':
      return follow(ownValue(scope.data, 'input'), path, 1);
    case 'runtime':
      return follow(scope.runtime, path, 1);
    case 'instance_id':
      return follow(scope.instanceId, path, 1);
    default:
      return undefined;
  }
}

/** Follows `path` from its segment number `from` on. An array takes its index as a segment. */
export function follow(
  start: JsonValue | undefined,
  path: readonly string[],
  from: number,
): JsonValue | undefined {
  let value = start;
  for (let i = from; i < path.length; i += 1) {
    const segment = path[i]!;
    if (Array.isArray(value)) value = isIndex(segment) ? value[Number(segment)] : undefined;
    else if (value !== undefined && isJsonObject(value)) value = ownValue(value, segment);
    else return undefined;
  }
  return value;
}

/** Decimal digits in their plain form, and few enough to be an array index. */
function isIndex(segment: string): boolean {
  if (segment.length === 0 || segment.length > 10) return false;
  if (segment.length > 1 && segment.startsWith('0')) return false;
  for (let i = 0; i < segment.length; i += 1) {
    const code = segment.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return true;
}

/** Collects what a list of paths reads of the outputs. */
export function outputReads(paths: Iterable<readonly string[]>): OutputReads {
  const ids = new Set<string>();
  for (const [root, blockId] of paths) {
    if (root !== 'outputs' && root !== 'steps') continue;
    if (blockId === undefined) return 'all';
    ids.add(blockId);
  }
  return ids;
}
