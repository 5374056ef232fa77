/** Parses expressions in linear time. Nesting is capped, so that parsing and evaluating cannot overflow the stack. */

import { clip } from '../../base/bounds.js';
import { type Parsed, parsing, Refusal } from '../parsed.js';
import { isRootedPath } from './scope.js';
import type { ArithmeticOperator, ComparisonOperator, Expression, Term } from './syntax.js';

export type Token =
  | { readonly kind: 'literal'; readonly value: number | string; readonly at: number }
  /** A word is a path, a function name or a keyword: letters, digits, `_` and `.`. */
  | { readonly kind: 'word' | 'symbol'; readonly text: string; readonly at: number };

/** Characters beyond ASCII count as letters. No two parts of the pattern match the same character. */
const TOKEN =
  /(?:([A-Za-z_.\u0080-\uffff][\w.\u0080-\uffff]*)|([=!<>]=|&&|\|\||[<>+\-*/!?:()[\],])|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|"([^"]*)"|'([^']*)')[\t-\r ]*/y;
const WORD_PART = /[\w.\u0080-\uffff]/;

/** @param text does not begin with a space @throws Refusal */
function tokenize(text: string): readonly Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    const found = TOKEN.exec(text);
    if (found === null) throw faultAt(text, at);
    // By index: destructuring it as an array is slower.
    const { 1: word, 2: symbol, 3: number } = found;
    if (word !== undefined) tokens.push({ kind: 'word', text: word, at });
    else if (symbol !== undefined) tokens.push({ kind: 'symbol', text: symbol, at });
    else if (number !== undefined) {
      const value = Number(number);
      if (!Number.isFinite(value)) throw fault('a number out of range', at);
      if (WORD_PART.test(text.charAt(at + number.length))) throw fault('a malformed number', at);
      tokens.push({ kind: 'literal', value, at });
    } else tokens.push({ kind: 'literal', value: (found[4] ?? found[5])!, at });
  }
  return tokens;
}

function faultAt(text: string, at: number): Refusal {
  const character = String.fromCodePoint(text.codePointAt(at)!);
  if (character === '"' || character === "'") return fault('an unclosed string', at);
  return fault(`unexpected ${JSON.stringify(character)}`, at);
}

const fault = (what: string, at: number): Refusal => new Refusal(`${what} at character ${at}`);
const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The value of a keyword or a finite number in JSON syntax, else undefined: `007` and `1.2.3` are words. */
export function plainValue(text: string): boolean | number | null | undefined {
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (text === 'null') return null;
  const number = JSON_NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** For parentheses, arrays, calls, signs and choices (docs/reference/expressions.md). */
export const EXPRESSION_DEPTH_MAX = 64;

/** Never throws: gives a tree, or a message with the position of the problem. */
export function parseExpression(text: string): Parsed<Expression> {
  return parsing(() => new Parser(tokenize(text)).parseAll());
}

const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '>', '>=', '<', '<=']);

class Parser {
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parseAll(): Expression {
    const expression = this.#choice();
    if (this.#next < this.#tokens.length) throw this.#unexpected();
    return expression;
  }

  #choice(): Expression {
    const all = () => this.#logical('and', '&&', () => this.#comparison());
    const test = this.#logical('or', '||', all);
    if (!this.#take('?')) return test;
    const yes = this.#nested(() => this.#choice());
    this.#expect(':');
    const no = this.#nested(() => this.#choice());
    return { kind: 'choose', test, yes, no };
  }

  #logical(kind: 'and' | 'or', symbol: string, operand: () => Expression): Expression {
    const operands = [operand()];
    while (this.#take(symbol)) operands.push(operand());
    return operands.length === 1 ? operands[0]! : { kind, operands };
  }

  #comparison(): Expression {
    const left = this.#sum();
    const operator = this.#takeComparison();
    if (operator === undefined) return left;
    const first = this.#tokens[this.#next];
    const right = this.#sum();
    const isEquality = operator === '==' || operator === '!=';
    // Only a path that stands alone is a bare word; in parentheses it is a path.
    if (isEquality && right.kind === 'path' && first?.kind === 'word') {
      return { kind: 'compare', operator, left, right: bareWord(left, right.path, first.text) };
    }
    return { kind: 'compare', operator, left, right };
  }

