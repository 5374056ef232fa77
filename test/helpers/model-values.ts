/**
 * What the model needs of conditions, templates and calendar arithmetic, for the few texts that
 * random definitions hold, written straight from the rules.
 */

import type { Retry } from '../../schema/step-options.js';
import type { JsonObject, JsonValue } from '../../src/base/json.js';

/** Everything that a text can refer to. */
export interface View {
  /** `context.data`, with the items of for_each blocks over it. */
  readonly data: JsonObject;
  /** The latest output of each block. */
  readonly outputs: JsonObject;
}

/** `path`, `path == word`, or a keyword; undefined for what does not parse. */
export function condition(text: string, view: View): boolean | undefined {
  if (text === 'true') return true;
  const [, path, word] = /^([\w.]+)(?: == (\w+))?$/.exec(text) ?? [];
  if (path === undefined) return undefined;
  const value = follow(view.data, path) ?? follow(rootsOf(view), path);
  return word === undefined ? isTruthy(value ?? null) : value === word;
}

/** Everything but null, false, 0, the empty text and the empty array. */
function isTruthy(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== null && value !== false && value !== 0 && value !== '';
}

/** Texts of the form `{{ path }}` become what they name, null when there is nothing. */
export function render(value: JsonValue, view: View): JsonValue {
  if (typeof value === 'string') {
    const [, path] = /^\{\{ ([\w.]+) \}\}$/.exec(value) ?? [];
    return path === undefined ? value : (follow(rootsOf(view), path) ?? null);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, render(inner, view)]),
  );
}

/** A path under context.data, or a template. */
export const collection = (text: string, view: View): JsonValue =>
  text.includes('{{') ? render(text, view) : (follow(view.data, text) ?? null);

function rootsOf({ data, outputs }: View): JsonObject {
  return { data, outputs };
}

function follow(start: JsonValue, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = start;
  for (const name of path.split('.')) {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return undefined;
    value = Object.hasOwn(value, name) ? value[name] : undefined;
    if (value === undefined) return undefined;
  }
  return value;
}

/** The wait after try `number`, in ms: min(initial × multiplier^number, max). */
/** Without a policy: at once, then twice as long each time. */
export const redispatchWait = (number: number): number =>
  number === 0 ? 0 : Math.min(100 * 2 ** number, 60_000);

export function backoff(retry: Retry, number: number): number {
  let wait = retry.initial_backoff ?? 1_000;
  for (let i = 0; i < number; i += 1) wait *= retry.backoff_multiplier ?? 2;
  return Math.floor(Math.min(wait, retry.max_backoff ?? 60_000));
}
