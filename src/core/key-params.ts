/**
 * Parameters that are keys or names for others: what a wait for an event is found by, and the idempotency key that
 * somebody is given. An expression of theirs that comes to null would make one key, such as `order-null`, for
 * everything that lacks the value: it would take what is meant for nobody, or be taken for a repetition. So the step
 * fails, whether that is all of the text or a part of it (docs/reference/expressions.md).
 */

import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { templatesIn } from '../base/template-places.js';
import type { Scope } from './expression/scope.js';
import { compileTemplate, renderTemplate, type Template } from './template.js';

/** One expression in such a parameter. */
export interface KeyExpression {
  /** The path of the parameter. */
  readonly member: string;
  /** With its braces. */
  readonly text: string;
  readonly template: Template;
}

/** @param acts somebody outside is called with the parameters */
export function keyExpressions(
  handler: string,
  params: JsonObject | undefined,
  acts: boolean,
): readonly KeyExpression[] {
  if (params === undefined) return NONE;
  if (handler === 'wait_for_event') {
    return ['name', 'key'].flatMap((name) => expressionsIn(name, ownValue(params, name)));
  }
  if (!acts) return NONE;
  const own = expressionsIn('idempotency_key', ownValue(params, 'idempotency_key'));
  const headers = handler === 'http_request' ? ownValue(params, 'headers') : undefined;
  if (!isJsonObject(headers)) return own;
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    name.toLowerCase() === 'idempotency-key' ? expressionsIn(`headers.${name}`, value) : [],
  );
  return [...own, ...sent];
}

const NONE: readonly KeyExpression[] = [];

function expressionsIn(member: string, value: JsonValue | undefined): KeyExpression[] {
  if (typeof value !== 'string') return [];
  return templatesIn(value).map((text) => ({ member, text, template: compileTemplate(text) }));
}

/** What is wrong with a key in this scope, of parameters that have been rendered in it. */
export function nullInKey(
  handler: string,
  keys: readonly KeyExpression[],
  scope: () => Scope,
): string | undefined {
  if (keys.length === 0) return undefined;
  const seen = scope();
  const found = keys.find(({ template }) => {
    const rendered = renderTemplate(template, seen);
    return rendered.ok && rendered.value === null;
  });
  if (found === undefined) return undefined;
  return `${handler}: ${found.member} must not come to null, and ${found.text} does`;
}
