/** The operators of conditions, from weak to strong. */

import type { ArithmeticOperator, ComparisonOperator } from '../../src/core/expression/syntax.js';
import { over, type Told, toldTable } from './evaluated.js';
import type { Regions } from './regions.js';

type Operator = ComparisonOperator | ArithmeticOperator | '?' | '||' | '&&' | '!' | 'sign' | '[]';

const OPERATORS: { readonly [Name in Operator]: Told } = {
  '?': {
    forms: ['test ? a : b'],
    does: '`a` if the test is true, else `b`.',
    examples: over({ total: 120 }, 'total > 100 ? "large" : "small"'),
  },
  '||': {
    forms: ['a || b'],
    does: 'True if one of them is true. Always true or false, never the value itself.',
    examples: over({ vip: false, total: 120 }, 'vip || total > 100'),
  },
  '&&': {
    forms: ['a && b'],
    does: 'True if both are true.',
    examples: over({ vip: false, total: 120 }, 'vip && total > 100'),
  },
  '==': {
    forms: ['a == b'],
    does: 'Equal: also arrays and objects with equal members. Nothing is converted, so 5 and "5" differ. A missing value equals null.',
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
    does: 'Less. Only two numbers or two texts have an order: anything else is false.',
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
    does: 'Whether it is a member of the array. For a part of a text use `contains`.',
    examples: [
      ...over({ role: 'owner' }, 'role in ["admin", "owner"]'),
      ...over({ note: 'please hurry' }, '"hurry" in note'),
    ],
  },
  '+': {
    forms: ['a + b'],
    does: 'The sum. Two texts are joined. A number in quotes, true and false count as numbers; with anything else it is null.',
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
    does: 'The difference, with a space on each side.',
    examples: over({ price: 3 }, 'price - 1'),
  },
  '*': {
    forms: ['a * b'],
    does: 'The product.',
    examples: over({ price: 3 }, 'price * 2'),
  },
  '/': {
    forms: ['a / b'],
    does: 'The quotient. Null if `b` is 0.',
    examples: over({ price: 3 }, 'price / 2', 'price / 0'),
  },
  '!': {
    forms: ['!a'],
    does: 'Not: true if `a` is null, false, 0, an empty text or an empty array.',
    examples: over({ items: [], extra: {} }, '!items', '!extra'),
  },
  sign: {
    forms: ['-a'],
    does: 'The number with the other sign.',
    examples: over({ price: 3 }, '-price'),
  },
  '[]': {
    forms: ['[a, b, …]'],
    does: 'An array.',
    examples: over({ tea: 3, milk: 2 }, 'max([tea, milk, 1])'),
  },
};

export function operatorRegions(): Regions {
  return { operators: toldTable('operator', Object.entries(OPERATORS)) };
}
