/**
 * Secrets in the parameters of a step (docs/secrets.md). Stored and displayed parameters contain only the names of
 * secrets; values are filled in, in memory, when the call is made.
 */

import { displayText } from '../base/bounds.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { parseJson } from '../base/json-guard.js';
import { follow } from './expression/scope.js';
import { type Chain, splitTemplate } from './expression/template-syntax.js';
import { type Parsed, refused } from './parsed.js';

export interface SecretText {
  readonly path: readonly (string | number)[];
  /** Literal text, and expressions that name a secret, such as `secrets.stripe | base64`. */
  readonly parts: readonly (string | { readonly secret: string })[];
}

/** The value of the secret with this id; undefined when the call may not use it. */
export type SecretValues = (id: string) => string | undefined;

export interface Filled {
  readonly params: JsonValue;
  /** The texts of the secrets, to be masked everywhere else. */
  readonly values: readonly string[];
}

/** The ids that the texts may refer to: `secrets.a.b` is the secret a.b, or member b of the secret a. */
export function secretIdsIn(texts: readonly SecretText[]): string[] {
  const ids = new Set<string>();
  for (const { parts } of texts) {
    for (const part of parts) {
      if (typeof part === 'string') continue;
      for (const [id] of readings(pathOf(chainOf(part.secret)))) ids.add(id);
    }
  }
  return [...ids];
}

/** The parameters with all secrets filled in; `ok: false` names a missing one. */
export function fillSecrets(
  params: JsonValue,
  texts: readonly SecretText[],
  secretWith: SecretValues,
): Parsed<Filled> {
  const values = new Set<string>();
  let filled = params;
  for (const { path, parts } of texts) {
    let text = '';
    for (const part of parts) {
      if (typeof part === 'string') {
        text += part;
        continue;
      }
      const value = secretValue(part.secret, secretWith, values);
      if (!value.ok) return value;
      text += value.value;
    }
    filled = setAt(filled, path, 0, text);
  }
  return { ok: true, value: { params: filled, values: [...values] } };
}

function secretValue(expression: string, find: SecretValues, used: Set<string>): Parsed<string> {
  const chain = chainOf(expression);
  const path = pathOf(chain);
  const name = path.join('.');
  for (const [id, members] of readings(path)) {
    const secret = find(id);
    const found = secret === undefined ? undefined : memberOf(secret, members);
    if (found === undefined) continue;
    used.add(found);
    let value: JsonValue = found;
    for (const step of chain.steps) {
      if (step.kind !== 'filter') continue;
      const result = step.filter.apply(value);
      // The message of a filter may contain its input.
      if (!result.ok) return refused(`secret ${name}: a filter cannot work with it`);
      value = result.value;
    }
    const text = displayText(value);
    used.add(text);
    return { ok: true, value: text };
  }
  return refused(`secret ${name} does not exist, is disabled or has expired`);
}

/** Each way to split a path into an id and members of its value, the longest id first. */
function* readings(path: readonly string[]): Generator<[id: string, members: readonly string[]]> {
  for (let length = path.length; length > 0; length -= 1) {
    yield [path.slice(0, length).join('.'), path.slice(length)];
  }
}

function memberOf(secret: string, members: readonly string[]): string | undefined {
  if (members.length === 0) return secret;
  const json = parseJson(secret);
  const value = json.ok ? follow(json.value as JsonValue, members, 0) : undefined;
  return value === undefined || value === null ? undefined : displayText(value);
}

/** Parsed successfully when the definition was compiled. */
function chainOf(expression: string): Chain {
  const [chain] = splitTemplate(`{{${expression}}}`) ?? [];
  if (chain === undefined || typeof chain === 'string') throw new Error('not the name of a secret');
  if (!chain.ok) throw new Error(chain.message);
  return chain.value;
}

const pathOf = ({ source }: Chain): readonly string[] => source.path.slice(1);

/** Copies only the objects along the path. */
function setAt(value: JsonValue, path: SecretText['path'], from: number, text: string): JsonValue {
  const key = path[from];
  if (key === undefined) return text;
  if (Array.isArray(value)) {
    return value.map((item, i) => (i === key ? setAt(item, path, from + 1, text) : item));
  }
  const object = value as JsonObject;
  return { ...object, [key]: setAt(object[key]!, path, from + 1, text) };
}
