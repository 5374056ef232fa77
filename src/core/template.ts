/**
 * Templates in parameters: compiled once per definition, rendered for every step. A string that is one expression keeps
 * the type of its value; inside other text a value becomes text. Constant parts are shared, never copied. Rendering
 * never throws: a problem becomes a message that fails the step for good (docs/reference/expressions.md).
 */

import { displayText, lengthOf, sizeWithin } from '../base/bounds.js';
import type { JsonObject, JsonValue } from '../base/json.js';
import { type OutputReads, outputReads, readRooted, type Scope } from './expression/scope.js';
import {
  type IsRoot,
  type ParsedChain,
  type Part,
  type Source,
  splitTemplate,
} from './expression/template-syntax.js';
import { type Parsed, refused } from './parsed.js';
import type { SecretText } from './secret-texts.js';

export interface Template {
  /** Some strings name secrets, which rendering leaves in place (see `secretTextsOf`). */
  readonly hasSecrets: boolean;
  /** The blocks whose outputs it can read: only these have to be loaded. */
  readonly outputs: OutputReads;
  readonly root: Node;
}

type Node =
  /** Rendering returns the compiled value itself. */
  | { readonly kind: 'constant'; readonly value: JsonValue }
  | { readonly kind: 'chain'; readonly chain: ParsedChain }
  | { readonly kind: 'text'; readonly parts: readonly Part[] }
  | { readonly kind: 'array'; readonly items: readonly Node[] }
  /** `base` has every key in order; `entries` are the members to render. */
  | {
      readonly kind: 'object';
      readonly base: JsonObject;
      readonly entries: readonly (readonly [string, Node])[];
    };

/** The limit for request bodies, too: a rendered value may become an output or a request. */
export const RENDERED_DEPTH_MAX = 256;
/** In characters, approximately. Stops loops whose parameters contain their own last output twice. */
export const RENDERED_SIZE_MAX = 16 * 1024 * 1024;

/**
 * Compiles every string in `value`, but not its keys. `value` must not change afterwards.
 *
 * @param isKnown default: the roots of steps
 */
export function compileTemplate(value: JsonValue, isKnown?: IsRoot): Template {
  const root = compile(value, isKnown);
  return { hasSecrets: hasSecrets(root), outputs: outputReads(pathsOf(root)), root };
}

/**
 * The value of the template in `scope`; it may share structure with both. `ok: false` fails the step permanently.
 *
 * @param sizeMax of all inserted values, in characters, approximately
 */
export function renderTemplate(
  template: Template,
  scope: Scope,
  sizeMax = RENDERED_SIZE_MAX,
): Parsed<JsonValue> {
  if (template.root.kind === 'constant') return { ok: true, value: template.root.value };
  const run: Rendering = { scope, sizeMax, left: sizeMax, problem: undefined };
  const value = render(template.root, run, RENDERED_DEPTH_MAX);
  return run.problem === undefined ? { ok: true, value } : refused(run.problem);
}

/** The strings that name secrets, otherwise rendered. Data cannot pass for a secret: names come from the template. */
export function secretTextsOf(template: Template, scope: Scope): SecretText[] {
  const sizeMax = RENDERED_SIZE_MAX;
  const run: Rendering = { scope, sizeMax, left: sizeMax, problem: undefined };
  const texts: SecretText[] = [];
  const visit = (node: Node, path: readonly (string | number)[]): void => {
    if (!hasSecrets(node)) return;
    if (node.kind === 'array')
      for (const [i, item] of node.items.entries()) visit(item, [...path, i]);
    else if (node.kind === 'object') {
      for (const [key, member] of node.entries) visit(member, [...path, key]);
    } else {
      const parts = node.kind === 'chain' ? [node.chain] : node.kind === 'text' ? node.parts : [];
      texts.push({ path, parts: parts.map((part) => secretPart(part, run)) });
    }
  };
  visit(template.root, []);
  return texts;
}

function secretPart(part: Part, run: Rendering): SecretText['parts'][number] {
  const secret = typeof part === 'string' ? undefined : secretOf(part);
  return secret === undefined ? renderPart(part, run, RENDERED_DEPTH_MAX) : { secret };
}

const secretOf = (chain: ParsedChain) => (chain.ok ? chain.value.secret : undefined);

function hasSecrets(node: Node): boolean {
  for (const chain of chainsIn(node)) if (secretOf(chain) !== undefined) return true;
  return false;
}

