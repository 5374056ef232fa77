/** The values that expressions and templates read, by dotted paths. Only own properties are read. */

import { words } from '../../../schema/states.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../../base/json.js';

/** The latest output of each block, errors excluded. */
export interface OutputsView {
  get(blockId: string): JsonValue | undefined;
  all(): JsonObject;
}

/** The input of one evaluation. Results share values with it and never copy them. */
export interface Scope {
  readonly data: JsonObject;
  readonly config: JsonObject;
  readonly outputs: OutputsView;
  readonly runtime: JsonObject;
  readonly instanceId: string;
  readonly now: number;
  readonly random: () => number;
  /** The only roots, by name, of templates outside of instances (`core/root-templates.ts`). */
  readonly roots?: JsonObject;
}

/** Before the first step, or outside of instances: templates read neither the time nor random numbers. */
export const EMPTY_SCOPE: Scope = {
  data: {},
  config: {},
  outputs: { get: () => undefined, all: () => ({}) },
  runtime: {},
  instanceId: '',
  now: 0,
  random: () => 0,
};

export type OutputReads = 'all' | ReadonlySet<string>;

/** The first words that name a section instead of a key of context.data (docs/reference/expressions.md). */
export const ROOT_NAMES = words('context data config outputs steps input runtime instance_id');
const ROOTS: ReadonlySet<string> = new Set(ROOT_NAMES);
export const isRoot = (word: string): boolean => ROOTS.has(word);

/** Whether the text begins with a root and a dot, and so is a path wherever it appears. */
export function isRootedPath(text: string): boolean {
  const dot = text.indexOf('.');
  return dot > 0 && dot < text.length - 1 && ROOTS.has(text.slice(0, dot));
}

/** Roots that are a whole section. A condition of only this word means the key of context.data. */
export const SECTIONS: ReadonlySet<string> = new Set(words('config outputs data runtime steps'));

/** The value at a path that begins with a root; undefined without one. */
export function readRooted(path: readonly string[], scope: Scope): JsonValue | undefined {
  if (scope.roots !== undefined) return follow(scope.roots, path, 0);
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

/** Resolves `path` from segment `from` on. Segments of arrays are indexes. */
export function follow(start: JsonValue | undefined, path: readonly string[], from: number) {
  let value = start;
  for (let i = from; i < path.length; i += 1) {
    const segment = path[i]!;
    if (Array.isArray(value)) value = INDEX.test(segment) ? value[Number(segment)] : undefined;
    else if (value !== undefined && isJsonObject(value)) value = ownValue(value, segment);
    else return undefined;
  }
  return value;
}

/** Decimal digits without leading zeros, few enough for an array index. */
const INDEX = /^(?:0|[1-9][0-9]{0,9})$/;

export function outputReads(paths: Iterable<readonly string[]>): OutputReads {
  const ids = new Set<string>();
  for (const [root, blockId] of paths) {
    if (root !== 'outputs' && root !== 'steps') continue;
    if (blockId === undefined) return 'all';
    ids.add(blockId);
  }
  return ids;
}
