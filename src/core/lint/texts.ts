/** Checks single expressions and templates; the caller resolves references to blocks. */

import { misspelt, suggest } from '../../../schema/suggest.js';
import { clip } from '../../base/bounds.js';
import { parseCondition } from '../condition.js';
import { FILTER_NAMES } from '../expression/filters.js';
import { FUNCTION_NAMES, FUNCTIONS } from '../expression/functions.js';
import { parseExpression } from '../expression/parser.js';
import { isRoot, isRootedPath, ROOT_NAMES } from '../expression/scope.js';
import { childrenOf, type Expression } from '../expression/syntax.js';
import {
  type Chain,
  type ChainProblem,
  hasUnclosed,
  type Source,
  splitTemplate,
  TEMPLATE_FUNCTIONS,
} from '../expression/template-syntax.js';

/** Receives the findings of one text, and references that have to be looked up in the definition. */
export interface Remarks {
  /** @param suggest called only when the finding is listed */
  note(message: string, suggest?: () => string | undefined): void;
  /** The first two words of a path to an output. */
  reference(root: string, block: string): void;
  /** The first word of a template is not a root. */
  unknownRoot(root: string): void;
  /** A path of context.data, whose first word may be a misspelt root. */
  dataPath(path: readonly string[]): void;
  bareText(text: string): void;
}

export function readExpression(node: Expression, remarks: Remarks): void {
  if (node.kind === 'path' || node.kind === 'word') readPath(node.path, remarks);
  else if (node.kind === 'call' && !FUNCTIONS.has(node.name)) {
    const { name } = node;
    const message = `there is no function ${clip(name)}: it gives null`;
    remarks.note(message, () => suggest(name, FUNCTION_NAMES));
  } else if (node.kind === 'compare' && node.right.kind === 'literal' && node.right.isBare) {
    checkBare(String(node.right.value), remarks);
  }
  for (const child of childrenOf(node)) readExpression(child, remarks);
}

function readPath(path: readonly string[], remarks: Remarks): void {
  const [root = '', block] = path;
  if ((root === 'outputs' || root === 'steps') && block !== undefined) {
    remarks.reference(root, block);
  } else if (!isRoot(root)) remarks.dataPath(path);
}

const CONSTANTS: Readonly<Record<string, string>> = {
  True: 'true',
  TRUE: 'true',
  False: 'false',
  FALSE: 'false',
  None: 'null',
  nil: 'null',
  NULL: 'null',
  Null: 'null',
  undefined: 'null',
};

function checkBare(text: string, remarks: Remarks): void {
  const message = `compares with the text "${clip(text)}"`;
  const constant = Object.hasOwn(CONSTANTS, text) ? CONSTANTS[text] : undefined;
  if (constant !== undefined) {
    remarks.note(message, () => constant);
    return;
  }
  const parsed = parseExpression(text);
  if (parsed.ok && parsed.value.kind === 'call') {
    const { name } = parsed.value;
    remarks.note(`${message}: there is no function ${clip(name)}`, () =>
      suggest(name, FUNCTION_NAMES),
    );
  } else if (parsed.ok && parsed.value.kind === 'arithmetic' && /\s[-+*/]\s/.test(text)) {
    remarks.note(`${message}; what is to be computed stands in parentheses`, () => `(${text})`);
  } else remarks.bareText(text);
}

/** The condition as it was probably meant, if that parses. */
export function correctedCondition(text: string): string | undefined {
  const corrected = text
    .replace(/\{\{|\}\}/g, '')
    .replaceAll('===', '==')
    .replaceAll('!==', '!=')
    .replace(/(?<![=!<>])=(?!=)/g, '==')
    .replace(/\sand\s/gi, ' && ')
    .replace(/\sor\s/gi, ' || ')
    .replace(/^not\s/i, '!')
    .replace(/\[(\d+)\]/g, '.$1')
    .trim();
  return corrected !== '' && corrected !== text.trim() && parseCondition(corrected).ok
    ? corrected
    : undefined;
}

export function readTemplate(text: string, remarks: Remarks): void {
  const parts = splitTemplate(text);
  if (hasUnclosed(text, parts)) remarks.note('has {{ without }}, which stays as it is');
  for (const part of parts ?? []) {
    if (typeof part === 'string') continue;
    if (part.ok) readParts(part.value, remarks);
    else for (const problem of part.problems) reportProblem(problem, remarks);
  }
}

/** Whether a template reads this root other than as a fallback. */
export function namesRoot(text: string, root: string): boolean {
  return (splitTemplate(text) ?? []).some(
    (part) => typeof part !== 'string' && part.ok && part.value.source.path[0] === root,
  );
}

/** The template that was probably meant by a path without braces; undefined for another text. */
export function templateMeant(text: string): string | undefined {
  if (/\s/.test(text)) return undefined;
  return isRootedPath(text) ? `{{ ${text} }}` : `{{ data.${text} }}`;
}

function reportProblem({ message, unknown }: ChainProblem, remarks: Remarks): void {
  if (unknown?.kind === 'root') remarks.unknownRoot(unknown.name);
  else {
    const known = unknown?.kind === 'filter' ? FILTER_NAMES : TEMPLATE_FUNCTIONS;
    remarks.note(`will fail: ${message}`, () => unknown && suggest(unknown.name, known));
  }
}

function readParts({ source, steps }: Chain, remarks: Remarks): void {
  readSource(source, remarks);
  for (const step of steps) {
    if (step.kind === 'fallback') readSource(step.source, remarks);
    else if (step.kind === 'literal' && step.isWord) checkWord(String(step.value), remarks);
  }
}

/** An unquoted fallback is text; warns if it looks like a filter or a path. */
function checkWord(word: string, remarks: Remarks): void {
  const filter = misspelt(word, FILTER_NAMES);
  const message = `${clip(word)} is the text that stands for a missing value`;
  if (filter === word) remarks.note(`${message}: the filter ${word} needs its arguments`);
  else if (filter !== undefined) remarks.note(`${message}, not a filter`, () => filter);
  else if (word.includes('.')) {
    const [root = ''] = word.split('.', 1);
    const meant = misspelt(root, ROOT_NAMES);
    if (meant !== undefined) remarks.note(`${message}, not a path`, () => meant);
  }
}

/** Templates have no operators: a path with one of these never resolves. */
const OPERATOR = /[\s=<>!&+*/?[\]]/;

function readSource({ path }: Source, remarks: Remarks): void {
  const [root = '', block] = path;
  const isOfBlock = (root === 'outputs' || root === 'steps') && block !== undefined;
  // A block id may contain any character.
  const odd = path.slice(isOfBlock ? 2 : 1).find((segment) => OPERATOR.test(segment));
  if (odd !== undefined) {
    const whole = path.join('.');
    remarks.note(
      `${clip(whole)} is no path, and there are no operators in templates: it is null`,
      () => (/\[\d+\]/.test(whole) ? whole.replace(/\[(\d+)\]/g, '.$1') : undefined),
    );
  }
  if (isOfBlock) remarks.reference(root, block);
}
