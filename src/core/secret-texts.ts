/**
 * Secrets in the parameters of a step (docs/secrets.md). What is stored and shown of the parameters names
 * the secret; the value is put in its place in memory, at the moment of the call. Pure.
 */

import type { JsonObject, JsonValue } from '../base/json.js';
import { parseJson } from '../base/json-guard.js';
import type { FilterCall } from './expression/filters.js';
import { follow } from './expression/scope.js';
import type { Parsed } from './expression/syntax.js';
import { type ParsedChain, splitTemplate } from './expression/template-syntax.js';

/** A string of the parameters in which secrets are named. */
export interface SecretText {
  /** Of the string within the parameters. */
  readonly path: readonly (string | number)[];
  /** Text as it is, and what names a secret, such as `secrets.stripe | base64`. */
  readonly parts: readonly (string | { readonly secret: string })[];
}

/** The value of the secret with this id; undefined: there is none that may be used. */
export type SecretValues = (id: string) => string | undefined;

export interface Filled {
  readonly params: JsonValue;
  /** The texts that must not be seen anywhere else. */
  readonly values: readonly string[];
}

/** The ids under which a secret that a text names may be known: `secrets.a.b` is a.b, or the member b of a. */
export function secretIdsIn(texts: readonly SecretText[]): string[] {
  const ids = new Set<string>();
  for (const { parts } of texts) {
    for (const part of parts) {
      if (typeof part !== 'string') for (const [id] of readings(pathOf(part.secret))) ids.add(id);
    }
  }
  return [...ids];
}

/** The parameters with the secrets in their places; `ok: false` names the one that is not there. */
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
    filled = replaced(filled, path, 0, text);
  }
  return { ok: true, value: { params: filled, values: [...values] } };
}

function secretValue(
  expression: string,
  secretWith: SecretValues,
  values: Set<string>,
): Parsed<string> {
  const chain = chainOf(expression);
  const path = pathOf(expression);
  const name = path.join('.');
  for (const [id, members] of readings(path)) {
    const secret = secretWith(id);
    const found = secret === undefined ? undefined : memberOf(secret, members);
    if (found === undefined) continue;
    values.add(found);
    let value: JsonValue = found;
    for (const filter of filtersOf(chain)) {
      const result = filter.apply(value);
      // The message of a filter may show what it was given.
      if (!result.ok) return { ok: false, message: `secret ${name}: a filter cannot work with it` };
      value = result.value;
    }
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    values.add(text);
    return { ok: true, value: text };
  }
  return { ok: false, message: `secret ${name} does not exist, is disabled or has expired` };
}

/** The whole name first: each way to read a path as an id and members of its value. */
function* readings(path: readonly string[]): Generator<[id: string, members: readonly string[]]> {
  for (let length = path.length; length > 0; length -= 1) {
    yield [path.slice(0, length).join('.'), path.slice(length)];
  }
}

function memberOf(secret: string, members: readonly string[]): string | undefined {
  if (members.length === 0) return secret;
  const json = parseJson(secret);
  const value = json.ok ? follow(json.value as JsonValue, members, 0) : undefined;
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What a definition has been compiled with parses again. */
function chainOf(expression: string): ParsedChain {
  const [chain] = splitTemplate(`{{${expression}}}`) ?? [];
  if (chain === undefined || typeof chain === 'string') throw new Error('not the name of a secret');
  return chain;
}

function pathOf(expression: string): readonly string[] {
  const chain = chainOf(expression);
  if (!chain.ok) throw new Error(chain.message);
  return chain.value.source.path.slice(1);
}

function filtersOf(chain: ParsedChain): FilterCall[] {
  if (!chain.ok) return [];
  return chain.value.steps.flatMap((step) => (step.kind === 'filter' ? [step.filter] : []));
}

/** Copies what lies on the path, and nothing else. */
function replaced(
  value: JsonValue,
  path: readonly (string | number)[],
  from: number,
  text: string,
): JsonValue {
  const key = path[from];
  if (key === undefined) return text;
  if (Array.isArray(value)) {
    return value.map((item, i) => (i === key ? replaced(item, path, from + 1, text) : item));
  }
  const object = value as JsonObject;
  return { ...object, [key]: replaced(object[key]!, path, from + 1, text) };
}
