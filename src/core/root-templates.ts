/** Templates outside of instances: the values they may read are given by name, such as `body` of a request. */

import { misspelt } from '../../schema/suggest.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { EMPTY_SCOPE, type Scope } from './expression/scope.js';
import { hasUnclosed, splitTemplate } from './expression/template-syntax.js';

/** What is wrong with a template anywhere in the value, such as an unknown root; undefined: nothing. */
export function templateProblem(
  value: JsonValue,
  roots: readonly string[],
  place: string,
): string | undefined {
  if (typeof value === 'string') return problemOfText(value, roots, place);
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const inner = Array.isArray(value) ? `${place}[${key}]` : `${place}.${key}`;
    const problem = templateProblem(member, roots, inner);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOfText(text: string, roots: readonly string[], place: string): string | undefined {
  const parts = splitTemplate(text, (word) => roots.includes(word)) ?? [text];
  if (hasUnclosed(text, parts)) return `${place}: {{ without }}`;
  for (const part of parts) {
    if (typeof part === 'string' || part.ok) continue;
    const { unknown } = part.problems[0] ?? {};
    const meant = unknown?.kind === 'root' ? misspelt(unknown.name, roots) : undefined;
    if (meant !== undefined) return `${place}: ${part.message}; did you mean ${meant}?`;
    const known = unknown?.kind === 'root' ? `; there are ${roots.join(', ')}` : '';
    return `${place}: ${part.message}${known}`;
  }
  return undefined;
}

/** @param roots the values by name */
export const rootScope = (roots: JsonObject): Scope => ({ ...EMPTY_SCOPE, roots });
