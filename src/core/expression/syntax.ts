/** The expression tree: plain data. A chain of one precedence is one node, so its depth is the nesting in the text. */

import type { JsonValue } from '../../base/json.js';

export type ComparisonOperator = '==' | '!=' | '>' | '>=' | '<' | '<=' | 'in';
export type ArithmeticOperator = '+' | '-' | '*' | '/';

export type Expression =
  /** `isBare`: unquoted text to the right of `==`. */
  | { readonly kind: 'literal'; readonly value: JsonValue; readonly isBare?: true }
  | { readonly kind: 'path'; readonly path: readonly string[] }
  /** A key of context.data that has the name of a root. */
  | { readonly kind: 'key'; readonly key: string }
  /** An unquoted word to the right of `==` whose left side is computed: the value of its path, else the word itself. */
  | { readonly kind: 'word'; readonly path: readonly string[]; readonly text: string }
  | { readonly kind: 'array'; readonly items: readonly Expression[] }
  | { readonly kind: 'not' | 'negate'; readonly operand: Expression }
  | { readonly kind: 'arithmetic'; readonly first: Expression; readonly rest: readonly Term[] }
  | {
      readonly kind: 'compare';
      readonly operator: ComparisonOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly kind: 'and' | 'or'; readonly operands: readonly Expression[] }
  | {
      readonly kind: 'choose';
      readonly test: Expression;
      readonly yes: Expression;
      readonly no: Expression;
    }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Expression[] };

export interface Term {
  readonly operator: ArithmeticOperator;
  readonly operand: Expression;
}

export function childrenOf(node: Expression): readonly Expression[] {
  switch (node.kind) {
    case 'literal':
    case 'path':
    case 'key':
    case 'word':
      return [];
    case 'array':
      return node.items;
    case 'not':
    case 'negate':
      return [node.operand];
    case 'arithmetic':
      return [node.first, ...node.rest.map((term) => term.operand)];
    case 'compare':
      return [node.left, node.right];
    case 'and':
    case 'or':
      return node.operands;
    case 'choose':
      return [node.test, node.yes, node.no];
    case 'call':
      return node.args;
  }
}
