/**
 * Parameters that identify something: the name and key of a wait for an event, and idempotency keys. An expression that
 * evaluates to null in such a key would give the same key, such as `order-null`, to everything without the value, and
 * so match foreign events or wrong duplicates. The step fails instead (docs/reference/expressions.md).
 */

import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { templatesIn } from '../base/template-places.js';
import type { Scope } from './expression/scope.js';
import { compileTemplate, renderTemplate } from './template.js';

/** @param acts whether the parameters are sent to a worker or another system */
export function keyExpressions(handler: string, params: JsonObject | undefined, acts: boolean) {
  if (params === undefined) return [];
  if (handler === 'wait_for_event') {
    return ['name', 'key'].flatMap((name) => expressionsIn(name, ownValue(params, name)));
  }
  if (!acts) return [];
  const own = expressionsIn('idempotency_key', ownValue(params, 'idempotency_key'));
  const headers = handler === 'http_request' ? ownValue(params, 'headers') : undefined;
  if (!isJsonObject(headers)) return own;
  const sent = Object.entries(headers).flatMap(([name, value]) =>
    name.toLowerCase() === 'idempotency-key' ? expressionsIn(`headers.${name}`, value) : [],
  );
  return [...own, ...sent];
}

/** `text` includes the braces. */
function expressionsIn(member: string, value: JsonValue | undefined) {
  if (typeof value !== 'string') return [];
  return templatesIn(value).map((text) => ({ member, text, template: compileTemplate(text) }));
}

/** The problem of a key that evaluates to null in this scope. */
export function nullInKey(
  { handler, keys }: { readonly handler: string; readonly keys: ReturnType<typeof keyExpressions> },
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