function* chainsIn(node: Node): Generator<ParsedChain> {
  if (node.kind === 'chain') yield node.chain;
  else if (node.kind === 'text') {
    for (const part of node.parts) if (typeof part !== 'string') yield part;
  } else if (node.kind === 'array') for (const item of node.items) yield* chainsIn(item);
  else if (node.kind === 'object') for (const [, member] of node.entries) yield* chainsIn(member);
}

function compile(value: JsonValue, isKnown: IsRoot | undefined): Node {
  if (typeof value === 'string') return compileText(value, isKnown);
  if (typeof value !== 'object' || value === null) return { kind: 'constant', value };
  if (Array.isArray(value)) {
    const items = value.map((item) => compile(item, isKnown));
    const isConstant = items.every((item) => item.kind === 'constant');
    return isConstant ? { kind: 'constant', value } : { kind: 'array', items };
  }
  const entries: [string, Node][] = [];
  for (const [key, member] of Object.entries(value)) {
    const node = compile(member, isKnown);
    if (node.kind !== 'constant') entries.push([key, node]);
  }
  return entries.length === 0
    ? { kind: 'constant', value }
    : { kind: 'object', base: value, entries };
}

function compileText(text: string, isKnown: IsRoot | undefined): Node {
  const parts = splitTemplate(text, isKnown);
  if (parts === undefined) return { kind: 'constant', value: text };
  const [only] = parts;
  if (parts.length > 1 || only === undefined || typeof only === 'string') {
    return { kind: 'text', parts };
  }
  return { kind: 'chain', chain: only };
}

function* pathsOf(node: Node): Generator<readonly string[]> {
  for (const chain of chainsIn(node)) {
    if (!chain.ok) continue;
    yield chain.value.source.path;
    for (const step of chain.value.steps) if (step.kind === 'fallback') yield step.source.path;
  }
}

/** One rendering, which ends at the first problem. Every inserted value is charged. */
interface Rendering {
  readonly scope: Scope;
  readonly sizeMax: number;
  left: number;
  problem: string | undefined;
}

function render(node: Node, run: Rendering, depthLeft: number): JsonValue {
  if (run.problem !== undefined) return null;
  switch (node.kind) {
    case 'constant':
      return node.value;
    case 'chain':
      return evaluateChain(node.chain, run, depthLeft);
    case 'text':
      return node.parts.map((part) => renderPart(part, run, depthLeft)).join('');
    case 'array':
      return node.items.map((item) => render(item, run, depthLeft - 1));
    case 'object': {
      // The spread makes every key an own property, `__proto__` too, so the assignments below cannot reach a prototype.
      const result = { ...node.base };
      for (const [key, member] of node.entries) result[key] = render(member, run, depthLeft - 1);
      return result;
    }
  }
}

function renderPart(part: Part, run: Rendering, depthLeft: number): string {
  if (typeof part === 'string') return part;
  if (run.problem !== undefined) return '';
  return displayText(evaluateChain(part, run, depthLeft));
}

function evaluateChain(chain: ParsedChain, run: Rendering, depthLeft: number): JsonValue {
  if (!chain.ok) return fail(chain.message, run);
  if (chain.value.secret !== undefined) return `{{${chain.value.secret}}}`;
  let value = readSource(chain.value.source, run, depthLeft);
  let isEnded = false;
  for (const step of chain.value.steps) {
    if (step.kind === 'filter') {
      const result = step.filter.apply(value);
      value = result.ok ? charge(result.value, run, depthLeft) : fail(result.message, run);
    } else if (value === null && !isEnded) {
      value = step.kind === 'literal' ? step.value : readSource(step.source, run, depthLeft);
      isEnded = step.kind === 'literal';
    }
    if (run.problem !== undefined) return null;
  }
  return value;
}

function readSource(source: Source, run: Rendering, depthLeft: number): JsonValue {
  const value = readRooted(source.path, run.scope) ?? null;
  if (source.kind === 'len') return lengthOf(value);
  const charged = charge(value, run, depthLeft);
  return source.kind === 'json' && run.problem === undefined ? JSON.stringify(charged) : charged;
}

/** Charges a value before anything visits it as a whole. */
function charge(value: JsonValue, run: Rendering, depthLeft: number): JsonValue {
  const size = sizeWithin(value, run.left, depthLeft);
  if (size === undefined) return fail(tooMuch(run), run);
  run.left -= size;
  return value;
}

const tooMuch = ({ sizeMax }: Rendering) =>
  `a template gives a value nested deeper than ${RENDERED_DEPTH_MAX} levels or larger than ${sizeMax / 1024 / 1024} MiB`;

function fail(problem: string, run: Rendering): null {
  run.problem ??= problem;
  return null;
}