  #sum(): Expression {
    return this.#chain(['+', '-'], () => this.#chain(['*', '/'], () => this.#signed()));
  }

  #chain(operators: readonly ArithmeticOperator[], operand: () => Expression): Expression {
    const first = operand();
    const rest: Term[] = [];
    let operator = operators.find((symbol) => this.#take(symbol));
    while (operator !== undefined) {
      rest.push({ operator, operand: operand() });
      operator = operators.find((symbol) => this.#take(symbol));
    }
    return rest.length === 0 ? first : { kind: 'arithmetic', first, rest };
  }

  #signed(): Expression {
    if (this.#take('!')) return { kind: 'not', operand: this.#nested(() => this.#signed()) };
    if (this.#take('-')) return { kind: 'negate', operand: this.#nested(() => this.#signed()) };
    return this.#primary();
  }

  #primary(): Expression {
    const token = this.#tokens[this.#next];
    if (token === undefined) throw this.#unexpected();
    if (token.kind === 'literal') {
      this.#next += 1;
      return { kind: 'literal', value: token.value };
    }
    if (token.kind === 'word') return this.#word(token.text);
    if (this.#take('(')) {
      const inner = this.#nested(() => this.#choice());
      this.#expect(')');
      return inner;
    }
    if (this.#take('[')) return { kind: 'array', items: this.#list(']') };
    throw this.#unexpected();
  }

  #word(text: string): Expression {
    if (text === 'in') throw this.#unexpected();
    this.#next += 1;
    const value = plainValue(text);
    if (value !== undefined) return { kind: 'literal', value };
    if (this.#take('(')) return { kind: 'call', name: text, args: this.#list(')') };
    const path = text.split('.');
    if (path.includes('')) throw new Refusal(`a path with an empty segment: ${clip(text)}`);
    return { kind: 'path', path };
  }

  #list(close: ')' | ']'): readonly Expression[] {
    const items: Expression[] = [];
    if (this.#take(close)) return items;
    do items.push(this.#nested(() => this.#choice()));
    while (this.#take(','));
    this.#expect(close);
    return items;
  }

  #nested(parse: () => Expression): Expression {
    this.#depth += 1;
    if (this.#depth > EXPRESSION_DEPTH_MAX) {
      throw new Refusal(`nested deeper than ${EXPRESSION_DEPTH_MAX} levels`);
    }
    const node = parse();
    this.#depth -= 1;
    return node;
  }

  #takeComparison(): ComparisonOperator | undefined {
    const token = this.#tokens[this.#next];
    if (token === undefined || token.kind === 'literal') return undefined;
    const isOperator = token.kind === 'symbol' ? COMPARISONS.has(token.text) : token.text === 'in';
    if (!isOperator) return undefined;
    this.#next += 1;
    return token.text as ComparisonOperator;
  }

  #take(symbol: string): boolean {
    const token = this.#tokens[this.#next];
    if (token?.kind !== 'symbol' || token.text !== symbol) return false;
    this.#next += 1;
    return true;
  }

  #expect(symbol: string): void {
    if (!this.#take(symbol)) throw this.#unexpected(`, expected "${symbol}"`);
  }

  #unexpected(expectation = ''): Refusal {
    const token = this.#tokens[this.#next];
    if (token === undefined) return new Refusal(`unexpected end${expectation}`);
    const shown = token.kind === 'literal' ? token.value : token.text;
    const text = typeof shown === 'string' ? `"${clip(shown)}"` : shown;
    return new Refusal(`unexpected ${text} at character ${token.at}${expectation}`);
  }
}

/** An unquoted word to the right of `==`: text if compared with a path, else text or a path. */
function bareWord(left: Expression, path: readonly string[], text: string): Expression {
  if (isRootedPath(text)) return { kind: 'path', path };
  if (left.kind === 'path') return { kind: 'literal', value: text, isBare: true };
  return { kind: 'word', path, text };
}
