/**
 * Parameters that identify something: the name and key of a wait for an event, and idempotency keys. An expression that
 * evaluates to null in such a key would give the same key, such as `order-null`, to everything without the value, and
 * so match foreign events or wrong duplicates. The step fails instead (docs/reference/expressions.md).
 */

import { KEY_LENGTH_MAX } from '../../schema/common.js';
import { displayText } from '../base/bounds.js';
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '../base/json.js';
import { templatesIn } from '../base/template-places.js';
import type { Scope } from './expression/scope.js';
import type { IsRoot } from './expression/template-syntax.js';
import { type Parsed, refused } from './parsed.js';
import { compileTemplate, renderTemplate, type Template } from './template.js';

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
function expressionsIn(member: string, value: JsonValue | undefined, isKnown?: IsRoot) {
  if (typeof value !== 'string') return [];
  return templatesIn(value).map((text) => {
    return { member, text, template: compileTemplate(text, isKnown) };
  });
}

/** A text whose templates give a key. */
export interface KeyTemplate {
  /** Its member of the definition, for messages. */
  readonly member: string;
  readonly text: string;
  readonly template: Template;
  readonly expressions: ReturnType<typeof expressionsIn>;
}

/** @param isKnown default: the roots of steps */
export function compileKey(member: string, text: string, isKnown?: IsRoot): KeyTemplate {
  return {
    member,
    text,
    template: compileTemplate(text, isKnown),
    expressions: expressionsIn(member, text, isKnown),
  };
}

/** What is wrong with every key of the template, whatever its expressions come to. */
export function keyTemplateProblem(
  { member, text, expressions }: KeyTemplate,
  lengthMax = KEY_LENGTH_MAX,
): string | undefined {
  const literal = expressions.reduce((rest, one) => rest.replace(one.text, ''), text);
  if (expressions.length === 0 && literal.trim() === '') return blank(member);
  return isOver(literal, lengthMax) ? tooLong(member, lengthMax) : undefined;
}

/** `ok: false`: an expression in it is null, or the result cannot be a key. @param sizeMax as in `renderTemplate` */
export function renderKey(
  { member, template, expressions }: KeyTemplate,
  scope: Scope,
  lengthMax = KEY_LENGTH_MAX,
  sizeMax?: number,
): Parsed<string> {
  const rendered = renderTemplate(template, scope, sizeMax);
  if (!rendered.ok) return refused(`${member}: ${rendered.message}`);
  const missing = nullIn(expressions, scope);
  if (missing !== undefined) {
    return refused(`${member} must not come to null, and ${missing.text} does`);
  }
  const { value } = rendered;
  if (typeof value === 'object') return refused(`${member} must come to a text or a number`);
  const text = displayText(value);
  if (text.trim() === '') return refused(blank(member));
  if (isOver(text, lengthMax)) return refused(tooLong(member, lengthMax));
  return { ok: true, value: text };
}

const isOver = (text: string, max: number) => text.length > max && [...text].length > max;
const blank = (member: string) => `${member} must not come to a blank text`;
const tooLong = (member: string, max: number) => `${member} must come to at most ${max} characters`;

function nullIn(expressions: ReturnType<typeof expressionsIn>, scope: Scope) {
  return expressions.find(({ template }) => {
    const rendered = renderTemplate(template, scope);
    return rendered.ok && rendered.value === null;
  });
}

/** The problem of a key that evaluates to null in this scope. */
export function nullInKey(
  { handler, keys }: { readonly handler: string; readonly keys: ReturnType<typeof keyExpressions> },
  scope: () => Scope,
): string | undefined {
  if (keys.length === 0) return undefined;
  const found = nullIn(keys, scope());
  if (found === undefined) return undefined;
  return `${handler}: ${found.member} must not come to null, and ${found.text} does`;
}
