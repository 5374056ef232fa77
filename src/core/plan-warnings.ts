/**
 * What is probably a mistake in a definition, in words that follow the name of the block. Warnings
 * are never fatal: the definition is stored, and runs as the rules say.
 */

import { BUILTIN_NAMES } from './builtin.js';
import type { JsonValue } from './json.js';
import { compileTemplate, type Template } from './template.js';

/** For a name that is not built in but resembles one that is: it is left to external workers. */
export function handlerWarnings(handler: string): readonly string[] {
  if (BUILTIN_NAMES.has(handler)) return [];
  const meant = nearestWord(handler, BUILTIN_NAMES);
  if (meant === undefined) return [];
  return [`has the handler ${handler}, which is left to external workers; was ${meant} meant?`];
}

/** For each string in `value`: braces that are never closed, and expressions that do not parse. */
export function templateWarnings(value: JsonValue): readonly string[] {
  if (typeof value === 'string') return textWarnings(value);
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(templateWarnings);
}

function textWarnings(text: string): readonly string[] {
  if (!text.includes('{{')) return [];
  const template = compileTemplate(text);
  if (template.isConstant) return ['has {{ without }}, which stays as it is'];
  return problemsOf(template.root).map((problem) => `will fail: ${problem}`);
}

function problemsOf(root: Template['root']): string[] {
  const chains = root.kind === 'chain' ? [root.chain] : root.kind === 'text' ? root.parts : [];
  return chains.flatMap((part) => (typeof part === 'string' || part.ok ? [] : [part.message]));
}

/** Changes of one letter that still count as a slip. */
const SLIPS_MAX = 2;

/** Shorter names have too many neighbours for a guess; longer ones are nobody's slip. */
const GUESS_LENGTH_MIN = 4;
const GUESS_LENGTH_MAX = 32;

function nearestWord(word: string, known: Iterable<string>): string | undefined {
  const plain = normalise(word);
  if (plain.length < GUESS_LENGTH_MIN - 1 || plain.length > GUESS_LENGTH_MAX) return undefined;
  for (const candidate of known) {
    const slips = Math.min(SLIPS_MAX, Math.floor(candidate.length / GUESS_LENGTH_MIN));
    if (distance(plain, normalise(candidate)) <= slips) return candidate;
  }
  return undefined;
}

function normalise(word: string): string {
  return word.toLowerCase().replaceAll('-', '_');
}

/** Letters to insert, delete or replace to make `b` of `a` (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
