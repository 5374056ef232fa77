/**
 * The source files as those see them who look for rules of the house in their text: cut into code, comments and strings
 * by the compiler's scanner, so that a word in a comment is not taken for code.
 */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { LanguageVariant, SyntaxKind } from 'typescript/unstable/ast';
import { createScanner } from 'typescript/unstable/ast/scanner';

/** A text in three views of the same length; what does not belong to a view is blank there. */
export interface Source {
  /** From the root of the repository, with `/`. */
  readonly name: string;
  readonly text: string;
  /** Comments, the insides of strings and regular expressions are blank. */
  readonly code: string;
  readonly comments: string;
  /** Only the insides of strings, without what templates insert. */
  readonly strings: string;
}

type View = 'code' | 'comments' | 'strings' | 'pattern';

/** The view that the inside of a token belongs to, with the lengths of what encloses it. */
const INSIDES: ReadonlyMap<SyntaxKind, readonly [View, start: number, end: number]> = new Map([
  [SyntaxKind.SingleLineCommentTrivia, ['comments', 0, 0]],
  [SyntaxKind.MultiLineCommentTrivia, ['comments', 0, 0]],
  [SyntaxKind.StringLiteral, ['strings', 1, 1]],
  [SyntaxKind.NoSubstitutionTemplateLiteral, ['strings', 1, 1]],
  [SyntaxKind.TemplateHead, ['strings', 1, 2]],
  [SyntaxKind.TemplateMiddle, ['strings', 1, 2]],
  [SyntaxKind.TemplateTail, ['strings', 1, 1]],
  [SyntaxKind.RegularExpressionLiteral, ['pattern', 1, 1]],
]);

/** After these a slash divides; after anything else it begins a regular expression. */
const BEFORE_DIVISION: ReadonlySet<SyntaxKind> = new Set([
  ...[SyntaxKind.Identifier, SyntaxKind.NumericLiteral, SyntaxKind.BigIntLiteral],
  ...[SyntaxKind.StringLiteral, SyntaxKind.NoSubstitutionTemplateLiteral, SyntaxKind.TemplateTail],
  ...[SyntaxKind.RegularExpressionLiteral, SyntaxKind.CloseParenToken],
  ...[SyntaxKind.CloseBracketToken, SyntaxKind.CloseBraceToken, SyntaxKind.ThisKeyword],
]);

/** The compiler's scanner leaves to its parser what a slash, and what a closing brace, begins. */
export function scan(name: string, text: string): Source {
  const scanner = createScanner(false, LanguageVariant.Standard, text);
  /** What is no code, in order: its view, and where it begins and ends. */
  const insides: [View, from: number, to: number][] = [];
  /** The braces that are open; true for those that a template opened. */
  const braces: boolean[] = [];
  let last = SyntaxKind.Unknown;
  const next = () => {
    const kind = scanner.scan();
    if (kind === SyntaxKind.SlashToken || kind === SyntaxKind.SlashEqualsToken) {
      return BEFORE_DIVISION.has(last) ? kind : scanner.reScanSlashToken();
    }
    if (kind === SyntaxKind.OpenBraceToken) braces.push(false);
    if (kind === SyntaxKind.TemplateHead) braces.push(true);
    if (kind !== SyntaxKind.CloseBraceToken || braces.pop() !== true) return kind;
    const rest = scanner.reScanTemplateToken(false);
    if (rest === SyntaxKind.TemplateMiddle) braces.push(true);
    return rest;
  };
  for (let kind = next(); kind !== SyntaxKind.EndOfFile; kind = next()) {
    const inside = INSIDES.get(kind);
    if (inside !== undefined) {
      const [view, start, end] = inside;
      insides.push([view, scanner.getTokenStart() + start, scanner.getTokenEnd() - end]);
    }
    if (kind > SyntaxKind.LastTriviaToken) last = kind;
  }
  const view = (wanted: View) => {
    const parts: string[] = [];
    let at = 0;
    const show = (shown: View, to: number) => {
      const part = text.slice(at, to);
      parts.push(shown === wanted ? part : blank(part));
      at = to;
    };
    for (const [inside, from, to] of insides) {
      show('code', from);
      show(inside, to);
    }
    show('code', text.length);
    return parts.join('');
  };
  return { name, text, code: view('code'), comments: view('comments'), strings: view('strings') };
}

/** As many blanks, in the same lines. */
const blank = (text: string): string =>
  text.includes('\n') ? text.replace(/[^\n]+/g, blank) : ' '.repeat(text.length);

// ---------------------------------------------------------------- the files

/** This runs from the build, the source files lie in the checkout. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** From the root of the repository, in the order of their names. */
export function filesIn(folder: string, extension: string): readonly string[] {
  return readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(extension))
    .map((name) => path.posix.join(folder, name.split(path.sep).join('/')))
    .sort();
}

export const read = (name: string) => readFileSync(path.join(ROOT, name), 'utf8');

export function sourcesIn(folder: string): Source[] {
  return filesIn(folder, '.ts').map((name) => scan(name, read(name)));
}

/** The texts of a file, each with its name. A text continues over `+` and what a template inserts. */
export const textsOf = ({ name, code, strings }: Source): (readonly [string, string])[] =>
  [...`${code};`.matchAll(/[;,()]/g)].map(({ index }, at, ends) => [
    name,
    strings.slice(ends[at - 1]?.index ?? 0, index),
  ]);
