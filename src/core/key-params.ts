/**
 * Parameters that identify something: the name and key of a wait for an event, and idempotency keys. An expression that
 * evaluates to null in such a key would give the same key, such as `order-null`, to everything without the value, and
 * so match foreign events or wrong duplicates. The step fails instead (docs/reference/expressions.md).
 */

import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { templatesIn } from '../base/template-places.js';
import type { Scope } from './expression/scope.js';
import { compileTemplate, renderTemplate, type Template } from './template.js';

export interface KeyExpression {
  readonly member: string;
  /** Including its braces. */
  readonly text: string;
  readonly template: Template;
}

interface Keyed {
  readonly handler: string;
  readonly keys: readonly KeyExpression[];
}

/** @param acts whether the parameters are sent to a worker or another system */
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

/** What is wrong with a key in this scope; the parameters have been rendered in it. */
export function nullInKey({ handler, keys }: Keyed, scope: () => Scope): string | undefined {
  if (keys.length === 0) return undefined;
  const seen = scope();
  const found = keys.find(({ template }) => {
    const rendered = renderTemplate(template, seen);
    return rendered.ok && rendered.value === null;
  });
  if (found === undefined) return undefined;
  return `${handler}: ${found.member} must not come to null, and ${found.text} does`;
}
