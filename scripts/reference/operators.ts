/** The operators of conditions, lowest precedence first. */

import type { ArithmeticOperator, ComparisonOperator } from '../../src/core/expression/syntax.js';
import { type Described, exampleTable, over } from './evaluated.js';
import type { Regions } from './regions.js';

type Operator = ComparisonOperator | ArithmeticOperator | '?' | '||' | '&&' | '!' | 'sign' | '[]';

const OPERATORS: { readonly [Name in Operator]: Described } = {
  '?': {
    forms: ['test ? a : b'],
    does: '`a` if the test is true, else `b`.',
    examples: over({ total: 120 }, 'total > 100 ? "large" : "small"'),
  },
  '||': {
    forms: ['a || b'],
    does: 'True if either is true; always a boolean.',
    examples: over({ vip: false, total: 120 }, 'vip || total > 100'),
  },
  '&&': {
    forms: ['a && b'],
    does: 'True if both are true.',
    examples: over({ vip: false, total: 120 }, 'vip && total > 100'),
  },
  '==': {
    forms: ['a == b'],
    does: 'Deep equality without conversion: 5 and "5" differ. A missing value equals null.',
    examples: [
      ...over({ plan: 'pro' }, 'plan == pro'),
      ...over({ count: 5 }, 'count == 5', 'count == "5"'),
      ...over({}, 'coupon == null'),
    ],
  },
  '!=': {
    forms: ['a != b'],
    does: 'Not equal.',
    examples: over({ plan: 'pro' }, 'plan != free'),
  },
  '<': {
    forms: ['a < b'],
    does: 'Less. False unless both are numbers or both are strings.',
    examples: over({ total: 120 }, 'total < 200', 'total < "200"'),
  },
  '<=': {
    forms: ['a <= b'],
    does: 'Less or equal.',
    examples: over({ total: 120 }, 'total <= 120'),
  },
  '>': {
    forms: ['a > b'],
    does: 'Greater.',
    examples: over({ total: 120 }, 'total > 100'),
  },
  '>=': {
    forms: ['a >= b'],
    does: 'Greater or equal.',
    examples: over({ day: '2026-03-14' }, 'day >= "2026-01-01"'),
  },
  in: {
    forms: ['a in array'],
    does: 'Whether the array has the member. For parts of strings use `contains`.',
    examples: [
      ...over({ role: 'owner' }, 'role in ["admin", "owner"]'),
      ...over({ note: 'please hurry' }, '"hurry" in note'),
    ],
  },
  '+': {
    forms: ['a + b'],
    does: 'The sum, or the concatenation of two strings. Numeric strings and booleans count as numbers; else null.',
    examples: over(
      { price: 3, unit: 'kg' },
      'price + 2',
      'price + "2"',
      'unit + "s"',
      'price + unit',
    ),
  },
  '-': {
    forms: ['a - b'],
    does: 'The difference; needs a space on each side.',
    examples: over({ price: 3 }, 'price - 1'),
  },
  '*': {
    forms: ['a * b'],
    does: 'The product.',
    examples: over({ price: 3 }, 'price * 2'),
  },
  '/': {
    forms: ['a / b'],
    does: 'The quotient; null if `b` is 0.',
    examples: over({ price: 3 }, 'price / 2', 'price / 0'),
  },
  '!': {
    forms: ['!a'],
    does: 'True if `a` is null, false, 0, an empty string or an empty array.',
    examples: over({ items: [], extra: {} }, '!items', '!extra'),
  },
  sign: {
    forms: ['-a'],
    does: 'The negated number.',
    examples: over({ price: 3 }, '-price'),
  },
  '[]': {
    forms: ['[a, b, …]'],
    does: 'An array.',
    examples: over({ tea: 3, milk: 2 }, 'max([tea, milk, 1])'),
  },
};

export function operatorRegions(): Regions {
  return { operators: exampleTable('operator', Object.entries(OPERATORS)) };
}
