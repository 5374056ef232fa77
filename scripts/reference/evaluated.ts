/**
 * Examples of expressions. The evaluator computes their values when the page is generated.
 */

import type { JsonObject, JsonValue } from '../../src/base/json.js';
import { evaluateCondition, parseCondition } from '../../src/core/condition.js';
import type { Scope } from '../../src/core/expression/scope.js';
import { compileTemplate, renderTemplate } from '../../src/core/template.js';
import { code, flatJson, table } from './markdown.js';

/** Context of the evaluation; absent sections are empty. */
export interface Sections {
  readonly data?: JsonObject;
  readonly config?: JsonObject;
  readonly outputs?: JsonObject;
  readonly runtime?: JsonObject;
}

export interface Example extends Sections {
  /** A template if there is `{{` in it, else a condition. */
  readonly text: string;
}

/** Examples that need only context.data. */
export function over(data: JsonObject, ...texts: readonly string[]): Example[] {
  return texts.map((text) => ({ text, data }));
}

/** A function, filter, operator or root. */
export interface Described {
  readonly forms: readonly string[];
  readonly does: string;
  /** The first shows its purpose. */
  readonly examples: readonly Example[];
}

/** A row for each example; the first one has the description. */
export function exampleTable(
  head: string,
  rows: readonly (readonly [string, Described])[],
): string {
  const lines = rows.flatMap(([name, { forms, does, examples }]) => {
    if (examples.length === 0) throw new Error(`no example of ${name}`);
    return examples.map((example, index) => {
      const words = index === 0 ? [forms.map(code).join('<br>'), does] : ['', ''];
      return [...words, ...exampleCells(example)];
    });
  });
  return table([head, 'result', 'example', 'with', 'value'], lines);
}

/** The text, its context, and its value. */
export function exampleCells(example: Example): string[] {
  return [code(example.text), seenText(example), valueText(example)];
}

function seenText({ data, config, outputs, runtime }: Sections): string {
  const seen = Object.entries({ data, config, outputs, runtime }).flatMap(([name, section]) =>
    section === undefined || Object.keys(section).length === 0
      ? []
      : [code(`${name} = ${flatJson(section)}`)],
  );
  return seen.join('<br>');
}

function valueText(example: Example): string {
  const given = evaluated(example);
  return given.ok ? code(flatJson(given.value)) : `fails: ${code(given.message)}`;
}

type Given =
  | { readonly ok: true; readonly value: JsonValue }
  | { readonly ok: false; readonly message: string };

export function evaluated(example: Example): Given {
  const scope = scopeOf(example);
  if (example.text.includes('{{')) return renderTemplate(compileTemplate(example.text), scope);
  const parsed = parseCondition(example.text);
  if (!parsed.ok) return parsed;
  return { ok: true, value: evaluateCondition(parsed.value, scope) };
}

export const EXAMPLE_INSTANCE_ID = '018f4e1a-5c00-7d3e-9a41-2b7c6d5e4f30';

/** A time and chances that are the same each time, as they are when an instance is replayed. */
const NOW = Date.UTC(2026, 2, 14, 9, 30, 15);
const SEED = 20_260_314;

function scopeOf({ data = {}, config = {}, outputs = {}, runtime = {} }: Sections): Scope {
  let state = SEED;
  return {
    data,
    config,
    runtime,
    outputs: { get: (id) => outputs[id], all: () => outputs },
    instanceId: EXAMPLE_INSTANCE_ID,
    now: NOW,
    random: () => {
      // Numerical Recipes' constants: good enough for digits that look like chance.
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    },
  };
}
